"""torchvision's ImageFolder in a DataLoader, one worker process for each core, as in its guides."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import contract
import numpy as np
import torch
from contract import AREA, RATIO, SHORT_SIDE, SIZE
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2


def write(photographs: Path, target: Path) -> None:
    """Links the folder: ImageFolder has no other format."""
    target.symlink_to(photographs.resolve(), target_is_directory=True)


def read(target: Path, use: str, cores: int) -> Iterator[np.ndarray]:
    """Yields an epoch; Pillow decodes, cuts and resizes in the workers."""
    if use == "train":
        steps = [v2.RandomResizedCrop(SIZE, AREA, RATIO)]
    else:
        steps = [v2.Resize(SHORT_SIDE), v2.CenterCrop(SIZE)]
    data = ImageFolder(str(target / "train"), v2.Compose([*steps, v2.PILToTensor()]))
    torch.manual_seed(contract.SEED)
    batches = DataLoader(data, contract.BATCH, shuffle=use == "train", num_workers=cores)
    for images, _ in batches:
        yield images.permute(0, 2, 3, 1).numpy()


if __name__ == "__main__":
    contract.run(write, read)
