"""Decisions in a manifest: which rows they change, and which they leave as they are."""

from __future__ import annotations

import hashlib
import json

import pyarrow.parquet as pq
import pytest

from darkroom.dataset.keys import make_key
from darkroom.dataset.manifest import read_manifest
from darkroom.dataset.schema import Schema
from darkroom.decisions.lines import Decision, format_decisions
from darkroom.errors import DataError
from darkroom.manifest.fingerprint import fingerprint_source
from darkroom.manifest.writer import write_manifest
from darkroom.options.manifest import ManifestOptions
from darkroom.runtime import progress

LABELS = {"a": "cat", "b": "dog", "c": "cat", "d": "dog", "e": "cat"}


@pytest.fixture
def images(tmp_path):
    """A folder with five files, which say their names, and a list of them."""
    for name in LABELS:
        (tmp_path / name).write_text(name)
    write_list(tmp_path, *(f"{name},{label},TRAIN" for name, label in LABELS.items()))
    return tmp_path


def write_list(folder, *rows, columns="image_uri,label,split"):
    (folder / "list.csv").write_text("\n".join([columns, *rows]) + "\n")


def decide(action, name, *, other=None, **values):
    def hash_name(name):
        return hashlib.sha256(name.encode()).hexdigest()

    if other:
        values |= {"other_key": make_key(other), "other_sha256": hash_name(other)}
        values["other_uri"] = f"/{other}"
    return Decision(
        action=action, key=make_key(name), sha256=hash_name(name), uri=f"/{name}", **values
    )


def plan(folder, *decisions, **options):
    """Returns the manifest and its rows by name."""
    if decisions:
        (folder / "decisions.jsonl").write_bytes(format_decisions(decisions))
        options["decisions"] = str(folder / "decisions.jsonl")
    made = ManifestOptions(**options)
    out = str(folder / "out")
    manifest = write_manifest(str(folder / "list.csv"), out, out, made)
    assert manifest == read_manifest(out)
    rows = pq.read_table(f"{out}/manifest.parquet").to_pylist()
    return manifest, {row["id"]: row for row in rows}


@pytest.mark.fault(
    77,
    "decisions about an image that is gone, or has other bytes since",
    "listed, and the image is left as it is",
)
def test_rows_are_dropped_and_changed_and_the_others_stay(images, monkeypatch):
    said = []
    for name in ("note", "warn"):
        monkeypatch.setattr(progress, name, said.append)
    before, old = plan(images)
    assert "decisions" not in json.loads((images / "out/manifest.json").read_text())
    (images / "c").write_text("changed")
    found, rows = plan(
        images,
        decide("drop", "a"),
        decide("relabel", "b", label="owl"),
        decide("move", "b", split="test"),
        decide("relabel", "c", label="dog"),
        decide("ignore", "d", other="b"),
        decide("ignore", "d", other="e"),
        decide("ignore", "e"),
        decide("drop", "x"),
        decide("ignore", "e", other="x"),
    )
    assert found.decisions == {
        "sha256": hashlib.sha256((images / "decisions.jsonl").read_bytes()).hexdigest(),
        "counts": {"drop": 1, "relabel": 1, "move": 1, "ignore": 3, "changed": 1, "gone": 2},
    }
    assert (found.excluded, found.deduplicated, found.rejected) == (1, 1, 0)
    assert found.labels == ["cat", "dog", "owl"]
    assert found.splits == {"train": 3, "test": 1}
    assert found.fingerprint != before.fingerprint
    assert said == [
        "Not applied, because the images changed since: /c.",
        "Not applied, because the images are gone: /x, /x.",
        "Decisions: drop 1, relabel 1, move 1, ignore 3, changed 1, gone 2.",
    ]
    assert rows.keys() == {*"bcde"}
    assert {name: row.pop("ignored") for name, row in rows.items()} == {
        **dict.fromkeys("bc"),
        "d": " ".join(sorted(map(make_key, "be"))),
        "e": "*",
    }
    # Their state may have changed; else the other rows have what they had.
    for name, row in rows.items():
        change = {"label": "owl", "label_id": 2, "split": "test"} if name == "b" else {}
        change |= {key: row[key] for key in ("size", "mtime")}
        assert row == {**old[name], **change}


def test_all_rows_of_an_image_are_decided_about(images):
    # The same image under two ids and with two labels would be rejected.
    rows = ["one,a,cat", "two,a,cat", "three,b,dog"]
    write_list(images, *rows, columns="id,image_uri,label")
    schema = Schema.parse({"id": "id", "image_uri": "image", "label": "string_label"})
    image = {"sha256": hashlib.sha256(b"a").hexdigest(), "key": make_key("two")}
    relabel = Decision(action="relabel", label="owl", **image)
    found, rows = plan(images, relabel, schema=schema)
    assert {row["uri"][-1]: row["label"] for row in rows.values()} == {"a": "owl", "b": "dog"}
    assert found.rejected == 0
    found, rows = plan(images, Decision(action="drop", **image), schema=schema)
    assert ({*rows}, found.excluded) == ({"three"}, 2)


def test_a_list_may_exclude_rows_as_well(images):
    (images / "list.txt").write_text("a\nb\n")
    exclude = {"exclude": str(images / "list.txt")}
    for names, given, files in (
        (LABELS, {}, "[^ ]*decisions.jsonl"),
        ("cde", exclude, "[^ ]*list.txt and [^ ]*decisions.jsonl"),
    ):
        with pytest.raises(DataError, match=f"All 5 rows that can be used .* by {files}, so"):
            plan(images, *(decide("drop", name) for name in names), **given)
    found, rows = plan(images, decide("drop", "a"), decide("drop", "c"), **exclude)
    assert ({*rows}, found.excluded) == ({"d", "e"}, 3)


def test_an_image_gets_any_number_of_labels(images):
    write_list(images, "a,cat;dog,", "b,dog,", "c,cat,")
    several = decide("relabel", "a", label=("owl", "cat")), decide("relabel", "b", label=())
    found, rows = plan(images, *several, decide("relabel", "c", label="owl"), label_separator=";")
    assert found.labels == ["cat", "owl"]
    assert {name: row["label"] for name, row in rows.items()} == {
        "a": ["cat", "owl"],
        "b": [],
        "c": ["owl"],
    }


def test_rows_without_images_are_decided_about(tmp_path):
    write_list(tmp_path, "1,cat", "2,dog", columns="age,label")
    schema = Schema.parse({"age": "integer", "label": "string_label"})
    _, rows = plan(tmp_path, schema=schema)
    [cat] = [row for row in rows.values() if row["label"] == "cat"]
    found, rows = plan(tmp_path, Decision(action="drop", key=cat["key"]), schema=schema)
    assert ([row["label"] for row in rows.values()], found.excluded) == (["dog"], 1)


@pytest.mark.fault(
    78,
    "a new label with control characters, too long, or outside of the label map",
    "refused, with the line of the decision",
    code="exit 1",
    hint="correct the line",
)
@pytest.mark.parametrize(
    ("label", "options", "said"),
    [
        ("a\u202eb", {}, "line 2: the image cannot get this label: the label holds control"),
        ("", {}, "the label cell is empty"),
        ("x" * 1001, {}, "more than 1,000 characters"),
        (("cat", "dog"), {}, "an image has one label, and this is a list"),
        ("owl", {"labels": ("cat", "dog")}, "the label map does not have 'owl'"),
    ],
)
def test_an_impossible_label_is_an_error(images, label, options, said):
    relabel = decide("relabel", "b", label=label)
    with pytest.raises(DataError, match=said):
        plan(images, decide("drop", "a"), relabel, **options)


@pytest.mark.fault(
    76,
    "decisions about images of which the list has none",
    "refused",
    code="exit 1",
    hint="they are of another dataset, or leave them out",
)
def test_decisions_of_another_dataset_are_an_error(images):
    with pytest.raises(DataError, match=r"none of the images .* decides about: /x, /x") as error:
        plan(images, decide("drop", "x"), decide("ignore", "x", other="y"))
    assert "another dataset" in error.value.hint
    assert (
        plan(images, decide("drop", "x"), decide("drop", "a"))[0].decisions["counts"]["gone"] == 1
    )


def test_a_fingerprint_depends_on_the_decisions(images):
    path = images / "list.csv"
    found = {fingerprint_source(path)}
    for decisions in ([decide("drop", "a")], [decide("drop", "b")]):
        found.add(plan(images, *decisions)[0].fingerprint)
        options = ManifestOptions(decisions=str(images / "decisions.jsonl"))
        found.add(fingerprint_source(path, options))
    found.add(fingerprint_source(path, ManifestOptions(exclude=str(images / "decisions.jsonl"))))
    assert len(found) == 4
