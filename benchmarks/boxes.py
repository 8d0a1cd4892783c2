"""How much boxes cost: conversion and input with seven boxes an image, beside one label an image.

    python benchmarks/boxes.py PHOTOGRAPHS [--rounds 3] [--epochs 2] [--frameworks numpy tensorflow]

Both lists name the same images, and rounds alternate; a first one, of one epoch, is not counted.
Times are processor seconds of all processes, which say more than the clock where a machine is
shared. The photographs are copied eight times. Of frameworks, what is asked for must be installed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from PIL import Image

import darkroom

KINDS = ("label", "boxes")
AUGMENTS = {"whole": "none", "windows and mirrors": "crop,flip"}
COPIES, BOXES, CLASSES = 8, 7, 20


def write_lists(photographs: Path, folder: Path) -> None:
    """Writes links to photographs, and a list of them for each kind of target."""
    chance = random.Random(0)
    with (folder / "label.jsonl").open("w") as labels, (folder / "boxes.jsonl").open("w") as boxes:
        for photograph in sorted(photographs.rglob("*.jpg")):
            with Image.open(photograph) as image:
                width, height = image.size
            for copy in range(COPIES):
                path = folder / f"{copy}-{photograph.parent.name}-{photograph.name}"
                path.write_bytes(photograph.read_bytes() + bytes([copy]))
                objects = []
                for _ in range(BOXES):
                    left, top = chance.uniform(0, 0.8 * width), chance.uniform(0, 0.8 * height)
                    right = min(width, left + chance.uniform(5, width / 2))
                    bottom = min(height, top + chance.uniform(5, height / 2))
                    box = [round(side, 2) for side in (left, top, right, bottom)]
                    objects.append({"label": f"c{chance.randrange(CLASSES)}", "box": box})
                row = {"image_uri": str(path), "split": "train"}
                labels.write(json.dumps({**row, "label": objects[0]["label"]}) + "\n")
                boxes.write(json.dumps({**row, "objects": objects}) + "\n")


def measure(work: Callable[[], object]) -> float:
    """Returns the processor seconds of this process and those that it waited for."""
    before = os.times()
    work()
    return sum(os.times()[:4]) - sum(before[:4])


def convert(folder: Path, kind: str) -> None:
    """Converts the list of a kind, in a process of its own."""
    command = [sys.executable, "-m", "darkroom.cli", "convert", f"{folder}/{kind}.jsonl"]
    out = ["--output-dir", f"{folder}/{kind}", "--overwrite"]
    subprocess.run([*command, *out], check=True, capture_output=True)


def read(folder: Path, framework: str, augment: str, epochs: int, kind: str) -> None:
    """Reads epochs of a kind."""
    options = {"image_size": 224, "batch_size": 64, "training": True, "augment": augment}
    data = darkroom.load(f"{folder}/{kind}", framework=framework, num_threads=1, **options)
    for _ in range(epochs):
        for _ in data["train"]:
            pass


def compare(name: str, rounds: int, work: Callable[[str], object]) -> None:
    """Prints the share of the speed of labels that boxes have."""
    found: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for _ in range(rounds):
        for kind in KINDS:
            found[kind].append(measure(partial(work, kind)))
    label, boxes = (statistics.median(found[kind]) for kind in KINDS)
    shown = f"{name}: {label / boxes:.3f} of the speed of labels"
    print(f"{shown} ({label:.2f} s, {boxes:.2f} s)", flush=True)


def main() -> None:
    """Compares conversion, and the input of each framework."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("photographs", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--frameworks", nargs="+", default=["numpy", "tensorflow"])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_lists(given.photographs, folder)
        compare("conversion", given.rounds, partial(convert, folder))
        for framework, (shown, augment) in itertools.product(given.frameworks, AUGMENTS.items()):
            work = partial(read, folder, framework, augment, given.epochs)
            for kind in KINDS:
                read(folder, framework, augment, 1, kind)
            compare(f"input of {framework}, {shown}", given.rounds, work)


if __name__ == "__main__":
    main()
