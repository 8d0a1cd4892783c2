"""What an update costs, as a share of a conversion from nothing.

    python benchmarks/updates.py [--images 100000] [--kilobytes 28]

Photographs like noise, a few different ones under many names, are converted. Then lists with
changes update the dataset: the same list, 1 % new images, 100 edited images, 1 % edited images.
A line of JSON has for each: seconds, share of the time from nothing, share of the bytes of the
shards that are new (files with an inode that the old dataset lacks), and how many images were read.
`diff` compares the first dataset with the last one. The memory is the peak of this process.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from convert import draw_noise
from PIL import Image

import darkroom
from darkroom.conversion.shards import encode
from darkroom.options.conversion import ConversionOptions
from darkroom.validation.diff import diff

DISTINCT = 50


def make_photographs(folder: Path, kilobytes: float) -> list[Path]:
    """Writes a few JPEGs of about a size; returns their paths."""
    rng = np.random.default_rng(0)
    side = int(np.sqrt(kilobytes * 1024 * 4))
    paths = []
    for number in range(DISTINCT):
        path = folder / f"photograph-{number}.jpg"
        Image.fromarray(draw_noise(rng, side, side, 1.3)).save(path, quality=85)
        paths.append(path)
    return paths


class Source:
    """A list of images, which are links to a few files."""

    def __init__(self, folder: Path, photographs: list[Path], count: int) -> None:
        self._folder, self._photographs = folder, photographs
        self.labels: list[str] = []
        folder.mkdir()
        self.add(count)

    def add(self, count: int) -> None:
        """Adds images."""
        for number in range(len(self.labels), len(self.labels) + count):
            os.link(self._photographs[number % DISTINCT], self._folder / f"{number:08d}.jpg")
            self.labels.append("abcd"[number % 4])

    def edit(self, count: int) -> None:
        """Gives some images another label."""
        for number in random.Random(count).sample(range(len(self.labels)), count):
            self.labels[number] += "x"

    def write(self) -> Path:
        """Writes the list."""
        path = self._folder / "list.csv"
        with path.open("w") as file:
            file.write("image_uri,label\n")
            for number, label in enumerate(self.labels):
                file.write(f"{number:08d}.jpg,{label}\n")
        return path


def list_shards(root: Path) -> dict[int, int]:
    """Returns the bytes of the shards of a dataset by inode."""
    states = [path.stat() for path in root.glob("Split-*/*")]
    return {state.st_ino: state.st_size for state in states}


def main() -> None:
    """Prints a line of JSON for each update."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--images", type=int, default=100_000)
    parser.add_argument("--kilobytes", type=float, default=28)
    parser.add_argument("--shard-bytes", type=int, default=64 << 20)
    arguments = parser.parse_args()
    read = [0]
    original = encode.ImageReaders._read

    def count(self: Any, row: Any) -> Any:
        read[0] += 1
        return original(self, row)

    encode.ImageReaders._read = count  # type: ignore[method-assign]
    options = ConversionOptions(update=True, shard_bytes=arguments.shard_bytes)
    with tempfile.TemporaryDirectory() as scratch:
        folder, root = Path(scratch), Path(scratch, "records")
        photographs = make_photographs(folder, arguments.kilobytes)
        source = Source(folder / "images", photographs, arguments.images)
        hundredth = arguments.images // 100
        steps = {
            "from nothing": lambda: None,
            "nothing changed": lambda: None,
            "1 % new": lambda: source.add(hundredth),
            "100 edited": lambda: source.edit(100),
            "1 % edited": lambda: source.edit(hundredth),
        }
        whole, before = 0.0, {}
        for name, change in steps.items():
            change()
            path = source.write()
            read[0], started = 0, time.monotonic()
            with contextlib.redirect_stderr(io.StringIO()):
                darkroom.convert(path, root, options=options)
            seconds = time.monotonic() - started
            whole = whole or seconds
            shards = list_shards(root)
            new = sum(size for inode, size in shards.items() if inode not in before)
            found = {
                "update": name,
                "seconds": round(seconds, 2),
                "time": round(seconds / whole, 4),
                "bytes": round(new / sum(shards.values()), 4),
                "shards": len(shards),
                "read": read[0],
                "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
            }
            print(json.dumps(found), flush=True)
            if not before:
                first = folder / "first"
                os.system(f"cp -al {root} {first}")
            before = shards
        started = time.monotonic()
        policies = dict.fromkeys(("test_frozen", "class_loss", "test_to_train"), "warn")
        with contextlib.redirect_stderr(io.StringIO()):
            diff(first, root, policies=policies)
        print(json.dumps({"diff": round(time.monotonic() - started, 2)}))


if __name__ == "__main__":
    sys.exit(main())
