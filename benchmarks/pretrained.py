"""How good a pretrained model is with the defaults of training, and what that costs.

    python benchmarks/pretrained.py [--data FOLDER] [--model efficientnet-lite0]
        [--seeds 0 1 2] [--fine-tune-epochs 6] [OPTIONS OF darkroom train]

FOLDER has images as <split>/<label>/<file> or <label>/<file>; without --data, scikit-learn's digits
are taken, at 64x64. The commands are those of a user: `darkroom convert`, then `darkroom train`,
with an empty cache of features. The accuracy is that of the exported model, through its signature,
on the eval and the test split together: the eval split has chosen the epoch, which is worth little.
The first training computes the features, the others find them. Then the model is fine-tuned after
its head. At last a hundredth of the training images get other contents, the folder is converted
again, and a training with each seed finds the features of all others. Each of them has a cache of
its own, as it was before. Seconds are of the clock, and in brackets of the processor, of the
commands from start to end.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from PIL import Image
from trainings.commands import Cost, format_costs, format_each, run, score, train
from trainings.sets import write_digits

# One in so many training images changes before the last trainings.
_CHANGED = 100


def copy_images(folder: Path, scratch: Path) -> Path:
    """Copies a folder of images, so that some of them may change."""
    return Path(shutil.copytree(folder, scratch / "images", copy_function=shutil.copyfile))


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


class Bench:
    """Trains with each seed, and prints a row.

    Args:
        scratch: A folder for everything.
        seeds: The seeds.
    """

    def __init__(self, scratch: Path, seeds: Sequence[str]) -> None:
        self._scratch, self._seeds = scratch, seeds
        self._cache = scratch / "features"

    def convert(self, source: Path, name: str) -> tuple[Path, Cost]:
        """Returns the records of images, and what they took."""
        records = self._scratch / name
        return records, run("convert", str(source), "--output-dir", str(records))

    def print_row(
        self, title: str, records: Path, options: Sequence[str], *, keeps: bool = True
    ) -> list[Cost]:
        """Prints accuracies and costs; returns the costs.

        Args:
            title: What the row is.
            records: What is trained on.
            options: What `darkroom train` is told.
            keeps: The features that a training computes are there for the next one.
        """
        costs, accuracies = [], []
        for seed in self._seeds:
            cache, run_dir = self._cache, self._scratch / "run"
            if not keeps:
                cache = Path(shutil.copytree(cache, self._scratch / "copy"))
            told = [*options, "--feature-cache", str(cache), "--seed", seed]
            costs.append(train(records, run_dir, told))
            accuracies.append(score(run_dir, records).accuracy)
            shutil.rmtree(run_dir)
            if not keeps:
                shutil.rmtree(cache)
        each = ", ".join(map(str, costs))
        print(f"| {title} | {format_each(accuracies)} | {each} |", flush=True)
        return costs


def main() -> None:
    """Converts and trains, and prints the table."""
    parser = argparse.ArgumentParser(description="Measure the training of a pretrained model.")
    parser.add_argument(
        "--data", type=Path, help="folder of images (default: scikit-learn's digits)"
    )
    parser.add_argument("--model", default="efficientnet-lite0")
    parser.add_argument("--seeds", nargs="+", default=("0", "1", "2"), help="default: 0 1 2")
    parser.add_argument("--fine-tune-epochs", default="6", help="default: 6; 0 for none")
    arguments, others = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        source = (
            copy_images(arguments.data, scratch)
            if arguments.data
            else write_digits(scratch / "images")
        )
        options = ["--model", arguments.model, *others]
        if not arguments.data:
            options += ["--image-size", "64"]
        frozen = [*options, "--fine-tune-epochs", "0"]
        bench = Bench(scratch, arguments.seeds)
        records, converted = bench.convert(source, "records")
        print(f"Converted in {converted}.\n")
        print("| | accuracy | train, export and evaluate, with each seed |\n| --- | --- | --- |")
        first, *_ = bench.print_row("frozen, features unknown at first", records, frozen)
        if arguments.fine_tune_epochs != "0":
            tuned = [*options, "--fine-tune-epochs", arguments.fine_tune_epochs]
            bench.print_row("fine-tuned, features known", records, tuned)
        title = f"{change_images(records, source)} training images are new"
        records, _ = bench.convert(source, "changed")
        costs = bench.print_row(title, records, frozen, keeps=False)
        print(f"\nFrom the folder to the model: {converted + first}.")
        print(f"After the change, without the conversion, the median: {format_costs(costs)}.")


if __name__ == "__main__":
    main()
