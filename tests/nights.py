"""A list that grows and changes, night by night."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
from PIL import Image

import darkroom
from darkroom.conversion.planned_list import list_planned_rows
from darkroom.options.conversion import ConversionOptions

SHARD_BYTES = 2_000


class Nights:
    """A list that grows, and its images.

    Attributes:
        rows: Label and split by the name of an image.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.list = folder / "images", folder / "images/list.csv"
        self.folder.mkdir(parents=True)
        self.rows: dict[str, tuple[str, str]] = {}
        self._random = np.random.default_rng(7)
        self._drawn: dict[str, bytes] = {}

    def draw(self, name: str) -> None:
        """Writes an image."""
        pixels = self._random.integers(0, 256, (9, 8, 3), np.uint8)
        Image.fromarray(pixels).save(self.folder / name, quality=90)
        self._drawn[name] = (self.folder / name).read_bytes()

    def restore(self) -> None:
        """Makes all images readable again."""
        for name, data in self._drawn.items():
            (self.folder / name).write_bytes(data)

    def add(self, count: int, label: str, split: str) -> None:
        """Adds rows to the list."""
        for number in range(len(self.rows), len(self.rows) + count):
            self.draw(f"{number:02d}.jpg")
            self.rows[f"{number:02d}.jpg"] = label, split
        self.write()

    def write(self) -> None:
        """Writes the list."""
        lines = [f"{name},{label},{split}\n" for name, (label, split) in self.rows.items()]
        self.list.write_text("image_uri,label,split\n" + "".join(lines))

    def spoil(self, names: list[str]) -> None:
        """Changes the bytes of images, but neither size nor time: whoever reads one rejects it."""
        for name in names:
            path, state = self.folder / name, (self.folder / name).stat()
            path.write_bytes(bytes(state.st_size))
            os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))

    def first(self) -> None:
        """Writes the list of the first night."""
        for label, split, count in (
            ("cat", "TRAIN", 20),
            ("dog", "TRAIN", 12),
            ("cat", "EVAL", 4),
            ("dog", "TEST", 4),
        ):
            self.add(count, label, split)

    def second(self) -> None:
        """Adds two rows, relabels two, and makes the images of all others unreadable."""
        before = [*self.rows]
        self.spoil(before)
        self.rows["03.jpg"] = self.rows["05.jpg"] = ("dog", "TRAIN")
        self.add(2, "owl", "TRAIN")

    def third(self) -> None:
        """Changes an image of test."""
        test = next(name for name, (_, split) in self.rows.items() if split == "TEST")
        self.draw(test)


def read_shards(folder: Path) -> dict[str, int]:
    """Returns the number of the file of each shard, by its hash."""
    splits = json.loads((folder / "dataset.json").read_text())["splits"]
    return {
        shard["sha256"]: (folder / shard["file"]).stat().st_ino
        for split in splits.values()
        for shard in split["shards"]
    }


def check_like_from_nothing(dataset: Path, nights: Nights, scratch: Path) -> None:
    """Checks that the exported list, converted from nothing, gives the same shards and labels."""
    list_planned_rows(dataset, scratch / "all.jsonl")
    nights.restore()
    options = ConversionOptions(shard_bytes=SHARD_BYTES)
    darkroom.convert(
        scratch / "all.jsonl",
        scratch / "again",
        label_map=dataset / "labels.txt",
        options=options,
    )
    assert read_shards(scratch / "again").keys() == read_shards(dataset).keys()
    assert (scratch / "again/labels.txt").read_bytes() == (dataset / "labels.txt").read_bytes()
