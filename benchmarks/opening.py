"""How long `darkroom.load` takes to open a folder of images without a conversion.

    python benchmarks/opening.py [--images 4000] [--rounds 5]

Small JPEGs are drawn, in a folder for each of ten labels. Each round is a new process that has
imported TensorFlow, and nothing of darkroom; the files are in the page cache. Prints the seconds
and the processor seconds, of all rounds in order. The aim is less than a second on a quiet machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

_LABELS = 10
_OPEN = """
import os, sys, time
import tensorflow
started, before = time.perf_counter(), os.times()
import darkroom
data = darkroom.load(sys.argv[1], image_size=64)
seconds, after = time.perf_counter() - started, os.times()
print(seconds, after.user + after.system - before.user - before.system)
assert sum(data.num_images.values()) == int(sys.argv[2])
"""


def _draw_images(folder: Path, count: int) -> None:
    numbers = np.random.default_rng(0)
    for number in range(count):
        label = folder / f"label {number % _LABELS}"
        label.mkdir(exist_ok=True)
        pixels = numbers.integers(0, 256, (8, 8, 3)).astype(np.uint8)
        Image.fromarray(pixels).resize((64, 64)).save(label / f"{number}.jpg")


def _open_folder(folder: str, count: int) -> tuple[float, float]:
    """Returns the seconds and the processor seconds that a new process takes."""
    command = [sys.executable, "-c", _OPEN, folder, str(count)]
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, env=quiet, capture_output=True, text=True, check=True)
    wall, used = map(float, done.stdout.split())
    return wall, used


def main() -> None:
    """Draws the images, opens them in each round, and prints the times."""
    parser = argparse.ArgumentParser(description="Time opening a folder of images.")
    parser.add_argument("--images", type=int, default=4000, help="number of images")
    parser.add_argument("--rounds", type=int, default=5, help="number of new processes")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        _draw_images(Path(folder), arguments.images)
        taken = [_open_folder(folder, arguments.images) for _ in range(arguments.rounds)]
    print(f"{arguments.images:,} images; median, and all rounds")
    for name, found in zip(("seconds", "processor seconds"), zip(*taken, strict=True), strict=True):
        rounds = ", ".join(f"{value:.2f}" for value in found)
        print(f"{name:18}{statistics.median(found):6.2f}  {rounds}")


if __name__ == "__main__":
    main()
