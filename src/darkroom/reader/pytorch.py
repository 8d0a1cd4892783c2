"""The batches of a split as an `IterableDataset` of PyTorch."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from darkroom.errors import UsageError
from darkroom.reader.batches import NumpyArrays, list_each
from darkroom.reader.loader import Loader
from darkroom.runtime.arrays import Array
from darkroom.targets.arrays import Objects


class TorchArrays(NumpyArrays):
    """How batches have images and numbers: as tensors."""

    def make_views(self, shape: Sequence[int]) -> Array:
        """Returns memory for the images of a batch, uint8 [B, H, W, 3].

        A process that uses a GPU gets memory from which images are copied there at once. PyTorch
        keeps it when it is free.
        """
        if torch.cuda.is_initialized():
            pinned = torch.empty(tuple(shape), dtype=torch.uint8, pin_memory=True)
            return pinned.numpy()  # type: ignore[no-any-return]
        return super().make_views(shape)

    def make_images(self, images: Array) -> torch.Tensor:
        """Returns images, uint8 [B, 3, H, W] in the memory format channels_last, or one of them."""
        if isinstance(images.base, torch.Tensor):  # which knows that it is pinned
            return images.base.movedim(-1, -3)
        if not images.flags.writeable:
            images = images.copy()
        return torch.from_numpy(np.moveaxis(images, -1, -3))

    def make_values(self, values: Array) -> torch.Tensor:
        """Returns numbers."""
        return torch.from_numpy(values)

    def divide(self, targets: Objects, sizes: Iterable[tuple[int, int]]) -> list[dict[str, Any]]:
        """Returns what is known of each image and its objects, by name.

        Boxes are `BoundingBoxes` of torchvision, where it is installed.
        """
        counts = targets.counts.tolist()
        columns: dict[str, Iterable[Any]] = {
            name: torch.from_numpy(values).split(counts) for name, values in targets.objects.items()
        }
        if make_boxes := _find_bounding_boxes():
            columns["boxes"] = [
                make_boxes(boxes, format="XYXY", canvas_size=size)
                for boxes, size in zip(columns["boxes"], sizes, strict=True)
            ]
        images = {name: torch.from_numpy(values) for name, values in targets.images.items()}
        return list_each({**columns, **images})

    def stack(self, images: Sequence[torch.Tensor]) -> torch.Tensor:
        """Returns transformed images as one tensor."""
        return torch.stack(list(images))


@functools.cache
def _find_bounding_boxes() -> Any:
    """Returns the boxes of torchvision; None where it is not installed."""
    try:
        from torchvision.tv_tensors import BoundingBoxes
    except ModuleNotFoundError:
        return None
    return BoundingBoxes


class TorchLoader(Loader, IterableDataset[Any]):
    """The batches of a split as tensors; see `darkroom.reader.loader.Loader`.

    Images are uint8 [B, 3, H, W] in the memory format channels_last. Boxes are the `BoundingBoxes`
    of torchvision, if that is installed: its transforms move them, and its detectors take images
    and targets as they are, with `first_label=1`. It is a dataset of whole
    batches, so a `DataLoader` of it needs `batch_size=None`; `to_loader` makes one. Several workers
    divide the batches and the cores among them, and the batches come in the same order.
    """

    _make_arrays = TorchArrays

    def __init__(self, *arguments: Any) -> None:
        """See `Loader`."""
        self._found = find_shard()
        super().__init__(*arguments)

    def __len__(self) -> int:
        """Returns the number of batches of an epoch in this process."""
        self._check_shard()
        return super().__len__()

    def to_loader(self, **options: Any) -> DataLoader[Any]:
        """Returns a `DataLoader` of the batches that uses all cores of this process.

        Without `num_workers`, processes of the loader's own decode, one for each core, into pinned
        memory if this process uses a GPU. Where a `transform` of yours changes images, or they are
        read from a store, `DataLoader` has a worker for each two cores.

        Args:
            **options: Those of `DataLoader`.

        Raises:
            UsageError: `batch_size` is among them.
        """
        if options.get("batch_size") is not None:
            raise UsageError(
                f"to_loader got batch_size={options['batch_size']}, and its dataset has whole "
                "batches.",
                "Give batch_size to load.",
            )
        self._always_by_processes = True
        by_itself = self._can_use_processes()
        workers = options.get("num_workers", 0 if by_itself else -(-self._count_cores() // 2))
        given = {"num_workers": workers, "persistent_workers": workers > 0}
        given["pin_memory"] = torch.cuda.is_available()
        return DataLoader(self, **given | options | {"batch_size": None})

    def _count_cores(self) -> int:
        """Returns how many cores this process may use: torchrun starts several of a machine."""
        count = os.environ.get("LOCAL_WORLD_SIZE", "1")
        return max(1, super()._count_cores() // max(1, int(count) if count.isdigit() else 1))

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
