"""How good models of several labels and of numbers become in three minutes.

    python benchmarks/targets.py [--images 2000] [--minutes 3] [--kinds labels numbers]

Images of 96 x 96 pixels, noise like that of photographs. For `labels`, a circle, a square and a
triangle are drawn on them, any subset of the three; a row lists them. For `numbers`, a disc is
drawn, and a row has its middle and its radius in pixels. They are converted, trained with the
defaults of `darkroom train`, and scored on the test split, which no training reads.

Then the input of training with several labels is compared with that of the same images with one
label: the processor time of epochs that take turns.
"""

from __future__ import annotations

import argparse
import csv
import json
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from convert import draw_noise
from PIL import Image, ImageDraw

import darkroom
from darkroom.options.conversion import ConversionOptions
from darkroom.options.training import TrainingOptions

SIDE = 96
SHAPES = ("circle", "square", "triangle")
NUMBERS = ("x", "y", "radius")
PAIRS = 12


def draw_shapes(rng: np.random.Generator) -> tuple[Image.Image, list[str]]:
    """Returns an image and the names of the shapes in it."""
    picture = _draw_background(rng)
    draw = ImageDraw.Draw(picture)
    names = [name for name in SHAPES if rng.random() < 0.5]
    for name in names:
        radius = rng.uniform(9, 15)
        x, y = rng.uniform(radius, SIDE - radius, 2)
        color = tuple(rng.integers(0, 256, 3).tolist())
        box = (x - radius, y - radius, x + radius, y + radius)
        if name == "circle":
            draw.ellipse(box, fill=color)
        elif name == "square":
            draw.rectangle(box, fill=color)
        else:
            draw.polygon(
                [(x, y - radius), (x + radius, y + radius), (x - radius, y + radius)], color
            )
    return picture, names


def draw_disc(rng: np.random.Generator) -> tuple[Image.Image, list[float]]:
    """Returns an image and where its disc is and how large, in pixels."""
    picture = _draw_background(rng)
    radius = rng.uniform(6, 20)
    x, y = rng.uniform(radius, SIDE - radius, 2)
    color = tuple(rng.integers(0, 256, 3).tolist())
    ImageDraw.Draw(picture).ellipse((x - radius, y - radius, x + radius, y + radius), fill=color)
    return picture, [x, y, radius]


def write_images(folder: Path, kind: str, count: int) -> Path:
    """Writes images and their list; returns its path."""
    rng = np.random.default_rng(0)
    path = folder / "list.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        names = ["label"] if kind == "labels" else list(NUMBERS)
        writer.writerow(["image_uri", *names])
        for number in range(count):
            picture, said = draw_shapes(rng) if kind == "labels" else draw_disc(rng)
            name = f"{number:05d}.png"
            picture.save(folder / name)
            writer.writerow([name, *([";".join(said)] if kind == "labels" else said)])
    return path


def measure(kind: str, count: int, minutes: float, options: dict[str, Any]) -> dict[str, Any]:
    """Returns the scores of a model on the test split, and how long its training took."""
    with tempfile.TemporaryDirectory() as scratch:
        source = write_images(Path(scratch), kind, count)
        how: dict[str, Any] = {"label_separator": ";", "empty_labels": "none"}
        if kind == "numbers":
            how = {"target_columns": NUMBERS}
        records = Path(scratch) / "records"
        darkroom.convert(source, records, options=ConversionOptions(**how))
        started = time.monotonic()
        made = TrainingOptions(image_size=(SIDE, SIDE), fit_minutes=minutes, **options)
        result = darkroom.train(records, Path(scratch) / "training", options=made)
        seconds = time.monotonic() - started
        found = result.evaluation.to_dict() if result else {}
        return {
            "kind": kind,
            "seconds": round(seconds),
            "epochs": result and result.epochs,
            **found,
        }


def compare_input(count: int) -> dict[str, Any]:
    """Returns the speed of input with several labels as a share of that with one label."""
    with tempfile.TemporaryDirectory() as scratch:
        source = write_images(Path(scratch), "labels", count)
        batches = {}
        for kind in ("label", "labels"):
            table = pd.read_csv(source, keep_default_na=False)
            table["label"] = table["label"].replace("", "none")
            if kind == "label":
                table["label"] = table["label"].str.split(";").str[0]
            records = Path(scratch) / kind
            options = ConversionOptions(label_separator=";" if kind == "labels" else None)
            table["image_uri"] = f"{source.parent}/" + table["image_uri"]
            darkroom.convert(table, records, options=options)
            batches[kind] = darkroom.load(records, image_size=SIDE, training=True)["train"]
            _time_epoch(batches[kind])
        ratios = []
        for number in range(PAIRS):
            order = list(batches)[:: 1 if number % 2 else -1]
            seconds = {kind: _time_epoch(batches[kind]) for kind in order}
            ratios.append(seconds["label"] / seconds["labels"])
    return {"input": round(statistics.median(ratios), 3), "pairs": [round(r, 2) for r in ratios]}


def _time_epoch(batches: Any) -> float:
    """Returns the processor seconds of all threads for one epoch."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    for _ in batches:
        pass
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _draw_background(rng: np.random.Generator) -> Image.Image:
    return Image.fromarray(draw_noise(rng, SIDE, SIDE, rng.uniform(1.0, 1.6)))


def main() -> None:
    """Prints a line of JSON for each kind, and one for the input."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--kinds", nargs="*", default=["labels", "numbers"])
    parser.add_argument("--options", type=json.loads, default={}, help="of the training, as JSON")
    arguments = parser.parse_args()
    for kind in arguments.kinds:
        found = measure(kind, arguments.images, arguments.minutes, arguments.options)
        print(json.dumps(found), flush=True)
    print(json.dumps(compare_input(arguments.images)))


if __name__ == "__main__":
    sys.exit(main())
