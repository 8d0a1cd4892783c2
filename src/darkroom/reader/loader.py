"""The batches of a split: in the order of an epoch, from any position, for many processes."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import starmap
from operator import index
from typing import Any

import numpy as np

from darkroom import storage
from darkroom.dataset.layout import INDEX_FOLDER
from darkroom.errors import DataError, UsageError
from darkroom.options.augmentation import UNCHANGED
from darkroom.options.checks import check_count
from darkroom.options.input import InputOptions
from darkroom.reader.batches import Batch, NumpyArrays
from darkroom.reader.decoder_process import DecoderProcesses, find_processes
from darkroom.reader.decoding import ViewOptions
from darkroom.reader.order import Order
from darkroom.reader.records import SplitRecords
from darkroom.runtime import by_name
from darkroom.runtime.arrays import Array
from darkroom.runtime.machine import count_cores
from darkroom.runtime.ordered_work import look_ahead
from darkroom.runtime.result import Outcome

# Most workers of a DataLoader.
_MOST_WORKERS = 1024
# Fewer threads get about as much, and cost less.
_FEWEST_PROCESSES = 4
# Places in the progress that processes share.
_EPOCH, _POSITION, _BEGUN = 0, 1, 2


class Loader:
    """The batches of a split in NumPy. Each iteration is the next epoch.

    A batch is (images, labels): uint8 [B, H, W, 3], RGB, and int64 [B], the numbers of their
    labels; or float32 [B, C]: 1 for each label of an image, else 0, or its numbers. With columns, a
    dict of them follows. If several processes share an evaluation, weights follow last, float32
    [B]: 0 for images that only fill up the last batch. If images are transformed and keep their
    sizes, a batch is a list of (image, label) with the same parts.

    Where images have boxes, labels are a list of B dicts, one for each image. Of its N objects that
    the view shows, `boxes` are float32 [N, 4]: left, top, right and bottom in pixels of the view,
    or of the image if it keeps its size; `labels` int64 [N], from `first_label` on; `is_crowd` and
    `difficult` bool [N]; `area` float32 [N], in pixels of the view. `annotated`, bool [], is false
    if nobody looked for objects.

    A `transform` is given the dict of an image, too, and returns both, as the transforms of
    torchvision.transforms.v2 do. For those of Albumentations, this takes three lines, with
    `BboxParams("pascal_voc", label_fields=["labels"])`::

        def transform(image, target):
            found = steps(image=image, bboxes=target["boxes"], labels=target["labels"])
            return found["image"], {"boxes": found["bboxes"], "labels": found["labels"]}

    Attributes:
        class_names: The label map, or the names of numbers.
        num_classes: How many there are.
    """

    _make_arrays: type[NumpyArrays] = NumpyArrays

    def __init__(
        self,
        records: SplitRecords,
        options: InputOptions,
        views: ViewOptions,
        training: bool,
        order: str,
    ) -> None:
        """Makes a loader; it reads no record.

        Args:
            records: The records.
            options: Which of them this process reads, and how many at once.
            views: What batches have of them.
            training: Shuffle.
            order: `exact` or `window`, of training.

        Raises:
            DataError: There is no batch of training for each process.
        """
        self._records = records
        self._options = options
        self._views = views
        self._arrays = self._make_arrays()
        self._training, self._order = training, order
        self.class_names = records.names
        self.num_classes = len(records.names)
        # The epoch and the position of the next iteration, and how many iterations each worker has
        # begun since.
        self._progress = self._share(np.zeros(_BEGUN + _MOST_WORKERS, np.int64))
        self._taken: int | None = None
        self._processes: DecoderProcesses | None = None
        self._always_by_processes = False
        if training and not len(self):
            raise DataError(
                f"The {records.split.name} split has {len(records)} records, fewer than a batch of "
                f"{options.batch_size} for each of {options.shard[1]} processes.",
                "Use a smaller batch_size, or fewer processes.",
            )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_processes": None}

    @property
    def images(self) -> StoredImages:
        """Single images by number."""
        return StoredImages(self._records, self._views, self._arrays)

    @property
    def dropped(self) -> int:
        """Images of an epoch that fill no batch of all processes: each time others."""
        return len(self._records) - self._find_end(0)

    def __repr__(self) -> str:
        split, images = self._records.split.name, len(self._records)
        return f"{type(self).__name__}({split}, {images:,} images, {len(self):,} batches)"

    def _repr_html_(self) -> str:
        """Returns it as a notebook shows it, with some of its images as they are stored."""
        split = self._records.split
        root = next(iter(split.commits))
        show = by_name.find("show_records")
        shown = show(root, storage.join(root, INDEX_FOLDER), split=split.name)
        return Outcome(repr(self), [], more=[shown]).to_card()

    def __len__(self) -> int:
        """Returns the number of batches of an epoch in this process."""
        return -(-self._find_end(0) // self._global_batch)

    def __iter__(self) -> Iterator[Any]:
        worker, workers = self._find_worker()
        begun = int(self._progress[_BEGUN + worker])
        self._progress[_BEGUN + worker] += 1
        epoch = int(self._progress[_EPOCH]) + begun
        position = 0 if begun else int(self._progress[_POSITION])
        self._taken = 0
        return _Iterator(self, self._make_batches(epoch, position, worker, workers))

    def __getitem__(self, number: Any) -> Any:
        """Says what to take instead: PyTorch asks for items of what is not its own dataset.

        Raises:
            UsageError: In any case.
        """
        raise UsageError(
            "A loader has batches in their order, and no items by number.",
            'Take single images from .images, and for a DataLoader load with framework="torch".',
        )

    def set_epoch(self, epoch: int) -> None:
        """Chooses the epoch of the next iteration. The position of a state of that epoch is kept.

        Args:
            epoch: From 0.
        """
        check_count("epoch", epoch, 0)
        if epoch != self._progress[_EPOCH] or self._progress[_BEGUN:].any():
            self._progress[_POSITION] = 0
        self._progress[_EPOCH] = epoch
        self._progress[_BEGUN:] = 0

    def state_dict(self, batches: int | None = None) -> dict[str, Any]:
        """Returns where an epoch is. Any number of processes can go on from there.

        Args:
            batches: How many batches were taken of the iteration that began last. Only a loop over
                the loader itself can leave it out: the workers of a DataLoader read ahead.

        Raises:
            UsageError: It is left out, and workers read; or there are not so many.
        """
        begun = int(self._progress[_BEGUN:].max())
        if batches is None:
            batches = self._taken if begun else 0
        if batches is None or self._find_worker()[1] > 1:
            raise UsageError(
                "state_dict needs the number of batches, because workers read ahead.",
                "Call state_dict(n) on the dataset after the n-th batch of your loop.",
            )
        check_count("batches", batches, 0)
        epoch = int(self._progress[_EPOCH]) + max(begun - 1, 0)
        position = 0 if begun > 1 else int(self._progress[_POSITION])
        end = self._find_end(position)
        if batches > (most := -(-(end - position) // self._global_batch)):
            raise UsageError(
                f"state_dict got {batches} batches, and this iteration has {most}.",
                "Count from its begin, which may be in the middle of an epoch.",
            )
        position += batches * self._global_batch
        if position >= end:
            epoch, position = epoch + 1, 0
        return {**self._identity, "epoch": epoch, "position": position}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Begins the next iteration where a state was taken.

        Raises:
            UsageError: It is the state of another dataset, seed or order, or no state, or its
                position is after the end of an epoch.
        """
        try:
            epoch, position = state["epoch"], state["position"]
            found = {name: state[name] for name in self._identity}
        except (KeyError, TypeError) as error:
            raise UsageError(f"This is not the state of a loader: {state!r:.200}.") from error
        for name, expected in self._identity.items():
            if found[name] != expected:
                raise UsageError(
                    f"The state is of the {name} {found[name]}, and this loader of {expected}.",
                    "Open the data with which it was taken, or begin without the state.",
                )
        check_count("position", position, 0, len(self._records) - 1)
        self.set_epoch(epoch)
        self._progress[_POSITION] = position

    @property
    def _identity(self) -> dict[str, Any]:
        seed = self._options.seed
        return {"commit": self._records.commit, "seed": seed, "order": self._order}

    @property
    def _global_batch(self) -> int:
        return self._options.batch_size * self._options.shard[1]

    def _share(self, progress: Array) -> Any:
        """Returns the progress in memory that workers share."""
        return progress

    def _find_worker(self) -> tuple[int, int]:
        """Returns the number of this worker, and the number of workers of this process."""
        return 0, 1

    def _find_end(self, start: int) -> int:
        """Returns the position where an epoch ends that is read from a position on."""
        options, total = self._options, len(self._records)
        if self._training and (options.drop_remainder or options.shard[1] > 1):
            return total - max(total - start, 0) % self._global_batch
        return total

    def _make_batches(self, epoch: int, position: int, worker: int, workers: int) -> Iterator[Any]:
        """Yields the batches of a worker: those of a process are dealt to its workers."""
        # Not when the iteration begins: torch has no place for an error of a worker there.
        self._records.files.reopen()
        options, counts = self._options, self._records.counts
        order = None
        if self._training:
            order = Order(counts, options.seed, epoch, self._order, options.shuffle_records)
        end = self._find_end(position)
        starts = range(position, end, self._global_batch)[worker::workers]
        decoders = options.num_threads or max(1, self._count_cores() // workers)
        pool = ThreadPoolExecutor(decoders, "darkroom-read")
        processes = self._find_processes(decoders)

        def begin() -> Iterator[tuple[Batch, Array | None]]:
            for number, start in enumerate(starts):
                if processes and number > options.prefetch:
                    processes.start()
                yield self._begin_batch(order, start, end, pool, processes)

        try:
            yield from starmap(self._finish_batch, look_ahead(begin(), options.prefetch))
            self._records.files.check_not_replaced()
        finally:
            pool.shutdown(cancel_futures=True)

    def _count_cores(self) -> int:
        """Returns how many cores this process may use."""
        return count_cores()

    def _can_use_processes(self) -> bool:
        """Tells whether other processes can decode.

        Functions of the user's stay in this process, as do the blocks that are read of a store.
        """
        files, transform = self._records.files, self._views.transform
        return transform is None and files.are_local and bool(sys.executable)

    def _find_processes(self, decoders: int) -> DecoderProcesses | None:
        """Returns the processes that decode; None where threads do."""
        is_worth_it = self._always_by_processes or decoders >= _FEWEST_PROCESSES
        if not is_worth_it or not self._can_use_processes():
            return None
        self._processes = find_processes(decoders)
        return self._processes

    def _begin_batch(
        self,
        order: Order | None,
        start: int,
        end: int,
        pool: ThreadPoolExecutor,
        processes: DecoderProcesses | None,
    ) -> tuple[Batch, Array | None]:
        """Returns a batch and the weights of its images, if it has weights."""
        options = self._options
        part, count = options.shard
        positions = start + part + count * np.arange(options.batch_size)
        is_real, weights = positions < end, None
        if count > 1 and not self._training:
            # No process waits for another one at the end: all have as many batches, as large.
            weights = is_real.astype(np.float32)
            positions = np.where(is_real, positions, 0)
        else:
            positions = positions[is_real]
        rows = order.find_rows(positions) if order else positions
        # Nothing is random in an evaluation.
        number = order.number if order else 0
        views, arrays = self._views, self._arrays
        ready = processes if processes and processes.are_ready else None
        what = self._records, rows, views, arrays, positions, number, pool, ready
        return self._make_batch(*what), weights

    def _make_batch(self, *arguments: Any) -> Batch:
        return Batch(*arguments)

    def _finish_batch(self, batch: Batch, weights: Array | None) -> Any:
        """Returns (images, labels), and columns and weights where there are some.

        Images that keep their sizes make a list of such tuples instead, one for each image.
        """
        images, labels, columns = batch.wait()
        are_apart = isinstance(images, list)
        parts = [images, labels]
        if columns and are_apart:
            each = zip(*columns.values(), strict=True)
            parts.append([dict(zip(columns, values, strict=True)) for values in each])
        elif columns:
            parts.append(columns)
        if weights is not None:
            parts.append(self._arrays.make_values(weights))
        return list(zip(*parts, strict=True)) if are_apart else tuple(parts)


class _Iterator(Iterator[Any]):
    """Batches that several threads may ask for."""

    def __init__(self, loader: Loader, batches: Iterator[Any]) -> None:
        self._loader = loader
        self._batches = batches
        self._lock = threading.Lock()
        self._process = os.getpid()

    def __next__(self) -> Any:
        if os.getpid() != self._process:
            raise UsageError(
                "These batches were begun in another process, whose threads are not in this one.",
                "Begin another loop over the loader.",
            )
        with self._lock:
            batch = next(self._batches)
            self._loader._taken = (self._loader._taken or 0) + 1
            return batch


class StoredImages(Sequence[tuple[Any, ...]]):
    """Images with their labels, by number, as they are stored; any thread or process may read them.

    They have the size of the loader, if it has one, and are not augmented. PyTorch takes them for a
    dataset, and Grain for a `RandomAccessDataSource`.
    """

    def __init__(self, records: SplitRecords, views: ViewOptions, arrays: NumpyArrays) -> None:
        self._records = records
        self._views = replace(views, augmentation=UNCHANGED)
        self._arrays = arrays

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, number: Any) -> tuple[Any, ...]:
        """Returns (image, label), and the columns if there are some.

        Raises:
            IndexError: There is no such image.
            DataError: Its record is missing or damaged.
        """
        row, count = index(number), len(self)
        if not -count <= row < count:
            raise IndexError(f"there is no image {row}: there are {count}")
        row %= count
        rows = np.array([row])
        images, labels, columns = Batch(self._records, rows, self._views, self._arrays, rows).wait()
        parts = {name: values[0] for name, values in columns.items()}
        return (images[0], labels[0], parts) if parts else (images[0], labels[0])
