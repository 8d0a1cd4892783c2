"""Datasets of boxes with the numbers of classes that their source has, and what reads them."""

from __future__ import annotations

import json

import pytest
from PIL import Image

import darkroom
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.example import decode_example
from darkroom.dataset.tfrecord import read_records

from ..pictures import make_noise
from ..trees import read_files

# No object is a key.
NAMES = ["mug", "star", "ring", "key"]


def write_yolo(folder, names=NAMES):
    """Writes a dataset of YOLO with objects of the first three classes."""
    for split in ("train", "val"):
        for number in range(6):
            image = folder / f"images/{split}/{number}.png"
            image.parent.mkdir(parents=True, exist_ok=True)
            seed = number + 6 * (split == "val")
            Image.fromarray(make_noise(seed, 60, 80)).save(image)
            labels = folder / f"labels/{split}/{number}.txt"
            labels.parent.mkdir(parents=True, exist_ok=True)
            labels.write_text(f"{number % 3} .5 .5 .5 .5\n")
    write_names(folder, names)
    return folder


def write_names(folder, names):
    text = f"train: images/train\nval: images/val\nnames: {names}\n"
    (folder / "data.yaml").write_text(text)


def read_numbers(records):
    """Returns the number that each class has in records, and those of `labels.txt`."""
    found = {}
    for shard in read_dataset(records).shards:
        for record in read_records(f"{records}/{shard.file}"):
            example = decode_example(record)
            texts = example["image/object/class/text"]
            found |= zip(texts, example["image/object/class/label"], strict=True)
    lines = (records / "labels.txt").read_text().splitlines()
    return {text.decode(): number for text, number in found.items()}, lines


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A dataset of YOLO, and its records."""
    folder = tmp_path_factory.mktemp("made")
    darkroom.convert(write_yolo(folder / "yolo"), folder / "records")
    return folder


def test_records_have_the_numbers_of_the_source(made):
    # 0 is the background.
    assert read_numbers(made / "records") == ({"mug": 1, "star": 2, "ring": 3}, NAMES)


@pytest.mark.crosses
def test_a_class_without_objects_is_a_warning_and_nothing_fails(made, tmp_path):
    from darkroom.validation.browse import write_gallery

    records = made / "records"
    result = darkroom.validate(records, report_dir=tmp_path)
    assert result.report.blessed
    (missing,) = (each for each in result.report.findings if each.check == "missing_classes")
    assert missing.rows == ({"split": "train, eval", "label": "key"},)
    assert [*result.report.classes["train"]] == ["mug", "star", "ring"]
    assert darkroom.diff(records, records).report.findings == ()
    assert darkroom.verify(records).findings == ()
    assert [*darkroom.load(records, framework="numpy", image_size=8).labels] == NAMES
    assert darkroom.inspect(records, output_dir=tmp_path / "inspection").records == 6
    write_gallery(records, tmp_path / "gallery.html")
    assert '"key"' in (tmp_path / "gallery.html").read_text()


def test_an_update_keeps_numbers_and_adds_classes_at_the_end(made, tmp_path):
    folder, records = write_yolo(tmp_path / "yolo"), tmp_path / "records"
    darkroom.convert(folder, records)
    before = read_files(records)
    darkroom.convert(folder, records, update=True)
    assert read_files(records) == before
    # A class without an object is in no row, and still one of the dataset.
    write_names(folder, [*NAMES, "pen"])
    darkroom.convert(folder, records, update=True)
    numbers = {"mug": 1, "star": 2, "ring": 3}
    assert read_numbers(records) == (numbers, [*NAMES, "pen"])


def test_the_numbers_of_an_older_dataset_are_kept(made, tmp_path):
    """Older versions numbered the classes of objects by sorted text."""
    old, new = tmp_path / "old", tmp_path / "new"
    darkroom.convert(made / "yolo", old, label_map=["mug", "ring", "star"])
    numbers = {"mug": 1, "ring": 2, "star": 3}
    assert read_numbers(old) == (numbers, ["mug", "ring", "star"])
    darkroom.convert(made / "yolo", new, label_map=old / "labels.txt")
    assert read_files(new) == read_files(old)
    assert darkroom.convert(made / "yolo", old, label_map=old / "labels.txt").already_complete
    # An update needs no label map.
    folder = write_yolo(tmp_path / "yolo")
    old = tmp_path / "updated"
    darkroom.convert(folder, old, label_map=["mug", "ring", "star"])
    write_names(folder, [*NAMES, "pen"])
    result = darkroom.convert(folder, old, update=True)
    assert read_numbers(old) == (numbers, ["mug", "ring", "star", "key", "pen"])
    assert result.read_as.labels == "the label map of the dataset that is updated"


def test_appended_lists_keep_numbers(made, tmp_path):
    records = tmp_path / "records"
    darkroom.convert(made / "yolo", records)
    objects = [{"label": each, "box": [1, 2, 30, 40]} for each in ("bowl", "ring", "ant")]
    Image.fromarray(make_noise(99, 60, 80)).save(tmp_path / "new.png")
    row = {"split": "train", "image_uri": f"{tmp_path}/new.png", "objects": objects}
    (tmp_path / "new.jsonl").write_text(json.dumps(row))
    darkroom.convert(tmp_path / "new.jsonl", records, update=True, append=True)
    assert (records / "labels.txt").read_text().split() == [*NAMES, "ant", "bowl"]
