"""LitData: optimized chunks of 64 MB, one worker process for each core."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import contract
import litdata
import numpy as np
import torch
from opencv_pixels import crop_center, crop_randomly


def _make_sample(labels: dict[str, int], path: str) -> dict[str, Any]:
    return {"image": Path(path).read_bytes(), "label": labels[Path(path).parent.name]}


def write(photographs: Path, target: Path) -> None:
    """Writes labels and the files' own bytes into chunks."""
    paths = sorted(photographs.rglob("*.jpg"))
    labels = {name: number for number, name in enumerate(sorted({p.parent.name for p in paths}))}
    litdata.optimize(
        fn=functools.partial(_make_sample, labels),
        inputs=[str(path) for path in paths],
        output_dir=str(target),
        chunk_bytes="64MB",
        num_workers=2,
    )


class Photographs(litdata.StreamingDataset):
    """Samples, decoded by OpenCV, which is faster than the decoders of LitData."""

    rng: np.random.Generator | None = None
    use = "train"

    def __getitem__(self, index: Any) -> tuple[np.ndarray, int]:
        """Returns the pixels of a sample, uint8 [224, 224, 3], and its label."""
        sample = super().__getitem__(index)
        if self.use != "train":
            return crop_center(sample["image"]), sample["label"]
        if self.rng is None:
            self.rng = np.random.default_rng(torch.initial_seed())
        return crop_randomly(sample["image"], self.rng), sample["label"]


def read(target: Path, use: str, cores: int) -> Iterator[np.ndarray]:
    """Yields an epoch; the chunks are shuffled, and the samples in them."""
    data = Photographs(str(target), shuffle=use == "train", drop_last=False, seed=contract.SEED)
    data.use = use
    batches = litdata.StreamingDataLoader(data, batch_size=contract.BATCH, num_workers=cores)
    for images, _ in batches:
        yield images.numpy()


if __name__ == "__main__":
    contract.run(write, read)
