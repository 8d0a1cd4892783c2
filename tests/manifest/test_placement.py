"""Splits that hold: groups, shares of classes and folds, of rows that no image is read for."""

import hashlib
import random
from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from darkroom.dataset.keys import make_key, make_order_hash
from darkroom.dataset.layout import DUPLICATES_SCHEMA
from darkroom.dataset.schema import Schema
from darkroom.dataset.splits import SPLITS, SplitRatios, assign_split
from darkroom.decisions.lines import Decision, format_decisions
from darkroom.errors import DataError, UsageError
from darkroom.manifest.groups import join_groups
from darkroom.manifest.writer import write_manifest
from darkroom.options.manifest import ManifestOptions
from darkroom.runtime import progress

HEADER = "split,image_uri,label,patient\n"


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """Returns the rows of the manifest of a CSV by id; `plan.notes` has what was said."""

    def run(lines, header=HEADER, **options):
        run.notes.clear()
        (tmp_path / "m.csv").write_text(header + "".join(f"{line}\n" for line in lines))
        if "schema" in options:
            options["schema"] = Schema.parse(options["schema"])
        options = ManifestOptions(**options)
        manifest = write_manifest(tmp_path / "m.csv", f"{tmp_path}/o", f"{tmp_path}/o", options)
        rows = pq.read_table(tmp_path / "o/manifest.parquet").to_pylist()
        assert Counter(row["split"] for row in rows) == manifest.splits
        return {row["id"]: row for row in rows}

    run.notes = []
    monkeypatch.setattr(progress, "note", run.notes.append)
    return run


def write_groups(path, groups):
    """Writes groups of ids as `darkroom duplicates` does."""
    rows = [
        {"group": number, "kind": "near", "key": make_key(name), "uri": f"/old/{name}"}
        for number, names in enumerate(groups, 1)
        for name in names
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=DUPLICATES_SCHEMA), path)
    return str(path)


def make_lines(count, patients, labels="abc", seed=0, splits=("",)):
    draw = random.Random(seed)
    return [
        f"{draw.choice(splits)},{i}.jpg,{draw.choice(labels)},{draw.choice(patients)}"
        for i in range(count)
    ]


def find_joined(patients, listed):
    """Returns the sets of ids that are one group, by the slow way."""
    sets = defaultdict(set)
    for name, patient in patients.items():
        sets[patient or f"alone {name}"].add(name)
    groups = [*sets.values(), *({*each} & {*patients} for each in listed)]
    merged = []
    for group in filter(None, groups):
        touching = [each for each in merged if each & group]
        merged = [each for each in merged if not each & group] + [group.union(*touching)]
    return merged


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 29), st.integers(0, 15)), max_size=60))
def test_groups_that_share_a_row_are_one(pairs):
    found = join_groups(30, *np.array(pairs, int).reshape(-1, 2).T)
    expected = find_joined(
        dict.fromkeys(range(30), ""),
        [[row for row, group in pairs if group == number] for number in range(16)],
    )
    assert found.tolist() == [
        next(min(each) for each in expected if row in each) for row in range(30)
    ]


def test_a_group_is_in_the_split_of_its_name_and_stays_there_when_rows_come(plan):
    lines = make_lines(300, [f"p{i}" for i in range(60)])
    rows = plan(lines, group_column="patient", seed=3)
    for row in rows.values():
        patient = row["extra"]["patient"]
        assert row["group"] == patient
        assert row["split"] == assign_split(patient, 3, SplitRatios())
    assert {row["split"] for row in rows.values()} == {*SPLITS}
    more = plan([*make_lines(100, ["p1", "p2"]), *lines[100:]], group_column="patient", seed=3)
    assert all(
        row["split"] == rows[row["id"]]["split"]
        for row in more.values()
        if int(row["id"][:-4]) >= 100
    )


def test_groups_of_a_column_and_a_list_are_joined_in_any_order_of_rows(plan, tmp_path):
    draw = random.Random(5)
    lines = make_lines(200, [*(f"p{i}" for i in range(80)), "", " "])
    patients = {line.split(",")[1]: line.split(",")[3].strip() for line in lines}
    listed = [draw.sample([*patients], 3) for _ in range(25)] + [["gone.jpg", "1.jpg"]]
    path = write_groups(tmp_path / "near.parquet", listed)
    options = {"group_column": "patient", "groups": path, "stratify": True, "folds": 3}
    for stratify in (False, True):
        options["stratify"] = stratify
        rows = plan(lines, **options)
        for names in find_joined(patients, listed):
            found = {tuple(rows[name][n] for n in ("split", "group")) for name in names}
            assert len(found) == 1
            assert len({rows[name]["extra"]["fold"] for name in names}) == 1
            first = min(names, key=lambda n: make_order_hash(0)(make_key(n)))
            named = {patients[name] for name in names} - {""} or {make_key(first)}
            alone = len(names) == 1 and not patients[first]
            assert found.pop()[1] in ({None} if alone else named)
        facts = {name: (row["split"], row["group"], row["extra"]) for name, row in rows.items()}
        draw.shuffle(lines)
        again = plan(lines, **options)
        assert facts == {n: (r["split"], r["group"], r["extra"]) for n, r in again.items()}


def test_placed_rows_stay_and_their_groups_follow_them(plan):
    lines = [
        *("TEST,0.jpg,a,p", "TEST,1.jpg,a,p", "TRAIN,2.jpg,a,p", ",3.jpg,a,p"),
        *("EVAL,4.jpg,a,q", "TRAIN,5.jpg,a,q", ",6.jpg,a,q"),
    ]
    rows = plan(lines, group_column="patient", stratify=True)
    splits = {name[0]: row["split"] for name, row in rows.items()}
    assert splits == {
        "0": "test",
        "1": "test",
        "2": "train",
        "3": "test",
        "4": "eval",
        "5": "train",
        "6": "train",
    }


def test_a_move_of_decisions_is_a_split_that_a_row_says(plan, tmp_path):
    lines = [f",{name},a,{patient}" for name, patient in zip("abcde", "pppqq", strict=True)]
    for name in "abcde":
        (tmp_path / name).write_text(name)
    before = plan(lines, group_column="patient")
    assert len({before[name]["split"] for name in "abc"}) == 1
    other = next(split for split in SPLITS if split != before["a"]["split"])
    sha256 = hashlib.sha256(b"b").hexdigest()
    moved = Decision(action="move", key=make_key("b"), sha256=sha256, split=other)
    (tmp_path / "decisions.jsonl").write_bytes(format_decisions([moved]))
    for stratify in (False, True):
        options = {"group_column": "patient", "stratify": stratify}
        rows = plan(lines, decisions=str(tmp_path / "decisions.jsonl"), **options)
        assert {rows[name]["split"] for name in "abc"} == {other}
        assert {name: row["group"] for name, row in rows.items()} == {
            name: row["group"] for name, row in before.items()
        }
    assert rows["d"]["split"] == rows["e"]["split"]
    # A row with a split of its own stays, though its group has a row that was moved.
    lines[0] = f"{before['a']['split']},a,a,p"
    rows = plan(lines[:2], decisions=str(tmp_path / "decisions.jsonl"), group_column="patient")
    assert {name: row["split"] for name, row in rows.items()} == {
        "a": before["a"]["split"],
        "b": other,
    }


@pytest.mark.fault(
    81,
    "a class with one image, and `--stratify`",
    "in train, and said",
)
@pytest.mark.parametrize("ratios", [(0.8, 0.1, 0.1), (0.5, 0.5, 0.0), (0.34, 0.33, 0.33)])
def test_each_class_has_its_share_within_one_image(plan, ratios):
    labels = "a" * 200 + "b" * 40 + "c" * 7 + "d" * 3 + "ef"
    lines = [f",{i}.jpg,{label}" for i, label in enumerate(labels)]
    # Rows with a split do not count for the shares of the others.
    lines += [f"TEST,t{i}.jpg,b" for i in range(30)]
    options = {"stratify": True, "folds": 4, "split_ratios": SplitRatios(*ratios)}
    rows = plan(lines, "split,image_uri,label\n", **options).values()
    free = Counter((r["label"], r["split"]) for r in rows if not r["id"].startswith("t"))
    for label, count in Counter(labels).items():
        for split, ratio in zip(SPLITS, ratios, strict=True):
            assert abs(free[label, split] - ratio * count) < 1
    assert plan.notes[0] == "2 classes with one image, as 'e': in train."
    assert len(plan.notes) == 2
    assert free["e", "train"] == free["f", "train"] == 1
    folds = Counter((r["label"], r["split"], r["extra"]["fold"]) for r in rows)
    found = Counter((r["label"], r["split"]) for r in rows)
    for (label, split), count in found.items():
        for fold in range(4):
            assert abs(folds[label, split, fold] - count / 4) < 1
    sizes = Counter(r["extra"]["fold"] for r in rows)
    assert max(sizes.values()) - min(sizes.values()) <= 9


def test_several_labels_are_stratified_by_the_rarest(plan):
    draw = random.Random(1)
    lines = []
    for i in range(200):
        names = ["often", *(["rare"] if i % 10 == 0 else []), *(["mid"] if i % 3 == 0 else [])]
        lines.append(f"{i}.jpg,{';'.join(draw.sample(names, len(names))) if i % 50 else ''}")
    rows = plan(lines, "image_uri,label\n", stratify=True, label_separator=";").values()
    rarest = Counter(
        (min(r["label"], key=["rare", "mid", "often"].index) if r["label"] else "", r["split"])
        for r in rows
    )
    totals = Counter(dict(Counter(n for n, _ in rarest.elements())))
    assert totals == {"rare": 16, "": 4, "mid": 60, "often": 120}
    for (name, split), count in rarest.items():
        assert abs(count - totals[name] * {"train": 0.8}.get(split, 0.1)) < 1


def test_groups_and_classes_together_come_near_the_shares(plan):
    draw = random.Random(2)
    patients = [f"p{i}" for i in range(150)]
    of = {patient: draw.choice("aaab") for patient in patients}
    lines = [
        f",{i}.jpg,{of[patient] if draw.random() < 0.8 else draw.choice('abc')},{patient}"
        for i, patient in enumerate(draw.choices(patients, k=1500))
    ]
    rows = plan(lines, group_column="patient", stratify=True)
    found = Counter((row["label"], row["split"]) for row in rows.values())
    for label in "abc":
        count = sum(found[label, split] for split in SPLITS)
        for split, ratio in zip(SPLITS, (0.8, 0.1, 0.1), strict=True):
            assert abs(found[label, split] - ratio * count) <= 0.02 * count + 2
    assert any(
        note.startswith("Stratified. The class farthest from its shares is '")
        for note in plan.notes
    )


def test_folds_are_those_of_hashes_and_stay(plan):
    lines = make_lines(60, ["p", "q", ""])
    rows = plan(lines, group_column="patient", folds=5)
    for name, row in rows.items():
        group = row["extra"]["patient"] or make_key(name)
        assert row["extra"]["fold"] == make_order_hash(0)(group) % 5
    alone = plan([line.rpartition(",")[0] for line in lines], "split,image_uri,label\n", folds=5)
    assert alone["7.jpg"]["extra"] == {"fold": make_order_hash(0)(make_key("7.jpg")) % 5}
    assert alone["7.jpg"]["group"] is None


def test_what_cannot_be_placed_is_an_error(plan, tmp_path):
    lines = make_lines(9, ["p"])
    with pytest.raises(DataError, match=r"is 'pateint'.*\['patient'\].*Did you mean patient\?"):
        plan(lines, group_column="pateint")
    with pytest.raises(DataError, match="group_column is 'label'"):
        plan(lines, group_column="label")
    with pytest.raises(DataError, match=r"the 2 keys of .*near.parquet, as '[0-9a-f]{32}'"):
        plan(lines, groups=write_groups(tmp_path / "near.parquet", [["x.jpg", "y.jpg"]]))
    pq.write_table(pa.table({"key": ["a"]}), tmp_path / "other.parquet")
    with pytest.raises(DataError, match=r"groups at .* its column group is missing") as error:
        plan(lines, groups=str(tmp_path / "other.parquet"))
    assert "darkroom duplicates" in error.value.hint
    with pytest.raises(DataError, match="has a column 'fold' already"):
        plan(lines, HEADER.replace("patient", "Fold"), folds=3)
    with pytest.raises(UsageError, match="the source has numbers"):
        plan(["1.jpg,2"], "image_uri,x\n", stratify=True, target_columns=("x",))
    with pytest.raises(UsageError, match="the source has no labels"):
        plan(["1.jpg"], "image_uri\n", stratify=True)
    with pytest.raises(UsageError, match="folds"):
        ManifestOptions(folds=1)


def test_a_damaged_list_of_groups_is_named_and_unknown_keys_are_said(plan, tmp_path):
    lines = make_lines(9, ["p"])
    path = write_groups(tmp_path / "near.parquet", [["1.jpg", "2.jpg", "x.jpg"], ["y.jpg"]])
    plan(lines, groups=path)
    assert plan.notes[0].startswith(f"Warning: 2 of 4 keys in {path} not found in the source, as ")
    data = bytearray((tmp_path / "near.parquet").read_bytes())
    # The pages, not the footer.
    data[4:200] = bytes(196)
    (tmp_path / "near.parquet").write_bytes(data)
    with pytest.raises(DataError, match=r"list of groups .*near.parquet cannot be read") as error:
        plan(lines, groups=path)
    assert "darkroom duplicates" in error.value.hint


@pytest.mark.fault(
    79,
    "empty cells in the column of groups",
    "each such row is alone, and counted",
)
@pytest.mark.fault(
    80,
    "a group larger than its split",
    "stays together, with a warning that names it",
)
def test_what_does_not_hold_is_said(plan):
    plan([*make_lines(40, ["big"]), ",x.jpg,a,small", ",y.jpg,a,"], group_column="patient")
    assert plan.notes[0] == "1 row without patient: each is a group of its own."
    plan(make_lines(40, ["p3"]), group_column="patient", stratify=True)
    assert plan.notes[-1].startswith("Warning: the group 'p3' has 40 of 40 rows, and train, where")
    plan(make_lines(9, ["p"], splits=("TRAIN", "EVAL")), stratify=True)
    assert plan.notes == ["stratify places no row: each has its split already."]
