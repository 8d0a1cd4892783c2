"""The batches of a split as an `IterableDataset` of PyTorch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info

from darkroom.errors import UsageError
from darkroom.reader.draws import Array
from darkroom.reader.loader import Loader


class TorchArrays:
    """See `darkroom.reader.batches.Arrays`."""

    def make_images(self, images: Array) -> torch.Tensor:
        """Returns images, uint8 [B, 3, H, W] in the memory format channels_last, or one of them."""
        if not images.flags.writeable:
            images = images.copy()
        return torch.from_numpy(np.moveaxis(images, -1, -3))

    def make_values(self, values: Array) -> torch.Tensor:
        """Returns numbers."""
        return torch.from_numpy(values)

    def stack(self, images: Sequence[torch.Tensor]) -> torch.Tensor:
        """Returns transformed images as one tensor."""
        return torch.stack(list(images))


class TorchLoader(Loader, IterableDataset[Any]):
    """The batches of a split as tensors; see `darkroom.reader.loader.Loader`.

    Images are uint8 [B, 3, H, W] in the memory format channels_last. It is a dataset of whole
    batches: `DataLoader(loader, batch_size=None, num_workers=1, pin_memory=True)` reads in another
    process, with a thread for each core, and its epochs, positions and states are those of the
    loader. More workers divide the batches among them, in the same order.
    """

    _arrays = TorchArrays()

    def __init__(self, *arguments: Any) -> None:
        """See `Loader`."""
        self._found = find_shard()
        super().__init__(*arguments)

    def __len__(self) -> int:
        """Returns the number of batches of an epoch in this process."""
        self._check_shard()
        return super().__len__()

    def _make_batches(self, *arguments: Any) -> Iterator[Any]:
        self._check_shard()
        yield from super()._make_batches(*arguments)

    def _check_shard(self) -> None:
        """Refuses data that was opened before its process knew which one of several it is.

        Else processes would read the same images, or wait for each other's batches for ever.
        """
        if self._options.shard == self._found != (now := find_shard()):
            raise UsageError(
                f"This data was opened as process {self._found[0]} of {self._found[1]}, and this "
                f"is process {now[0]} of {now[1]} of torch.distributed.",
                "Open it after torch.distributed has begun: in Lightning, in train_dataloader.",
            )

    def _share(self, progress: Array) -> torch.Tensor:
        return torch.from_numpy(progress).share_memory_()

    def _find_worker(self) -> tuple[int, int]:
        found = get_worker_info()
        return (found.id, found.num_workers) if found else (0, 1)


def find_shard() -> tuple[int, int]:
    """Returns (rank, world size) of this process: by `torch.distributed`, else by torchrun.

    Raises:
        UsageError: The variables of torchrun are not numbers.
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    rank, count = os.environ.get("RANK", "0"), os.environ.get("WORLD_SIZE", "1")
    if not (rank.isdigit() and count.isdigit() and int(rank) < int(count)):
        raise UsageError(
            f"RANK is {rank!r} and WORLD_SIZE {count!r}: torchrun sets them to whole numbers.",
            "Unset them, or give shard in options.",
        )
    return int(rank), int(count)
