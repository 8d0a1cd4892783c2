"""This version reads and updates the dataset of darkroom 0.2.0 in tests/data/release-0.2.0.

That was converted at `/data`, from the ten images beside it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import darkroom
from darkroom.dataset.index import read_index

from ..pictures import decode, encode

LABELS = ["cat", "dog"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The list, the images and the dataset, in another place."""
    shutil.copytree(Path(__file__).parents[1] / "data/release-0.2.0", tmp_path, dirs_exist_ok=True)
    return tmp_path


def read_rows(records: Path) -> dict[str, dict]:
    rows = read_index(str(records / "index")).to_pylist()
    return {Path(row["id"]).name: row for row in rows}


@pytest.mark.crosses
def test_it_is_sound_and_passes_and_is_shown(folder):
    assert darkroom.verify(folder / "records").is_sound
    found = darkroom.validate(folder / "records")
    assert [(each.check, each.policy) for each in found.findings] == [("small_classes", "warn")]
    darkroom.inspect(folder / "records", "eval", output_dir=folder / "inspection")
    text = (folder / "inspection/records.csv").read_text()
    assert all(name in text for name in ("images/3.png", "images/8.jpg"))
    (folder / "records/labels.txt").write_text("cat\ncow\n")
    assert not darkroom.verify(folder / "records").is_sound


@pytest.mark.crosses
def test_its_images_and_labels_are_read(folder):
    more = {"framework": "numpy", "columns": ["camera", "image/filename"]}
    data = darkroom.load(folder / "records", image_size=(12, 16), **more)
    counts = {name: len(split.images) for name, split in data.items()}
    assert counts == {"train": 6, "eval": 2, "test": 2}
    for split in data.values():
        assert list(split.class_names) == LABELS
        for pixels, label, columns in split.images:
            number = int(Path(columns["image/filename"]).stem)
            expected = decode((folder / columns["image/filename"]).read_bytes())
            # The reader transforms the blocks of JPEGs faster, and less exactly, than Pillow.
            assert np.abs(pixels - np.asarray(expected, int)).max() <= (0 if number % 2 else 6)
            assert (label, columns["camera"]) == (number // 5, f"c{number % 3}")


@pytest.mark.parametrize("base", [False, True])
def test_an_update_takes_its_records_and_adds_to_them(folder, base):
    before = read_rows(folder / "records")
    for name, row in before.items():
        # It looks as it did then; if it were read, it would be rejected.
        (folder / "images" / name).write_bytes(b"?" * row["source_size"])
        os.utime(folder / "images" / name, ns=(int(row["source_version"]),) * 2)
    (folder / "images/3.png").write_bytes(encode(np.ones((9, 9, 3), np.uint8)))
    (folder / "images/new.jpg").write_bytes(encode(np.zeros((12, 16, 3), np.uint8), "JPEG"))
    text = (folder / "images.csv").read_text().replace("test,images/4.jpg,cat,c1\n", "")
    (folder / "images.csv").write_text(text + "test,images/new.jpg,ape,c9\n")
    output = folder / ("next" if base else "records")
    how = {"base": str(folder / "records")} if base else {"update": True}
    made = darkroom.convert(folder / "images.csv", output, **how)
    assert (made.written, made.rejected, made.labels) == (10, {}, (*LABELS, "ape"))
    after = read_rows(output)
    assert after.keys() == before.keys() - {"4.jpg"} | {"new.jpg"}
    same = ("key", "split", "label", "sha256", "pixel_hash", "extra")
    for name in before.keys() - {"3.png", "4.jpg"}:
        assert [after[name][each] for each in same] == [before[name][each] for each in same]
    assert (after["3.png"]["key"], after["3.png"]["height"]) == (before["3.png"]["key"], 9)
    assert darkroom.verify(output).is_sound
