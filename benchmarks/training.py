"""How good trained models are, by augmentation, for the best epoch and the last one.

    python benchmarks/training.py [--data FOLDER] [--augment none flip crop,flip] [--seeds 0 1 2]
        [--image-size 64x64] [--batch-size 64] [--epochs 30]

FOLDER has images as <split>/<label>/<file> or <label>/<file>; without splits, a tenth of the images
is used to choose the epoch and another tenth to test. Without --data, it trains on scikit-learn's
digits, at 16x16 in batches of 32 for 8 epochs. All other options are the defaults of
`darkroom train`. The table shows the accuracy on the test split, which no training reads: of the
epoch with the lowest loss on the eval split, and of the last epoch. It is Markdown, with the median
of the seeds and then each seed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf
from trainings.sets import write_digits

import darkroom
from darkroom.cli.shared.flags import parse_size
from darkroom.data.open import open_data
from darkroom.dataset.commit import read_dataset
from darkroom.input.opening import open_splits
from darkroom.options.input import InputOptions
from darkroom.options.training import TrainingOptions
from darkroom.training.devices.placement import make_placement
from darkroom.training.run import train
from darkroom.training.state.folder import CHECKPOINTS_FOLDER

_AUGMENTATIONS = ("none", "flip", "crop,flip")
_DIGITS = {"image_size": (16, 16), "batch_size": 32, "epochs": 8}
_IMAGES = {"image_size": (64, 64), "batch_size": 64, "epochs": 30}


class Score(NamedTuple):
    """The accuracy of a training on the test split.

    Attributes:
        best: Accuracy of the exported model, 0 to 1.
        last: Accuracy of the model of the last epoch.
        epoch: Number of the exported epoch, from 1.
    """

    best: float
    last: float
    epoch: int


def convert(source: Path, scratch: Path) -> Path:
    """Converts images, and prints how many each split has."""
    darkroom.convert(source, scratch / "records")
    splits = read_dataset(str(scratch / "records")).splits
    print(", ".join(f"{name} {split.records:,}" for name, split in splits.items()), file=sys.stderr)
    return scratch / "records"


def measure_training(records: Path, run_dir: Path, options: TrainingOptions) -> Score:
    """Trains a model and returns its accuracy on the test split."""
    placement = make_placement(options.strategy)
    data = open_data([records])
    splits = open_splits(data.splits)
    trained = train(
        options,
        placement,
        training=splits["train"],
        evaluation=splits["eval"],
        run_dir=str(run_dir),
    )
    test = darkroom.load(
        str(records),
        options=InputOptions(options.image_size, resize=options.resize),
    )["test"]
    best = measure_accuracy(trained.model, test)
    latest = tf.train.latest_checkpoint(str(run_dir / CHECKPOINTS_FOLDER))
    weights = [variable.value for variable in trained.model.variables]
    tf.train.Checkpoint(model=weights).restore(latest).expect_partial()
    return Score(best, measure_accuracy(trained.model, test), trained.best_epoch)


def measure_accuracy(model: Any, batches: tf.data.Dataset) -> float:
    """Returns the share of images whose likeliest class is right."""
    right = total = 0
    for images, labels in batches:
        guesses = tf.argmax(model(images, training=False), axis=1)
        right += int(tf.reduce_sum(tf.cast(guesses == labels, tf.int32)))
        total += len(labels)
    return right / total


def format_row(augment: str, scores: list[Score]) -> str:
    """Returns one row of the table."""
    cells = [augment]
    for values in ([s.best for s in scores], [s.last for s in scores]):
        each = ", ".join(f"{value:.3f}" for value in values)
        cells.append(f"{statistics.median(values):.3f} ({each})")
    cells.append(", ".join(str(score.epoch) for score in scores))
    return f"| `{' | '.join([f'{cells[0]}`', *cells[1:]])} |"


def main() -> None:
    """Converts the images, trains and prints the table."""
    parser = argparse.ArgumentParser(description="Measure how good trained models are.")
    parser.add_argument(
        "--data", type=Path, help="folder of images (default: scikit-learn's digits)"
    )
    parser.add_argument("--augment", nargs="+", default=_AUGMENTATIONS, help="what to compare")
    parser.add_argument("--seeds", nargs="+", type=int, default=(0, 1, 2), help="default: 0 1 2")
    parser.add_argument("--image-size", type=parse_size, help="default: 64x64; digits 16x16")
    parser.add_argument("--batch-size", type=int, help="default: 64; digits 32")
    parser.add_argument("--epochs", type=int, help="default: 30; digits 8")
    arguments = parser.parse_args()
    values = dict(_IMAGES if arguments.data else _DIGITS)
    values |= {name: given for name in values if (given := getattr(arguments, name))}
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        records = convert(arguments.data or write_digits(scratch / "images"), scratch)
        print("| `--augment` | best epoch, test accuracy | last epoch | best epochs |")
        print("| --- | --- | --- | --- |")
        for augment in arguments.augment:
            scores = []
            for seed in arguments.seeds:
                options = TrainingOptions(augment=augment, seed=seed, **values)
                run_dir = scratch / f"{augment}-{seed}"
                scores.append(measure_training(records, run_dir, options))
                print(f"{augment}, seed {seed}: {scores[-1]}", file=sys.stderr)
            print(format_row(augment, scores), flush=True)


if __name__ == "__main__":
    main()
