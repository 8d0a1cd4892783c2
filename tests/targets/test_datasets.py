"""What every command says of a dataset, whatever its images are labelled with."""

from __future__ import annotations

import csv
import json

import pytest

import darkroom
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.example import decode_example
from darkroom.dataset.index import read_index
from darkroom.dataset.index_queries import count_classes
from darkroom.dataset.tfrecord import read_records
from darkroom.options.conversion import ConversionOptions
from darkroom.runtime.class_table import format_class_table
from darkroom.targets.kind import find_kind

from .conftest import LABELS, OPTIONS

KINDS = sorted(OPTIONS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_dataset_says_its_kind(datasets, kind):
    names = ("w", "h") if kind == "numbers" else ()
    target = read_dataset(str(datasets[kind])).target
    assert (target.kind, target.names) == (kind, names)


@pytest.mark.parametrize("kind", KINDS)
def test_records_have_what_the_index_has(datasets, kind):
    root = datasets[kind]
    index = read_index(str(root / "index"), ["uri", "split", "label"]).to_pylist()
    paths = sorted((root / "Split-train").iterdir())
    records = [decode_example(record) for path in paths for record in read_records(str(path))]
    found = [find_kind(kind).decode(record) for record in records]
    expected = [row["label"] for row in index if row["split"] == "train"]
    assert repr(found) == repr(expected)
    if kind == "labels":
        numbers = {int(row["uri"].rpartition("/")[2][:-4]): row["label"] for row in index}
        annotated = [None if each is None else sorted(each) for each in LABELS]
        assert [numbers[number] for number in range(8)] == annotated


@pytest.mark.parametrize("kind", KINDS)
def test_a_dataset_is_sound(datasets, kind, tmp_path):
    root = str(datasets[kind])
    assert not darkroom.verify(root).is_damaged
    result = darkroom.validate(root, min_class_images=1, report_dir=tmp_path / "report")
    assert result.blessed
    policies = json.loads((tmp_path / "report" / "report.json").read_text())["policies"]
    assert ("paired_labels" in policies) == (kind == "labels")
    assert ("outlying_numbers" in policies) == (kind == "numbers")
    assert ("small_classes" in policies) == (kind != "numbers")
    assert darkroom.find_duplicates(root, tmp_path / "d.parquet").surplus == 0


def test_images_that_are_not_annotated_are_counted(datasets):
    def describe(root):
        found = darkroom.validate(root, min_class_images=1).report
        return format_class_table(found.classes, found.labels, found.numbers)

    assert describe(datasets["labels"])[-1] == "  (not known)      6     2"
    assert describe(datasets["numbers"]) == ["Numbers    w, h"]
    labels = read_dataset(str(datasets["labels"])).labels
    counted = count_classes(str(datasets["labels"] / "index"), labels)
    assert {split: counts[""] for split, counts in counted.items()} == {"train": 6, "eval": 2}


@pytest.mark.parametrize("kind", KINDS)
def test_a_contact_sheet_says_what_images_are_labelled_with(datasets, kind, tmp_path):
    found = darkroom.inspect(datasets[kind], n=3, output_dir=tmp_path / "sheet")
    with open(found.csv, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    column = "image/target" if kind == "numbers" else "image/class/text"
    assert all(row[column] or row.get("image/class/annotated") in ("0", "1") for row in rows)


def _validate(listed, tmp_path, kind, change, **options):
    source = listed(kind, change)
    given = ConversionOptions(**{**OPTIONS[kind], **options})
    darkroom.convert(source, tmp_path / "records", max_rejects=1, options=given)
    found = darkroom.validate(tmp_path / "records", report_dir=tmp_path / "report")
    return {finding.check: finding for finding in found.findings}


def _set(place, value_of):
    return lambda rows: [
        [*row[:place], value_of(number, row[place]), *row[place + 1 :]]
        for number, row in enumerate(rows)
    ]


def test_labels_that_a_model_cannot_tell_apart_are_found(listed, tmp_path):
    change = _set(2, lambda number, _: "cat;pet" if number % 2 else "dog")
    found = _validate(listed, tmp_path, "labels", change)
    assert [(row["label"], row["other_label"]) for row in found["paired_labels"].rows] == [
        ("cat", "pet")
    ]
    assert [row["label"] for row in found["dependent_labels"].rows] == ["cat", "pet"]


def test_copies_with_other_labels_are_a_conflict(listed, tmp_path, datasets):
    source = listed("labels")
    images = source.parent
    (images / "copy.png").write_bytes((images / "1.png").read_bytes())
    found = _validate(
        listed, tmp_path, "labels", lambda rows: [*rows, ["TRAIN", "copy.png", "red", 1, 1]]
    )
    [pair] = found["label_conflicts"].rows
    assert {pair["label"], pair["other_label"]} == {'["big","round"]', '["red"]'}


def test_numbers_that_say_nothing_or_too_much_are_found(listed, tmp_path):
    change = _set(3, lambda number, _: 1e6 if number == 5 else 7 + number % 3)
    found = _validate(listed, tmp_path, "numbers", change)
    [outlier] = found["outlying_numbers"].rows
    assert (outlier["number"], outlier["value"]) == (1, 1e6)
    shifted = found["shifted_numbers"].rows
    assert {(row["split"], row["number"]) for row in shifted} == {("eval", 2)}
    constant = _set(3, lambda *_: 4)
    other = tmp_path / "constant"
    other.mkdir()
    assert "constant_numbers" in _validate(listed, other, "numbers", constant)
