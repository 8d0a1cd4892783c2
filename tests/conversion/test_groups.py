"""Groups and folds in a dataset: its index, its updates, and the check that they hold."""

import json
import random
from collections import defaultdict

import pyarrow.parquet as pq
import pytest
from PIL import Image

import darkroom
from darkroom.dataset.index import read_index
from darkroom.dataset.splits import SPLITS
from darkroom.options import ConversionOptions


def convert(folder, lines, header="split,id,label,patient,n\n", output="o", **options):
    """Converts rows without images, and returns the index by id."""
    (folder / "m.csv").write_text(header + "".join(f"{line}\n" for line in lines))
    schema = {"split": "split", "id": "id", "label": "string_label"}
    schema |= dict.fromkeys(header.strip().split(",")[3:], "string")
    made = ConversionOptions(columns=schema, seed=1, **options)
    darkroom.convert(folder / "m.csv", folder / output, options=made)
    return {row["id"]: row for row in read_index(f"{folder}/{output}/index").to_pylist()}


def make_lines(first, last, patients, seed=0):
    draw = random.Random(seed)
    return [f",{i},{draw.choice('ab')},{draw.choice(patients)},{i}" for i in range(first, last)]


def test_old_rows_stay_and_new_ones_go_where_their_groups_are(tmp_path):
    how = {"group_column": "patient", "stratify": True, "folds": 3}
    lines = make_lines(0, 60, [f"p{i}" for i in range(15)])
    before = convert(tmp_path, lines, **how)
    assert all(row["group"] == row["extra"]["patient"] for row in before.values())
    # Other ratios, and so many new rows that groups would be elsewhere if placed from nothing.
    lines += make_lines(60, 200, [f"p{i}" for i in range(10, 40)], seed=1)
    after = convert(tmp_path, lines, update=True, split_ratios="40/30/30", **how)
    places = {group: set() for group in {row["group"] for row in after.values()}}
    for name, row in after.items():
        places[row["group"]].add((row["split"], row["extra"]["fold"]))
        if name in before:
            assert row["split"] == before[name]["split"]
            assert row["extra"] == before[name]["extra"]
    assert all(len(each) == 1 for each in places.values())
    assert {row["split"] for name, row in after.items() if name not in before} == {*SPLITS}
    # An update that says nothing of groups moves no row; and new ones of no group follow hashes.
    again = convert(tmp_path, [*lines, ",x,a,,1"], update=True)
    assert {name: (row["split"], row["group"]) for name, row in after.items()} == {
        name: (row["split"], row["group"]) for name, row in again.items() if name != "x"
    }
    appended = convert(tmp_path, [",y,a,p12,1"], append=True, update=True, group_column="patient")
    assert appended["y"]["split"] == next(iter(places["p12"]))[0]
    assert len(appended) == 202


def test_an_update_places_rows_as_a_conversion_from_nothing(tmp_path):
    how = {"group_column": "patient", "folds": 3}
    lines = make_lines(0, 150, [*(f"p{i}" for i in range(40)), ""])
    convert(tmp_path, lines[50:], **how)
    updated = convert(tmp_path, lines, update=True, merge_spans=True, **how)
    assert updated == convert(tmp_path, lines, output="again", **how)
    files = [sorted(tmp_path.glob(f"{name}/Split-*/*")) for name in ("o", "again")]
    assert [each.read_bytes() for each in files[0]] == [each.read_bytes() for each in files[1]]
    assert len(files[0]) >= 3


@pytest.mark.crosses
def test_copies_of_a_first_conversion_are_in_one_split_of_the_second(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for i in range(40):
        Image.new("RGB", (9, 9), (i % 20, 0, 0)).save(folder / f"{i}.png")
    lines = [f"{i}.png,{'ab'[i % 2]}\n" for i in range(40)]
    (folder / "list.csv").write_text("image_uri,label\n" + "".join(lines))
    first = tmp_path / "first"
    darkroom.convert(folder / "list.csv", first)
    found = darkroom.find_duplicates(first, tmp_path / "copies.parquet")
    assert found.bytes_groups == 20
    assert found.splits_differ
    options = ConversionOptions(groups=found.path)
    second = tmp_path / "second"
    darkroom.convert(folder / "list.csv", second, options=options)
    rows = read_index(str(second / "index")).to_pylist()
    splits = defaultdict(set)
    for row in rows:
        splits[int(row["id"][:-4]) % 20].add((row["split"], row["group"]))
    assert [len(each) for each in splits.values()] == [1] * 20
    # A linked shard has the groups, too, and so has that of an update without the list.
    Image.new("RGB", (9, 9), "red").save(folder / "new.png")
    (folder / "list.csv").write_text("image_uri,label\nnew.png,a\n" + "".join(lines))
    darkroom.convert(folder / "list.csv", second, options=ConversionOptions(update=True))
    after = {row["id"]: row for row in read_index(str(second / "index")).to_pylist()}
    assert after.pop("new.png")["group"] is None
    assert {name: (row["split"], row["group"]) for name, row in after.items()} == {
        row["id"]: (row["split"], row["group"]) for row in rows
    }


@pytest.mark.crosses
def test_a_group_in_two_splits_is_found_with_the_rows_to_move(tmp_path):
    lines = ["TRAIN,0,a,p,0", "TRAIN,1,b,p,1", "TEST,2,a,p,2", "EVAL,3,b,q,3", "TEST,4,a,q,4"]
    convert(tmp_path, [*lines, "TEST,5,a,,5", "TRAIN,6,a,,5"], group_column="patient")
    policies = dict.fromkeys(("small_classes", "missing_classes"), "off")
    (finding,) = darkroom.validate(tmp_path / "o", policies=policies).report.findings
    assert (finding.check, finding.policy, finding.count) == ("group_leakage", "fail", 2)
    assert finding.message.startswith("2 groups in more than one split")
    assert finding.message.endswith("2 records to move.")
    moves = [
        tuple(row[name] for name in ("row", "split", "label", "other_row", "group", "move_to"))
        for row in finding.rows
    ]
    assert moves == [(3, "test", "a", 1, "p", "train"), (5, "test", "a", 4, "q", "eval")]


def test_without_the_options_there_is_no_column(tmp_path):
    convert(tmp_path, make_lines(0, 9, ["p"]))
    schema = pq.read_schema(next((tmp_path / "o/index").glob("*.parquet")))
    assert "group" not in schema.names
    assert [field.name for field in schema.field("extra").type] == ["patient", "n"]
    assert "fold" not in json.loads((tmp_path / "o/dataset.json").read_text())["features"]
