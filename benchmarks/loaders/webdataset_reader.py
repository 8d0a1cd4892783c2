"""webdataset: tar files, read, decoded and batched in one worker process for each core."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import contract
import numpy as np
import torch
import webdataset
from opencv_pixels import crop_center, crop_randomly

_IMAGES_PER_SHARD, _SHUFFLED = 500, 1000


def write(photographs: Path, target: Path) -> None:
    """Packs the files into tar files, shuffled once, as webdataset asks for."""
    paths = sorted(photographs.rglob("*.jpg"))
    labels = {name: number for number, name in enumerate(sorted({p.parent.name for p in paths}))}
    target.mkdir()
    pattern = str(target / "images-%05d.tar")
    with webdataset.ShardWriter(pattern, maxcount=_IMAGES_PER_SHARD, verbose=0) as writer:
        for number in np.random.default_rng(contract.SEED).permutation(len(paths)):
            path = paths[number]
            label = labels[path.parent.name]
            writer.write({"__key__": f"{number:08d}", "jpg": path.read_bytes(), "cls": label})


class RandomCrop:
    """Cuts random windows, with other random numbers in every worker process."""

    def __init__(self) -> None:
        self._rng: np.random.Generator | None = None

    def __call__(self, data: bytes) -> np.ndarray:
        """Returns a window of a JPEG: uint8 [224, 224, 3]."""
        if self._rng is None:
            self._rng = np.random.default_rng(torch.initial_seed())
        return crop_randomly(data, self._rng)


def read(target: Path, use: str, cores: int) -> Iterator[np.ndarray]:
    """Yields an epoch, in which each worker reads its own shards."""
    files = sorted(str(path) for path in target.glob("*.tar"))
    training = use == "train"
    shards = len(files) if training else False
    data = webdataset.WebDataset(files, shardshuffle=shards, seed=contract.SEED)
    data = data.shuffle(_SHUFFLED) if training else data
    data = data.to_tuple("jpg", "cls").map_tuple(RandomCrop() if training else crop_center, int)
    # The workers make the batches: handing over single images is slow.
    data = data.batched(contract.BATCH)
    for images, _ in webdataset.WebLoader(data, batch_size=None, num_workers=cores):
        yield images.numpy()


if __name__ == "__main__":
    contract.run(write, read)
