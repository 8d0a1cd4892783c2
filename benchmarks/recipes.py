"""How good the defaults of training are, beside recipes that were set by hand.

    python benchmarks/recipes.py [--data FOLDER]
        [--sets photographs frozen digits textures balance] [--seeds 0 1 2]

FOLDER has photographs as <split>/<label>/<file>. Beside them there are the demo's digits, which are
those of scikit-learn, and textures that this file draws. Each row is a recipe: what
`darkroom train` is told beyond its defaults. The accuracy is that of the exported model on the eval
and the test split together. Of several seeds the table has the median, and then each. The seconds
are those of the whole command, by the clock and, in brackets, of the processor. The features of a
frozen base are computed once for a table, by its first training.

The set `balance` has of every second label only a twentieth of the photographs for training.
"""

from __future__ import annotations

import argparse
import csv
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

import darkroom
from darkroom.pipelines.local.demo import FAULTS, write_demo_dataset

Array = npt.NDArray[Any]

# Where a texture has its second color, by coordinates in periods.
_TEXTURES: dict[str, Callable[[Array, Array], Array]] = {
    "bricks": lambda u, v: (v % 1 < 0.2) | ((u / 2 + v // 1 / 2) % 1 < 0.1),
    "checks": lambda u, v: (u // 1 + v // 1) % 2 == 0,
    "dots": lambda u, v: (u % 1 - 0.5) ** 2 + (v % 1 - 0.5) ** 2 < 0.1,
    "grid": lambda u, v: (u % 1 < 0.2) | (v % 1 < 0.2),
    "rings": lambda u, v: np.hypot(u - 2, v - 2) % 1 < 0.5,
    "stripes": lambda u, v: u % 1 < 0.5,
    "waves": lambda u, v: (u + 0.3 * np.sin(np.pi * v)) % 1 < 0.5,
    "zigzag": lambda u, v: (u + np.abs(v % 1 - 0.5)) % 1 < 0.5,
}
_DRAWN = {"train": 75, "validation": 25, "test": 50}
_SIDE = 96
_IMBALANCE = 20


class Table(NamedTuple):
    """The trainings on a set.

    Attributes:
        options: What all of them are told.
        rows: The recipes: what each is told beside that; the first one has the defaults.
    """

    options: str
    rows: Sequence[str]


# What the defaults were before.
_ADAM = (
    "--learning-rate 0.001 --schedule constant --warmup-ratio 0 --weight-decay 0 --clip-norm 0 "
    "--batch-size 32"
)
_SMOOTH, _BATCH, _CROP = "--label-smoothing 0.1", "--batch-size 32", "--augment crop=0.5-1,flip"
_GRID = ("", _ADAM, _SMOOTH, _BATCH, "--learning-rate 0.01", _CROP, "--augment none")
_TABLES = {
    "photographs": Table("", _GRID),
    "frozen": Table(
        "--model efficientnet-lite0",
        ("", _ADAM, _SMOOTH, _BATCH, "--learning-rate 0.01", "--augment none"),
    ),
    "digits": Table(
        "--image-size 16 --epochs 8 --augment none",
        ("", _ADAM, _SMOOTH, _BATCH, "--augment flip", "--augment crop=0.7-1", "--epochs 30"),
    ),
    "textures": Table("", _GRID),
    "balance": Table("--model efficientnet-lite0", ("", "--balance weights", "--balance sampling")),
}


def draw_textures(folder: Path) -> Path:
    """Draws images <split>/<texture>/<number>.jpg in any two colors, at any scale and angle."""
    generator = np.random.default_rng(0)
    for split, count in _DRAWN.items():
        for texture in _TEXTURES:
            place = folder / split / texture
            place.mkdir(parents=True)
            for number in range(count):
                draw_texture(texture, generator).save(place / f"{number:03}.jpg", quality=90)
    return folder


def draw_texture(texture: str, generator: np.random.Generator) -> Image.Image:
    """Draws an image of one texture, with noise."""
    ground, color = generator.integers(0, 256, (2, 3))
    # Colors of which one cannot be told from the other would be nobody's fault.
    while np.abs(ground - color).sum() < 150:
        color = generator.integers(0, 256, 3)
    turn, period = generator.uniform(0, 2 * np.pi), generator.uniform(10, 24)
    rows, columns = np.mgrid[:_SIDE, :_SIDE] / period + generator.uniform(0, 1, (2, 1, 1))
    u = rows * np.cos(turn) + columns * np.sin(turn)
    v = columns * np.cos(turn) - rows * np.sin(turn)
    is_color = _TEXTURES[texture](u, v)[..., None]
    pixels = np.where(is_color, color, ground) + generator.normal(0, 16, (_SIDE, _SIDE, 3))
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def write_digits(scratch: Path) -> Path:
    """Writes the demo's digits without its faults; every second eval image is for the test."""
    source = write_demo_dataset(scratch / "digits")
    faults = {fault.path for fault in FAULTS}
    with source.open(newline="") as file:
        rows = [row for row in csv.reader(file) if row[1] not in faults]
    for row in [row for row in rows if row[0] == "VALIDATION"][::2]:
        row[0] = "TEST"
    with source.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return source


def write_imbalance(data: Path, folder: Path) -> Path:
    """Copies photographs, but of every second label only a twentieth of those for training."""
    for place in sorted(path for path in data.glob("*/*") if path.is_dir()):
        split, label = place.relative_to(data).parts
        labels = sorted(path.name for path in place.parent.iterdir())
        files = sorted(place.iterdir())
        if split == "train" and labels.index(label) % 2:
            files = files[: max(1, len(files) // _IMBALANCE)]
        target = folder / split / label
        target.mkdir(parents=True)
        for file in files:
            shutil.copyfile(file, target / file.name)
    return folder


class Outcome(NamedTuple):
    """What a training gave, and what it took.

    Attributes:
        accuracy: Share of right answers on the eval and test split, 0 to 1.
        recall: Mean recall of the labels there.
        wall: Seconds by the clock.
        cpu: Seconds of all processors, user and system.
    """

    accuracy: float
    recall: float
    wall: float
    cpu: float


def run_training(records: Path, run_dir: Path, options: Sequence[str]) -> Outcome:
    """Trains by the command, and scores the exported model."""
    used, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [sys.executable, "-W", "ignore", "-m", "darkroom.cli", "train"]
    command += ["--data", str(records), "--checkpoint-dir", str(run_dir), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(options)}:\n{done.stderr[-2000:]}")
    wall, spent = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = spent.ru_utime + spent.ru_stime - used.ru_utime - used.ru_stime
    right, total = Counter[str](), Counter[str]()
    for split in ("eval", "test"):
        for score in darkroom.evaluate(run_dir, records, split).metrics.classes:
            right[score.label] += round((score.recall or 0) * score.support)
            total[score.label] += score.support
    recalls = [right[label] / count for label, count in total.items() if count]
    return Outcome(right.total() / total.total(), statistics.mean(recalls), wall, cpu)


def print_rows(
    records: Path, scratch: Path, rows: Sequence[str], options: Sequence[str], seeds: Sequence[str]
) -> None:
    """Prints a row for each recipe."""
    print("| recipe | accuracy | macro recall | seconds (of the processor) |")
    print("| --- | --- | --- | --- |")
    for number, row in enumerate(rows):
        found = []
        for seed in seeds:
            given = [*options, *row.split(), "--seed", seed]
            run_dir = scratch / f"run-{number}-{seed}"
            found.append(run_training(records, run_dir, given))
            shutil.rmtree(run_dir)
        accuracies, recalls, *costs = zip(*found, strict=True)
        wall, cpu = map(statistics.median, costs)
        cells = [f"`{row}`" if row else "defaults", *map(format_cell, (accuracies, recalls))]
        print(f"| {' | '.join(cells)} | {wall:.0f} ({cpu:.0f}) |", flush=True)


def format_cell(values: Sequence[float]) -> str:
    """Returns the median of values, and each of them."""
    each = ", ".join(f"{value:.3f}" for value in values)
    return f"{statistics.median(values):.3f} ({each})"


def write_source(name: str, data: Path | None, scratch: Path) -> Path | None:
    """Returns the images of a set; None where it needs photographs."""
    if name == "digits":
        return write_digits(scratch)
    if name == "textures":
        return draw_textures(scratch / "textures")
    if name == "balance" and data is not None:
        return write_imbalance(data, scratch / "rare")
    return data


def main() -> None:
    """Prints the tables of the sets."""
    parser = argparse.ArgumentParser(description="Compare the defaults of training with others.")
    parser.add_argument("--data", type=Path, help="folder of photographs")
    parser.add_argument("--sets", nargs="+", choices=list(_TABLES), default=list(_TABLES))
    parser.add_argument("--seeds", nargs="+", default=("0", "1", "2"), help="default: 0 1 2")
    arguments = parser.parse_args()
    for name in arguments.sets:
        with tempfile.TemporaryDirectory() as folder:
            scratch, table = Path(folder), _TABLES[name]
            source = write_source(name, arguments.data, scratch)
            if source is None:
                print(f"{name} needs --data\n", file=sys.stderr)
                continue
            darkroom.convert(source, scratch / "records")
            options = [*table.options.split(), "--feature-cache", str(scratch / "features")]
            print(f"\n{name} {table.options}\n")
            print_rows(scratch / "records", scratch, table.rows, options, arguments.seeds)


if __name__ == "__main__":
    main()
