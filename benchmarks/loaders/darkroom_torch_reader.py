"""darkroom in PyTorch: its records through a DataLoader, all threads in one worker process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import contract
import numpy as np
from darkroom_numpy_reader import make_options, write
from torch.utils.data import DataLoader

import darkroom


def read(target: Path, use: str, cores: int) -> Iterator[np.ndarray]:
    """Yields an epoch; a thread for each core decodes."""
    options = make_options(use)
    data = darkroom.load(target, training=use == "train", options=options, framework="torch")
    for images, _ in DataLoader(data["train"], batch_size=None, num_workers=1):
        yield images.permute(0, 2, 3, 1).numpy()


if __name__ == "__main__":
    contract.run(write, read)
