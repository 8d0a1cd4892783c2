"""darkroom without TensorFlow: its records in NumPy, read with the default options."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import contract
import numpy as np

import darkroom
from darkroom.options.input import InputOptions


def write(photographs: Path, target: Path) -> None:
    """Converts the folder with darkroom's defaults, which check every image completely."""
    darkroom.convert(photographs / "train", target, split_ratios="100/0/0")


def make_options(use: str) -> InputOptions:
    """Returns darkroom's defaults with the pixels of the contract."""
    resize = "center_crop" if use == "eval" else "stretch"
    size = (contract.SIZE, contract.SIZE)
    return InputOptions(size, batch_size=contract.BATCH, augment="crop", resize=resize)


def read(target: Path, use: str, cores: int) -> Iterator[np.ndarray]:
    """Yields an epoch; a thread for each core decodes."""
    options = make_options(use)
    data = darkroom.load(target, training=use == "train", options=options, framework="numpy")
    for images, _ in data["train"]:
        yield images


if __name__ == "__main__":
    contract.run(write, read)
