"""How good the defaults of training are, beside recipes that were set by hand.

    python benchmarks/recipes.py [--data FOLDER] [--sets photographs frozen fine-tuned digits
        textures balance] [--seeds 0] [--draws 0 1 2] [--rows 0 1 ...]

FOLDER has photographs as <split>/<label>/<file>. Beside them there are scikit-learn's digits, and
textures that are drawn. Each row is a recipe: what `darkroom train` is told beyond its defaults.
The accuracy is that of the exported model on the eval and the test split together. The seconds are
those of the whole command, by the clock and, in brackets, of the processor. The features of a
frozen base are computed once for a table.

A table has several draws: the photographs in other splits, or other textures. Draw 0 has the splits
of FOLDER; digits have no other one. All recipes have the same draws and seeds, so what counts is
the difference to the defaults: its mean over draws and seeds, and the standard error of that.

The set `balance` has of half of the labels only a twentieth of the photographs for training. Its
difference is that of macro recall.
"""

from __future__ import annotations

import argparse
import math
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from trainings.commands import Cost, Score, format_costs, format_each, score, train
from trainings.sets import draw_textures, make_rare, split_again, write_digits

import darkroom
from darkroom.options.recipe import BALANCES


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
_SMOOTH, _BATCH = "--label-smoothing 0.1", "--batch-size 32"
_GRID = ("", _ADAM, _SMOOTH, _BATCH, f"{_BATCH} {_SMOOTH}")
# One default is another one.
_CHANGES = (
    "--learning-rate 0.001",
    "--learning-rate 0.01",
    "--schedule constant",
    "--clip-norm 0",
    "--epochs 15",
    "--image-size 96",
    "--augment crop=0.5-1,flip",
    "--augment none",
)
_LITE = "--model efficientnet-lite0"
_TUNED = f"--augment crop=0.35-1,flip {_SMOOTH}"
_TABLES = {
    "photographs": Table("", (*_GRID, *_CHANGES)),
    "frozen": Table(
        _LITE,
        ("", _ADAM, _SMOOTH, _BATCH, "--learning-rate 0.001", "--augment crop,flip"),
    ),
    "fine-tuned": Table(
        f"{_LITE} --fine-tune-epochs 6",
        (
            "",
            _TUNED,
            f"{_TUNED} {_BATCH}",
            f"{_TUNED} {_BATCH} --fine-tune-epochs 12",
            f"{_TUNED} --learning-rate 0.006",
            f"{_TUNED} --image-size 256",
            "--fine-tune-epochs 0",
        ),
    ),
    "digits": Table(
        "--image-size 16 --epochs 8 --augment none",
        (*_GRID, "--augment flip", "--augment crop=0.7-1", "--epochs 30"),
    ),
    "textures": Table("", (*_GRID, "--augment crop=0.5-1,flip")),
    "balance": Table(_LITE, ("", *(f"--balance {how}" for how in BALANCES[1:]))),
}


class Outcome(NamedTuple):
    """What a training gave, and what it took."""

    score: Score
    cost: Cost


def write_source(name: str, data: Path | None, scratch: Path, draw: int) -> Path | None:
    """Returns the images of a set in a draw; None where it needs photographs."""
    folder = scratch / "images"
    if name == "digits":
        return write_digits(folder)
    if name == "textures":
        return draw_textures(folder, draw)
    if data is None:
        return None
    split_again(data, folder, draw)
    return make_rare(folder, draw) if name == "balance" else folder


def run_rows(
    records: Path, scratch: Path, rows: Sequence[list[str]], seeds: Sequence[str]
) -> list[list[Outcome]]:
    """Trains each recipe with each seed."""
    found = []
    for row in rows:
        outcomes = []
        for seed in seeds:
            run_dir = scratch / "run"
            cost = train(records, run_dir, [*row, "--seed", seed])
            outcomes.append(Outcome(score(run_dir, records), cost))
            shutil.rmtree(run_dir)
        print(f"{' '.join(row)}: {outcomes}", file=sys.stderr, flush=True)
        found.append(outcomes)
    return found


def print_table(rows: Sequence[str], draws: Sequence[list[list[Outcome]]], *, rare: bool) -> None:
    """Prints a row for each recipe.

    Args:
        rows: The recipes.
        draws: For each draw, the outcomes of each recipe with each seed.
        rare: What counts is macro recall, not accuracy.
    """
    print("| recipe | accuracy | macro recall | difference, points | seconds (of the processor) |")
    print("| --- | --- | --- | --- | --- |")
    for number, row in enumerate(rows):
        outcomes = [outcome for draw in draws for outcome in draw[number]]
        cells = [
            f"`{row}`" if row else "defaults",
            format_each([outcome.score.accuracy for outcome in outcomes]),
            format_each([outcome.score.recall for outcome in outcomes]),
            describe_difference(draws, number, rare=rare) if number else "",
            format_costs([outcome.cost for outcome in outcomes]),
        ]
        print(f"| {' | '.join(cells)} |", flush=True)


def describe_difference(draws: Sequence[list[list[Outcome]]], row: int, *, rare: bool) -> str:
    """Returns how much better a recipe is than the first one, and the standard error of that."""
    pairs = [
        (own.score, default.score)
        for draw in draws
        for own, default in zip(draw[row], draw[0], strict=True)
    ]
    each = [
        100 * (own.recall - default.recall if rare else own.accuracy - default.accuracy)
        for own, default in pairs
    ]
    text = f"{statistics.mean(each):+.1f}"
    if len(each) > 1:
        text += f" ± {statistics.stdev(each) / math.sqrt(len(each)):.1f}"
    return text


def main() -> None:
    """Prints the tables of the sets."""
    parser = argparse.ArgumentParser(description="Compare the defaults of training with others.")
    parser.add_argument("--data", type=Path, help="folder of photographs")
    parser.add_argument("--sets", nargs="+", choices=list(_TABLES), default=list(_TABLES))
    parser.add_argument("--seeds", nargs="+", default=("0",), help="default: 0")
    parser.add_argument("--draws", nargs="+", type=int, default=(0, 1, 2), help="default: 0 1 2")
    parser.add_argument("--rows", nargs="+", type=int, help="numbers of recipes, the first with 0")
    arguments = parser.parse_args()
    for name in arguments.sets:
        table = _TABLES[name]
        rows = [table.rows[number] for number in arguments.rows or range(len(table.rows))]
        draws = arguments.draws[:1] if name == "digits" else arguments.draws
        measure(name, rows, arguments.data, draws, arguments.seeds)


def measure(
    name: str, rows: Sequence[str], data: Path | None, draws: Sequence[int], seeds: Sequence[str]
) -> None:
    """Prints the table of a set."""
    options = _TABLES[name].options
    found = []
    with tempfile.TemporaryDirectory() as cache:
        given = [[*options.split(), "--feature-cache", cache, *row.split()] for row in rows]
        for draw in draws:
            with tempfile.TemporaryDirectory() as folder:
                scratch = Path(folder)
                source = write_source(name, data, scratch, draw)
                if source is None:
                    print(f"{name} needs --data\n", file=sys.stderr)
                    return
                darkroom.convert(source, scratch / "records")
                found.append(run_rows(scratch / "records", scratch, given, seeds))
    print(f"\n{name} {options}, draws {' '.join(map(str, draws))}, seeds {' '.join(seeds)}\n")
    print_table(rows, found, rare=name == "balance")


if __name__ == "__main__":
    main()
