"""What changes a record's bytes or its row of the index is in the diff, or left out by name."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import darkroom
from darkroom.conversion.shards.encode import encode_rows
from darkroom.dataset.columns import list_values
from darkroom.dataset.commit import Dataset, Target
from darkroom.dataset.index import INDEX_COLUMNS, IndexWriter, read_index
from darkroom.dataset.manifest import ManifestRow
from darkroom.dataset.rejects import RejectsWriter
from darkroom.images.prepare import PreparedImage
from darkroom.options.diff import DiffOptions
from darkroom.targets.kind import find_kind
from darkroom.validation.diff import LEFT_OUT, compare_datasets
from darkroom.validation.judge import JudgedFiles

LABELS = ["a", "b", "c"]
INPUTS = {"species": "string", "price": "float", "Age": "integer"}
FLAGS, NUMBERS = [False, True], [0.0, -0.0, 1.5]
HASHES = [None, "0" * 32, "1" * 32]
# What a row says, its input columns, and its image.
ROW = {
    "split": ["train", "eval", "test"],
    "uri": ["/x.jpg", "/y.jpg"],
    "span": [0, 1],
    "size": [None, 3, 4],
    "mtime": [None, "3"],
    "group": [None, "", "g"],
    "ignored": [None, "k"],
}
EXTRA = {"species": [None, "x"], "price": NUMBERS, "Age": [0, 1]}
IMAGE = {
    "encoded": [b"x", b"y", b"yy"],
    "format": ["jpeg", "png"],
    "height": [100, 50],
    "width": [100, 50],
    "channels": [1, 3],
    "changes": [(), ("low_bits",)],
    "source_format": ["jpeg", "mpo"],
    "source_height": [100, 50],
    "source_width": [100, 50],
    "pixel_hash": HASHES,
    "decoded_hash": HASHES,
    "perceptual_hash": HASHES,
    "private": [None, "", "gps"],
    "luminance": [None, 1.0, 2.0],
}
# What it is labelled with; of boxes, how many, and what the first one says.
TARGETS = {
    "label": {"target": [None, *LABELS]},
    "labels": {"target": [None, [], ["a"], ["b"], ["a", "b"]]},
    "numbers": {"target": [None, *([each, math.nan] for each in NUMBERS)]},
    "boxes": {
        "objects": [None, 0, 1, 2],
        "label": LABELS,
        "xmin": [1, 1.001, 9],
        "is_crowd": FLAGS,
        "difficult": FLAGS,
        "area": [None, 4.0, 4.5],
        "id": [None, "first"],
    },
}
ANOTHER = {"label": "b", "box": [20, 20, 30, 30], "is_crowd": False, "difficult": True}
ANOTHER |= {"area": 9.0, "id": "second"}


def make_target(facts: Mapping[str, Any]) -> Any:
    """What a list says."""
    if "objects" not in facts:
        return facts["target"]
    if facts["objects"] is None:
        return None
    said = {name: facts[name] for name in ("label", "is_crowd", "difficult", "area", "id")}
    objects = [{**said, "box": [facts["xmin"], 2, 15, 9]}, ANOTHER][: facts["objects"]]
    return {"width": None, "height": None, "orientation": "upright", "objects": objects}


def write(
    folder: Path, name: str, facts: Sequence[Mapping[str, Any]], labels: Sequence[str] = LABELS
) -> tuple[JudgedFiles, list[bytes]]:
    """Writes the index of images with these facts, and returns it and their records."""
    kind = find_kind(name)
    values = pa.array([make_target(each) for each in facts], kind.listed_type)
    values, numbers = kind.number(values, pa.array(labels))
    encoded = []
    for number, each in enumerate(facts):
        row = ManifestRow(
            key=f"{number:032x}",
            id=str(number),
            row=number,
            label=list_values(values)[number],
            label_id=numbers[number].as_py(),
            extra={name: each[name] for name in EXTRA},
            **{name: each[name] for name in ROW},
        )
        image = PreparedImage(**{name: each[name] for name in IMAGE})
        encoded.append(encode_rows([row], kind, [image]))
    folder.mkdir()
    more: dict[str, Any] = {"optional": ("ignored", "group"), "listed": kind.listed}
    path = str(folder / "index-00000-of-00001.parquet")
    with IndexWriter(path, 0, INPUTS, "", kind.column, **more) as writer:
        for rows in encoded:
            writer.add(rows.index_rows)
    rejects = str(folder / "rejects.parquet")
    with RejectsWriter(rejects):
        pass
    is_named = name != "numbers"
    targets = {"label": Target(name, () if is_named else ("x", "y"))}
    names = tuple(labels) if is_named else ()
    counts = (len(facts), len(facts), 0, 0)
    commit = Dataset(3, "", {}, "full", {}, names, *counts, {}, targets=targets)
    return JudgedFiles(str(folder), rejects, commit), [b"".join(each.pieces) for each in encoded]


def read_compared(files: JudgedFiles) -> list[str]:
    """Returns all that the index says of each image, but what is left out by name."""
    table = read_index(files.index_dir)
    compared = table.select([name for name in table.column_names if name not in LEFT_OUT])
    return [*map(repr, compared.to_pylist())]


# Each example has all changes.
@pytest.mark.parametrize("kind", TARGETS)
@settings(max_examples=2)
@given(st.data())
def test_whatever_changes_is_told_of_the_images_that_changed(kind, data):
    """Of images that are the same, each changes in one thing, until all that is known changed."""
    known = {**ROW, **EXTRA, **IMAGE, **TARGETS[kind]}
    places = {name: data.draw(st.integers(0, len(each) - 1), name) for name, each in known.items()}
    facts = {name: known[name][place] for name, place in places.items()}
    changed = [
        {**facts, name: value}
        for name, each in known.items()
        for place, value in enumerate(each)
        if place != places[name]
    ]
    with tempfile.TemporaryDirectory() as scratch:
        old, records = write(Path(scratch) / "old", kind, [facts] * (len(changed) + 1))
        new, others = write(Path(scratch) / "new", kind, [facts, *changed])
        was, now = (
            [*zip(read_compared(files), written, strict=True)]
            for files, written in ((old, records), (new, others))
        )
        found = compare_datasets(old, new, DiffOptions()).findings
    told = {row["row"] for each in found if each.policy == "info" for row in each.rows}
    assert told == {
        row for row, sides in enumerate(zip(was, now, strict=True)) if len({*sides}) > 1
    }


@pytest.mark.parametrize("kind", ["label", "boxes"])
def test_labels_with_other_numbers_are_told(kind, tmp_path):
    """Each record with one of them has other bytes, and the index is the same."""
    known = {**ROW, **EXTRA, **IMAGE, **TARGETS[kind]}
    facts = [{name: each[-1] for name, each in known.items()} | {"label": "a"}]
    (old, was), (new, now) = (
        write(tmp_path / "".join(labels), kind, facts, labels) for labels in ("abc", "cab")
    )
    assert (read_compared(old) == read_compared(new), was == now) == (True, False)
    [finding] = compare_datasets(old, new, DiffOptions()).findings
    said = "Labels with another number: c is 0 (was 2), a is 1 (was 0), b is 2 (was 1)."
    assert (finding.check, finding.message) == ("renumbered", said)


def test_what_is_left_out_is_named():
    assert {name for name, _ in INDEX_COLUMNS} >= LEFT_OUT
    text = darkroom.diff.__doc__
    assert [name for name in LEFT_OUT if f"`{name}`" not in text] == []
