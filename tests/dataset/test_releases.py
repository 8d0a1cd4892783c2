"""This version reads and updates the dataset that darkroom 0.2.0 wrote: tests/data/release-0.2.0.

It was converted at `/data`, from ten images beside it: of JPEGs the records have the bytes.
"""

from __future__ import annotations

import csv
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import darkroom
from darkroom.dataset.index import read_index

from ..pictures import decode, encode

SPLITS = {"train": 6, "eval": 2, "test": 2}
LABELS = ["cat", "dog"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The list, the images and the dataset, in a place of today."""
    shutil.copytree(Path(__file__).parents[1] / "data/release-0.2.0", tmp_path, dirs_exist_ok=True)
    return tmp_path


def read_rows(records: Path) -> dict[str, dict]:
    return {Path(row["id"]).name: row for row in read_index(str(records / "index")).to_pylist()}


def test_it_is_sound_and_fit_for_training(folder):
    assert darkroom.verify(folder / "records").is_sound
    found = darkroom.validate(folder / "records")
    assert found.blessed
    assert [finding.check for finding in found.findings] == ["small_classes"]
    (folder / "records/labels.txt").write_text("cat\ncow\n")
    assert not darkroom.verify(folder / "records").is_sound


def test_its_images_and_labels_are_read(folder):
    columns = ["camera", "image/filename"]
    data = darkroom.load(
        folder / "records", image_size=(12, 16), framework="numpy", columns=columns
    )
    assert {name: len(split.images) for name, split in data.items()} == SPLITS
    for split in data.values():
        assert list(split.class_names) == LABELS
        for pixels, label, columns in split.images:
            number = int(Path(columns["image/filename"]).stem)
            expected = decode((folder / columns["image/filename"]).read_bytes())
            # The reader transforms the blocks of JPEGs faster, and less exactly, than Pillow.
            assert np.abs(pixels - np.asarray(expected, int)).max() <= (0 if number % 2 else 6)
            assert (label, columns["camera"]) == (number // 5, f"c{number % 3}")


def test_it_is_inspected_and_listed(folder):
    darkroom.inspect(folder / "records", "eval", output_dir=folder / "inspection")
    with (folder / "inspection/records.csv").open() as file:
        shown = {row["image/filename"]: row["image/class/text"] for row in csv.DictReader(file)}
    assert shown == {"images/3.png": "cat", "images/8.jpg": "dog"}


@pytest.mark.parametrize("base", [False, True])
def test_an_update_takes_its_records_and_adds_to_them(folder, base):
    before = read_rows(folder / "records")
    for name, row in before.items():
        path = folder / "images" / name
        # As when it was converted: if it were read again, it would be rejected.
        path.write_bytes(b"?" * row["source_size"])
        os.utime(path, ns=(int(row["source_version"]),) * 2)
    (folder / "images/4.jpg").unlink()
    (folder / "images/new.jpg").write_bytes(encode(np.zeros((12, 16, 3), np.uint8), "JPEG"))
    (folder / "images/3.png").write_bytes(encode(np.ones((9, 9, 3), np.uint8)))
    with (folder / "images.csv").open("a") as file:
        csv.writer(file).writerow(("test", "images/new.jpg", "ape", "c9"))
    text = (folder / "images.csv").read_text().replace("test,images/4.jpg,cat,c1\n", "")
    (folder / "images.csv").write_text(text)
    how = {"base": str(folder / "records")} if base else {"update": True}
    output = folder / ("next" if base else "records")
    made = darkroom.convert(folder / "images.csv", output, **how)
    assert (made.written, made.rejected, made.labels) == (10, {}, (*LABELS, "ape"))
    after = read_rows(output)
    assert after.keys() == before.keys() - {"4.jpg"} | {"new.jpg"}
    same = ("key", "split", "label", "sha256", "pixel_hash", "extra")
    for name in before.keys() - {"3.png", "4.jpg"}:
        assert [after[name][each] for each in same] == [before[name][each] for each in same]
    assert after["3.png"]["key"] == before["3.png"]["key"]
    assert (after["3.png"]["height"], after["new.jpg"]["label"]) == (9, "ape")
    assert darkroom.verify(output).is_sound
