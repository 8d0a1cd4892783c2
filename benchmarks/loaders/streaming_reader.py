"""MosaicML Streaming: MDS shards of 64 MB, one worker process for each core."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import contract
import numpy as np
import torch
from opencv_pixels import crop_center, crop_randomly
from streaming import MDSWriter, StreamingDataset
from torch.utils.data import DataLoader


def write(photographs: Path, target: Path) -> None:
    """Writes labels and the files' own bytes into shards, without compression."""
    paths = sorted(photographs.rglob("*.jpg"))
    labels = {name: number for number, name in enumerate(sorted({p.parent.name for p in paths}))}
    with MDSWriter(out=str(target), columns={"image": "bytes", "label": "int"}) as writer:
        for path in paths:
            writer.write({"image": path.read_bytes(), "label": labels[path.parent.name]})


class Photographs(StreamingDataset):
    """Samples, decoded by OpenCV, which is faster than Pillow."""

    rng: np.random.Generator | None = None
    use = "train"

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        """Returns the pixels of a sample, uint8 [224, 224, 3], and its label."""
        sample: dict[str, Any] = super().__getitem__(index)
        if self.use != "train":
            return crop_center(sample["image"]), sample["label"]
        if self.rng is None:
            self.rng = np.random.default_rng(torch.initial_seed())
        return crop_randomly(sample["image"], self.rng), sample["label"]


def read(target: Path, use: str, cores: int) -> Iterator[np.ndarray]:
    """Yields an epoch, shuffled in blocks by Streaming's own algorithm."""
    data = Photographs(
        local=str(target),
        shuffle=use == "train",
        batch_size=contract.BATCH,
        shuffle_seed=contract.SEED,
    )
    data.use = use
    for images, _ in DataLoader(data, batch_size=contract.BATCH, num_workers=cores):
        yield images.numpy()


if __name__ == "__main__":
    contract.run(write, read)
