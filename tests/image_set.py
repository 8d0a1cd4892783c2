"""A small data set of image files with a CSV, good and with faults."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from .pictures import write_label_folders

LABELS = ("cat", "dog", "owl")


class ImageSet:
    """A CSV and its images.

    Attributes:
        folder: Where they lie.
        rows: The CSV's rows: split, path, label.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: list[tuple[Any, ...]] = []

    @property
    def csv(self) -> Path:
        """Writes the CSV as the rows are now, and returns its path."""
        path = self.folder / "images.csv"
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([("split", "image_uri", "label"), *self.rows])
        return path

    def add(self, split: str, name: str, label: str, data: bytes | None) -> None:
        """Adds a row, and its file unless `data` is None."""
        if data is not None:
            (self.folder / name).write_bytes(data)
        self.rows.append((split, name, label))


def make_images(folder: Path, suffix: str) -> ImageSet:
    """Draws forty different images of three labels: 32 to train, 8 to evaluate."""
    rng = np.random.default_rng(11)
    images = ImageSet(folder)
    images.folder.mkdir()
    for number in range(40):
        pixels = rng.integers(0, 256, (9, 7, 3), np.uint8)
        name = f"{number:02d}.{suffix}"
        Image.fromarray(pixels).save(images.folder / name)
        split = "VALIDATION" if number % 5 == 4 else "TRAIN"
        images.add(split, name, LABELS[number % 3], None)
    return images


@pytest.fixture
def image_set(tmp_path: Path) -> ImageSet:
    """Forty different PNGs of three labels: 32 to train, 8 to evaluate."""
    return make_images(tmp_path / "images", "png")


@pytest.fixture
def jpeg_set(tmp_path: Path) -> ImageSet:
    """The same as JPEGs, whose conversion is cheaper: it starts no process of a decoder."""
    return make_images(tmp_path / "images", "jpg")


@pytest.fixture(scope="session")
def converted_jpegs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of the same JPEGs, which no test changes."""
    from darkroom.conversion.convert import convert

    folder = tmp_path_factory.mktemp("jpegs")
    convert(str(make_images(folder / "images", "jpg").csv), str(folder / "records"))
    return folder / "records"


@pytest.fixture
def jpeg_records(converted_jpegs: Path, tmp_path: Path) -> Path:
    """A copy of it, for a test that changes it."""
    return shutil.copytree(converted_jpegs, tmp_path / "records")


@pytest.fixture(scope="session")
def labelled_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images in folders of two labels (`src`) and their dataset (`records`), which has two rejects.

    It has one shard of each split. No test changes it.
    """
    from darkroom.conversion.convert import convert

    folder = tmp_path_factory.mktemp("labelled")
    write_label_folders(folder / "src", 12)
    for name in ("bad", "worse"):
        (folder / "src" / "cat" / f"{name}.png").write_text("no image")
    options = {"max_rejects": 1.0, "split_ratios": "80,20,0", "num_shards": 1}
    convert(folder / "src", folder / "records", **options)
    return folder


@pytest.fixture
def faulty_set(jpeg_set: ImageSet) -> ImageSet:
    """The same and eight more rows: four bad images, three faults of rows, one repeated row."""
    jpeg_set.add("TRAIN", "page.jpg", "cat", b"<html>no</html>")
    jpeg_set.add("TRAIN", "none.jpg", "cat", b"")
    jpeg_set.add("TRAIN", "gone.jpg", "dog", None)
    jpeg_set.add("TEST", "cut.jpg", "dog", (jpeg_set.folder / "00.jpg").read_bytes()[:-9])
    jpeg_set.add("TRAIN", "03.jpg", "", None)  # no label
    jpeg_set.add("TEST", "01.jpg", "dog", None)  # in TRAIN before: both go
    jpeg_set.rows.append(jpeg_set.rows[2])
    return jpeg_set
