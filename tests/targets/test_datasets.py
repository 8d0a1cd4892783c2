"""What every command says of a dataset, whatever its images are labelled with."""

from __future__ import annotations

import csv
import json
import re

import pytest

import darkroom
from darkroom.cli import main
from darkroom.conversion.result import ConversionResult
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.example import decode_example
from darkroom.dataset.index import read_index
from darkroom.dataset.index_queries import count_classes
from darkroom.dataset.tfrecord import read_records
from darkroom.options.conversion import ConversionOptions
from darkroom.runtime.class_table import describe_classes
from darkroom.runtime.result import format_rows
from darkroom.targets.kind import find_kind
from darkroom.validation.report.dataset_report import DatasetReport, describe_contents

from .conftest import LABELS, OPTIONS

pytestmark = pytest.mark.crosses

KINDS = sorted(OPTIONS)


COMMANDS = {
    "verify": ("DATA",),
    "validate": ("DATA", "--report", "OUT", "--min-class-images", "1"),
    "duplicates": ("DATA", "--output", "OUT/d.parquet"),
    "inspect": ("DATA", "--output-dir", "OUT", "-n", "3"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_dataset_says_its_kind(datasets, kind):
    """The fixture ran the command convert."""
    dataset = read_dataset(str(datasets[kind]))
    labels = {"label": ("even", "odd"), "labels": ("big", "red", "round"), "numbers": ()}
    names = ("w", "h") if kind == "numbers" else ()
    assert (dataset.target.kind, dataset.target.names) == (kind, names)
    assert dataset.labels == labels[kind]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_knows_every_kind(command, kind, datasets, tmp_path, capsys):
    places = {"DATA": str(datasets[kind]), "OUT": str(tmp_path / "out")}
    (tmp_path / "out").mkdir()
    given = [re.sub("DATA|OUT", lambda m: places[m[0]], each) for each in COMMANDS[command]]
    assert main([command, *given, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    numbers = ["w", "h"] if kind == "numbers" else []
    unannotated = {"train": 6, "eval": 2} if kind == "labels" else {}
    if command == "verify":
        assert found["findings"] == []
    elif command == "duplicates":
        assert found["surplus"] == 0
    elif command == "inspect":
        with open(tmp_path / "out" / "records.csv", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        column = "image/target" if numbers else "image/class/text"
        assert all(row[column] or row.get("image/class/annotated") in ("0", "1") for row in rows)
        assert found["records"] == 3
    else:
        assert found["blessed"]
        assert ("paired_labels" in found["policies"]) == (kind == "labels")
        assert ("outlying_numbers" in found["policies"]) == (kind == "numbers")
        assert ("small_classes" in found["policies"]) == (kind != "numbers")
        text = (tmp_path / "out" / "report.html").read_text()
        assert ("8 records are not annotated (train 6, eval 2)" in text) == bool(unannotated)
        assert ("median" in text) == bool(numbers)


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


def test_numbers_are_summed_up_by_split(datasets):
    report = darkroom.validate(datasets["numbers"]).report
    width, *_, height = report.summary
    texts = {"name": "w", "split": "train", "records": 24, "missing": 0, "min": 0, "median": 5.75}
    assert width == {**texts, "mean": 5.75, "max": 11.5}
    assert (height["name"], height["split"], height["max"]) == ("h", "eval", 76)
    [train] = [row for row in report.summary if (row["name"], row["split"]) == ("h", "train")]
    assert (train["records"], train["missing"]) == (23, 1)
    lines = format_rows(describe_contents(report))
    assert lines[1].split() == ["split", "records", "missing", "min", "median", "mean", "max"]
    assert lines[2].split() == ["w", "train", "24", "0", "0", "5.75", "5.75", "11.5"]
    assert DatasetReport.from_json(report.to_json()) == report


def test_images_that_are_not_annotated_are_counted(datasets):
    def describe(root):
        found = darkroom.validate(root, min_class_images=1).report
        return format_rows([describe_classes(found.classes, found.labels, found.numbers)])

    assert describe(datasets["labels"])[-1] == "  (not annotated)      6     2"
    assert describe(datasets["numbers"]) == ["Numbers    w, h"]
    labels = read_dataset(str(datasets["labels"])).labels
    list_names = find_kind("labels").list_names
    counted = count_classes(str(datasets["labels"] / "index"), labels, list_names)
    assert {split: counts[""] for split, counts in counted.items()} == {"train": 6, "eval": 2}


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
    assert (outlier["name"], outlier["value"]) == ("w", 1e6)
    shifted = found["shifted_numbers"].rows
    assert {(row["split"], row["name"]) for row in shifted} == {("eval", "h")}
    constant = _set(3, lambda *_: 4)
    other = tmp_path / "constant"
    other.mkdir()
    assert "constant_numbers" in _validate(listed, other, "numbers", constant)


def test_a_conversion_says_how_much_is_not_annotated():
    classes = {"train": {"": 6, "big": 1}, "eval": {"": 2, "big": 2}}
    labels = ConversionResult("out", 11, 11, labels=("big",), classes=classes)
    text = "Unknown    8 records are not annotated (train 6, eval 2)"
    assert text in labels.to_text()
    numbers = ConversionResult("out", 9, 9, numbers=("w",), classes={"train": {"": 1}})
    assert "Unknown    1 record is not annotated (train 1)" in numbers.to_text()
    assert "no labels" not in f"{numbers!r} {numbers.to_text()}"
