"""A batch of images and labels, which threads fill, alone or with other processes."""

from __future__ import annotations

import math
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np

from darkroom.errors import UsageError
from darkroom.reader.decoder_process import DecoderProcesses, RemoteDecoding
from darkroom.reader.decoding import COLUMN_TYPES, Decoding, ViewOptions
from darkroom.reader.record_files import Places
from darkroom.reader.records import SplitRecords
from darkroom.runtime.arrays import Array
from darkroom.targets.arrays import Objects

# Images that a thread decodes before another thread may be asked.
_CHUNK = 4
# Batches of which the memory is kept: others are decoded while one is used.
_KEPT = 4


class NumpyArrays:
    """How batches have images and numbers: as arrays of NumPy, unless a subclass says otherwise."""

    def __init__(self) -> None:
        self._free: deque[Array] = deque(maxlen=_KEPT)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()

    def make_views(self, shape: Sequence[int]) -> Array:
        """Returns memory for the images of a batch, uint8 [B, H, W, 3], with any values.

        It is used again once nothing refers to it, nor to a part of it: new memory costs the system
        up to a tenth of the time of a batch.
        """
        size = math.prod(shape)
        memory = self._free.pop() if self._free else None
        if memory is None or memory.size < size:
            memory = np.empty(size, np.uint8)
        # All views of this array refer to it, because its base is not an array.
        array: Array = np.frombuffer(memory.data, np.uint8, size)
        weakref.finalize(array, self._free.append, memory).atexit = False
        return array.reshape(tuple(shape))

    def make_images(self, images: Array) -> Array:
        """Returns images, uint8 [B, H, W, 3], or one of them, uint8 [H, W, 3]."""
        return images

    def make_values(self, values: Array) -> Array:
        """Returns numbers."""
        return values

    def divide(self, targets: Objects, sizes: Iterable[tuple[int, int]]) -> list[dict[str, Any]]:
        """Returns what is known of each image and its objects, by name.

        Args:
            targets: The objects of a batch.
            sizes: (height, width) of each view in pixels.
        """
        ends = np.cumsum(targets.counts).tolist()
        parts = [slice(*each) for each in pairwise((0, *ends))]
        objects = targets.objects.items()
        columns = {name: [values[part] for part in parts] for name, values in objects}
        return list_each({**columns, **targets.images})

    def stack(self, images: Sequence[Any]) -> Array:
        """Returns transformed images as one array."""
        stacked: Array = np.stack(images)
        if stacked.dtype.hasobject:
            raise TypeError(f"{type(images[0]).__name__} is not an array")
        return stacked


def list_each(columns: Mapping[str, Iterable[Any]]) -> list[dict[str, Any]]:
    """Returns a dict for each image of columns."""
    return [dict(zip(columns, each, strict=True)) for each in zip(*columns.values(), strict=True)]


class Batch:
    """A batch that threads fill; without threads it is filled at once.

    A thread does also what comes before and after: so the thread that takes the batch, which may be
    that of a training, does not wait for it.

    Args:
        records: The records.
        rows: int64 [B], their numbers.
        options: What the batch has of them.
        arrays: How the framework has it.
        positions: int64 [B], their positions in an epoch.
        epoch: As `draws.number_epoch` gives it.
        pool: The threads.
        processes: They decode while the threads wait for them.
    """

    def __init__(
        self,
        records: SplitRecords,
        rows: Array,
        options: ViewOptions,
        arrays: NumpyArrays,
        positions: Array,
        epoch: int = 0,
        pool: ThreadPoolExecutor | None = None,
        processes: DecoderProcesses | None = None,
    ) -> None:
        self._records, self._rows = records, rows
        self._options, self._arrays = options, arrays
        self._positions, self._epoch = positions, epoch
        self._pool, self._processes = pool, processes
        self._full: Future[tuple[Any, Any, dict[str, Any]]] = Future()
        self._lock = threading.Lock()
        if pool is None:
            self._begin()
        else:
            pool.submit(self._begin)

    def wait(self) -> tuple[Any, Any, dict[str, Any]]:
        """Returns images, labels and columns once the batch is full.

        Images are an array, or a list if they are transformed and keep their sizes.

        Raises:
            DataError: A record is missing or damaged, or its dataset was replaced.
            UsageError: `transform` failed, or did not return images of one shape.
        """
        return self._full.result()

    def _begin(self) -> None:
        """Hands out the images in chunks."""
        with self._pass_error():
            size, options = len(self._rows), self._options
            self._views = None
            if options.image_size:
                self._views = self._arrays.make_views((size, *options.image_size, 3))
            files, places = self._records.files, self._records.find_places(self._rows)
            images: dict[str, Any] = {
                "positions": self._positions,
                "epoch": self._epoch,
                "views": self._views,
            }
            if self._processes:
                step = self._processes.choose_chunk(size)
                self._decoding: Any = RemoteDecoding(
                    self._processes, files, places, options, **images
                )
            else:
                step, wrap = _CHUNK, self._arrays.make_images
                self._decoding = self._make_decoding(files, places, options, **images, wrap=wrap)
            self._targets = self._make_targets(places)
            if self._records.kind.moves and options.transform is not None:
                self._decoding.targets = self._targets
            chunks = [range(first, min(first + step, size)) for first in range(0, size, step)]
            self._left = len(chunks)
            for chunk in chunks:
                if self._pool:
                    self._pool.submit(self._fill, chunk)
                else:
                    self._fill(chunk)

    def _fill(self, chunk: Sequence[int]) -> None:
        """Decodes a chunk. The thread that decodes the last one finishes the batch."""
        with self._pass_error():
            self._decoding.run(chunk)
            with self._lock:
                self._left -= 1
                is_last = not self._left
            if is_last:
                self._end()

    def _make_decoding(self, *arguments: Any, **images: Any) -> Decoding:
        """Returns the decoding of the batch by this process."""
        return Decoding(*arguments, **images)

    def _end(self) -> None:
        """Ends the batch, when all images are decoded."""
        images, targets = self._finish()
        if not isinstance(targets, list):
            targets = self._arrays.make_values(targets)
        columns = {name: self._gather(name) for name in self._options.columns}
        self._full.set_result((images, targets, columns))

    def _finish(self) -> tuple[Any, Any]:
        """Returns images and targets as the batch has them."""
        if self._views is None:
            return self._decoding.images, self._targets
        if self._options.transform is not None:
            return self._stack(), self._targets
        images = self._arrays.make_images(self._decoding.changes.mix(self._views))
        return images, self._mix_targets()

    def _make_targets(self, places: Places) -> Any:
        """Returns what the images are labelled with; places go where the pixels go."""
        kind, options = self._records.kind, self._options
        targets = self._records.take_targets(self._rows)
        if not kind.moves:
            return targets
        sides = options.image_size or (places.facts["height"], places.facts["width"])
        height, width = (np.broadcast_to(side, len(self._rows)) for side in sides)
        moved = kind.follow(targets, self._decoding.locate(), (height, width), options)
        if not isinstance(moved, Objects):
            return moved
        return self._arrays.divide(moved, zip(height.tolist(), width.tolist(), strict=True))

    def _mix_targets(self) -> Any:
        """Returns the targets, mixed as the images."""
        return self._decoding.changes.mix_labels(self._targets, len(self._records.names))

    @contextmanager
    def _pass_error(self) -> Iterator[None]:
        """Has `wait` raise the first error of the block."""
        try:
            yield
        except BaseException as error:  # noqa: BLE001  `wait` raises it
            with self._lock:
                if not self._full.done():
                    self._full.set_exception(error)

    def _stack(self) -> Any:
        """Returns transformed images as one array."""
        try:
            return self._arrays.stack(self._decoding.images)
        except (TypeError, ValueError, RuntimeError) as error:
            raise UsageError(
                f"What transform returned makes no batch: {error}.",
                "Return arrays (torch: tensors) of one shape, or leave out image_size, which makes "
                "lists.",
            ) from error

    def _gather(self, name: str) -> Any:
        """Returns a column as an array, or as a list of texts."""
        kind, _ = COLUMN_TYPES[self._options.columns[name]]
        values = [each[name] for each in self._decoding.features]
        return values if kind is None else self._arrays.make_values(np.array(values, kind))
