"""How good a pretrained model is after its head was trained, and what that costs.

    python benchmarks/pretrained.py [--data FOLDER] [--model efficientnet-lite0]
        [--augment none flip crop,flip] [--seeds 0 1 2] [--epochs 10] [--fine-tune-epochs 6]
        [OPTIONS OF darkroom train]

FOLDER has images as <split>/<label>/<file> or <label>/<file>; without --data, it takes the demo's
digits, at 64x64. The commands are those of a user: `darkroom convert`, then `darkroom train`, with
an empty cache of features. The accuracy is that of the exported model, through its signature, on
the eval and the test split together: the eval split has chosen the epoch, which is worth little.
Then a hundredth of the training images get other contents, the folder is converted again, and a
second training finds the features of all others. At last the model is fine-tuned after its head,
with the last augmentation. Seconds of the clock, and of the processor in
brackets, of the commands from start to end.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from darkroom.dataset.commit import read_dataset
from darkroom.pipelines.local.demo import FAULTS, write_demo_dataset
from darkroom.training.export import measure_accuracy

# One in so many training images changes before the second training.
_CHANGED = 100


class Cost(NamedTuple):
    """What a command took, in seconds.

    Attributes:
        wall: By the clock.
        cpu: Of all processors, user and system.
    """

    wall: float
    cpu: float

    def __add__(self, other: object) -> Cost:
        assert isinstance(other, Cost)  # noqa: S101
        return Cost(self.wall + other.wall, self.cpu + other.cpu)

    def __str__(self) -> str:
        return f"{self.wall:.1f} s ({self.cpu:.1f} s)"


def run(*arguments: str) -> Cost:
    """Runs a command of darkroom in a process of its own."""
    used, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [sys.executable, "-W", "ignore", "-m", "darkroom.cli", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(arguments)}:\n{done.stderr[-2000:]}")
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = spent.ru_utime + spent.ru_stime - used.ru_utime - used.ru_stime
    return Cost(time.monotonic() - started, cpu)


def copy_images(folder: Path, scratch: Path) -> Path:
    """Copies a folder of images, so that some of them may change."""
    return Path(shutil.copytree(folder, scratch / "images", copy_function=shutil.copyfile))


def write_digits(scratch: Path) -> Path:
    """Writes the demo's digits without the faults; returns the list of them."""
    source = write_demo_dataset(scratch / "digits")
    faults = {fault.path for fault in FAULTS}
    with source.open(newline="") as file:
        rows = [row for row in csv.reader(file) if row[1] not in faults]
    with source.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return source


def change_images(records: Path, source: Path) -> int:
    """Gives a hundredth of the training images other contents; returns how many."""
    from darkroom.dataset.index import read_index

    folder = source if source.is_dir() else source.parent
    rows = read_index(str(records / "index"), ["uri", "split"]).to_pylist()
    uris = sorted(row["uri"] for row in rows if row["split"] == "train")
    changed = uris[::_CHANGED]
    for uri in changed:
        path = Path(uri) if os.path.isabs(uri) else folder / uri
        image, data = Image.open(path), io.BytesIO()
        image.transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(data, image.format)
        path.write_bytes(data.getvalue())
    return len(changed)


def measure(records: Path, model: Path) -> tuple[float, int]:
    """Returns the accuracy of an exported model on the eval and the test split, and their size."""
    splits = read_dataset(str(records)).splits
    names = [name for name in ("eval", "test") if name in splits]
    files = [str(path) for name in names for path in (records / f"Split-{name}").iterdir()]
    return measure_accuracy(str(model), files), sum(splits[name].records for name in names)


def main() -> None:
    """Converts and trains, and prints the tables."""
    parser = argparse.ArgumentParser(description="Measure the training of a pretrained model.")
    parser.add_argument("--data", type=Path, help="folder of images (default: the demo's digits)")
    parser.add_argument("--model", default="efficientnet-lite0")
    parser.add_argument("--augment", nargs="+", default=("none", "flip", "crop,flip"))
    parser.add_argument("--seeds", nargs="+", default=("0", "1", "2"), help="default: 0 1 2")
    parser.add_argument("--epochs", default="10", help="default: 10")
    parser.add_argument("--fine-tune-epochs", default="6", help="default: 6; 0 for none")
    arguments, others = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        source = copy_images(arguments.data, scratch) if arguments.data else write_digits(scratch)
        options = ["--model", arguments.model, "--epochs", arguments.epochs]
        options += [*([] if arguments.data else ["--image-size", "64"]), *others]
        frozen = [*options, "--fine-tune-epochs", "0"]
        compare(source, scratch, frozen, arguments.augment, arguments.seeds)
        if arguments.fine_tune_epochs != "0":
            options += ["--fine-tune-epochs", arguments.fine_tune_epochs]
            fine_tune(scratch, options, arguments.augment[-1], arguments.seeds)


def compare(
    source: Path, scratch: Path, options: list[str], augments: list[str], seeds: list[str]
) -> None:
    """Prints a row for each augmentation, and one of the training after some images changed."""
    records = scratch / "records"
    converted = run("convert", str(source), "--output-dir", str(records))
    print("| `--augment` | accuracy | convert, train and export | the same, features known |")
    print("| --- | --- | --- | --- |")
    for augment in augments:
        caches = scratch / f"cache-{augment}"
        each, costs = [], []
        # The first seed again, for the time that a training takes with known features.
        for number, seed in enumerate((*seeds, seeds[0])):
            run_dir = scratch / f"{augment}-{number}"
            arguments = [*options, "--augment", augment, "--seed", seed]
            costs.append(train(records, run_dir, caches, arguments))
            accuracy, images = measure(records, run_dir / "model")
            each += [accuracy] * (number < len(seeds))
        shown = f"{statistics.median(each):.3f} ({', '.join(f'{a:.3f}' for a in each)})"
        print(f"| `{augment}` | {shown} | {converted + costs[0]} | {costs[-1]} |", flush=True)
    print(f"\nAccuracy on {images} images.")
    changed, augment = change_images(records, source), augments[-1]
    run("convert", str(source), "--output-dir", str(scratch / "changed"))
    run_dir, caches = scratch / "again", scratch / f"cache-{augment}"
    cost = train(scratch / "changed", run_dir, caches, [*options, "--augment", augment])
    accuracy, _ = measure(scratch / "changed", run_dir / "model")
    print(
        f"`{augment}` after {changed} training images have changed, without the conversion: "
        f"{cost}, accuracy {accuracy:.3f}."
    )


def fine_tune(scratch: Path, options: list[str], augment: str, seeds: list[str]) -> None:
    """Prints a row of trainings that go on after the head, whose features are known."""
    records, each, costs = scratch / "records", [], []
    for seed in seeds:
        run_dir = scratch / f"tuned-{seed}"
        arguments = [*options, "--augment", augment, "--seed", seed]
        costs.append(train(records, run_dir, scratch / f"cache-{augment}", arguments))
        each.append(measure(records, run_dir / "model")[0])
    median = statistics.median(each)
    print(f"\nFine-tuned: {median:.3f} ({', '.join(f'{a:.3f}' for a in each)}), {costs[0]}.")


def train(records: Path, run_dir: Path, cache: Path, options: list[str]) -> Cost:
    """Trains and exports a model."""
    return run(
        *("train", "--data", str(records), "--checkpoint-dir", str(run_dir)),
        *("--feature-cache", str(cache), *options),
    )


if __name__ == "__main__":
    main()
