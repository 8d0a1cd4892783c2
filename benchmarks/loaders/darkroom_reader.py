"""darkroom: its records, read with its default options."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import contract
import numpy as np

from darkroom.conversion.convert import convert
from darkroom.input.pipeline import make_eval_dataset, make_train_dataset
from darkroom.options.input import InputOptions


def write(photographs: Path, target: Path) -> None:
    """Converts the folder with darkroom's defaults, which check every image completely."""
    convert(photographs / "train", target, split_ratios="100/0/0")


def read(target: Path, use: str, cores: int) -> Iterator[np.ndarray]:
    """Yields an epoch; tf.data uses a thread for each core."""
    files = sorted(str(path) for path in target.glob("Split-train/*"))
    options = InputOptions(
        (contract.SIZE, contract.SIZE),
        batch_size=contract.BATCH,
        augment="crop",
        resize="center_crop" if use == "eval" else "stretch",
    )
    if use == "train":
        batches = make_train_dataset(files, options, epoch=0)
    else:
        batches = make_eval_dataset(files, options)
    for images, _ in batches:
        yield images.numpy()


if __name__ == "__main__":
    contract.run(write, read)
