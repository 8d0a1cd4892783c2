"""A batch of images and labels: threads read and decode its records, and change their images."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from darkroom.dataset.example import (
    IMAGE_ENCODED,
    IMAGE_HEIGHT,
    IMAGE_WIDTH,
    decode_example,
    encode_feature,
)
from darkroom.errors import MissingExtraError, UsageError
from darkroom.images.views import RAW, decode, decode_view
from darkroom.options.augmentation import Augmentation
from darkroom.options.input import CENTER_CROP
from darkroom.reader.augment import Changes
from darkroom.reader.draws import Array
from darkroom.reader.records import Records
from darkroom.reader.windows import choose_centers, sample_windows

# Images that a thread decodes before another thread may be asked.
_CHUNK = 4
# The type of a column of numbers, and the default for records that lack a column.
_COLUMNS: Mapping[str, tuple[Any, Any]] = {
    "bytes": (None, b""),
    "int64": (np.int64, 0),
    "float": (np.float32, np.nan),
}


class Arrays(Protocol):
    """How a framework has images and numbers."""

    def make_images(self, images: Array) -> Any:
        """Returns images, uint8 [B, H, W, 3], or one of them, uint8 [H, W, 3]."""

    def make_values(self, values: Array) -> Any:
        """Returns numbers."""

    def stack(self, images: Sequence[Any]) -> Any:
        """Returns transformed images as one array."""


class NumpyArrays:
    """Batches of NumPy arrays, as they are; see `Arrays`."""

    def make_images(self, images: Array) -> Array:
        """Returns images, uint8 [B, H, W, 3], or one of them, uint8 [H, W, 3]."""
        return images

    def make_values(self, values: Array) -> Array:
        """Returns numbers."""
        return values

    def stack(self, images: Sequence[Any]) -> Array:
        """Returns transformed images as one array."""
        stacked: Array = np.stack(images)
        if stacked.dtype.hasobject:
            raise TypeError(f"{type(images[0]).__name__} is not an array")
        return stacked


@dataclass(frozen=True)
class ViewOptions:
    """What a batch has of its records; `darkroom.load` describes the fields.

    Attributes:
        image_size: (height, width) in pixels; None: images keep their sizes.
        resize: `stretch` or `center_crop`.
        augmentation: Changes of training images.
        scaled_decoding: Decode JPEGs at a fraction of their size where that is enough.
        columns: Types of the features of the records that batches have, too, by name.
        transform: Is given each image, and returns what the batch has instead.
    """

    image_size: tuple[int, int] | None
    resize: str
    augmentation: Augmentation
    scaled_decoding: bool
    columns: Mapping[str, str]
    transform: Callable[[Any], Any] | None


class Batch:
    """A batch that threads fill; without threads it is filled at once.

    Args:
        records: The records.
        rows: int64 [B], their numbers.
        options: What the batch has of them.
        arrays: How the framework has it.
        positions: int64 [B], their positions in an epoch.
        epoch: As `draws.number_epoch` gives it.
        pool: The threads.
    """

    def __init__(
        self,
        records: Records,
        rows: Array,
        options: ViewOptions,
        arrays: Arrays,
        positions: Array,
        epoch: int = 0,
        pool: ThreadPoolExecutor | None = None,
    ) -> None:
        self._records = records
        self._rows = rows
        self._options = options
        self._arrays = arrays
        names = "height", "width", "channels"
        self._shapes = np.stack([records.facts[name][rows] for name in names], 1).astype(np.int64)
        self._windows = self._choose_windows(positions, epoch)
        self._changes = Changes(options.augmentation, positions, epoch)
        size = len(rows)
        self._views = None
        if options.image_size:
            self._views = np.empty((size, *options.image_size, 3), np.uint8)
        self._images: list[Any] = [None] * size
        self._features: list[dict[str, Any]] = [{}] * size
        self._work: list[Future[None]] = []
        chunks = [range(first, min(first + _CHUNK, size)) for first in range(0, size, _CHUNK)]
        for chunk in chunks:
            if pool is None:
                self._fill(chunk)
            else:
                self._work.append(pool.submit(self._fill, chunk))

    def wait(self) -> tuple[Any, Any, dict[str, Any]]:
        """Returns images, labels and columns once the batch is full.

        Images are an array, or a list if they are transformed and keep their sizes.

        Raises:
            DataError: A record is missing or damaged, or its dataset was replaced.
            UsageError: `transform` failed, or did not return images of one shape.
        """
        for work in self._work:
            work.result()
        options, arrays = self._options, self._arrays
        labels = self._records.make_labels(self._rows)
        images: Any = self._images
        if options.transform is None and self._views is not None:
            num_classes = len(self._records.names)
            images, labels = self._changes.mix(self._views, labels, num_classes)
            images = arrays.make_images(images)
        elif options.image_size is not None:
            images = self._stack()
        columns = {name: self._gather(name) for name in options.columns}
        return images, arrays.make_values(labels), columns

    def _stack(self) -> Any:
        """Returns transformed images as one array."""
        try:
            return self._arrays.stack(self._images)
        except (TypeError, ValueError, RuntimeError) as error:
            raise UsageError(
                f"What transform returned makes no batch: {error}.",
                "Return arrays (torch: tensors) of one shape, or leave out image_size, which makes "
                "lists.",
            ) from error

    def _choose_windows(self, positions: Array, epoch: int) -> list[list[int]] | list[None]:
        options, sizes = self._options, self._shapes[:, :2]
        if options.image_size and options.augmentation.crop:
            found = sample_windows(sizes, positions, epoch, options.augmentation)
            return found.tolist()  # type: ignore[no-any-return]
        if options.image_size and options.resize == CENTER_CROP:
            return choose_centers(sizes, options.image_size).tolist()  # type: ignore[no-any-return]
        return [None] * len(sizes)

    def _fill(self, chunk: Sequence[int]) -> None:
        """Reads and decodes the records of some places of the batch.

        Threads do this at once, each for other places: nothing else of the batch may change here.
        """
        options = self._options
        for number in chunk:
            row, shape = int(self._rows[number]), self._shapes[number].tolist()
            record = self._records.read(row)
            image, form = self._records.find_image(record, row)
            what = "the columns"
            try:
                if options.columns:
                    self._features[number] = _parse_columns(record, options.columns)
                what = "the image"
                if form == RAW:
                    _check_sides(record, *shape)
                if self._views is None:
                    view = decode(image, form, shape)
                else:
                    view, window = self._views[number], self._windows[number]
                    decode_view(image, form, shape, window, view, scaled=options.scaled_decoding)
            except (MissingExtraError, MemoryError):
                raise
            except Exception as error:
                raise self._records.build_damage_error(row, what, error) from error
            if self._views is not None:
                self._changes.change(number, view)
            if self._views is None or options.transform is not None:
                image = self._arrays.make_images(view)
                with self._records.report_transform(row):
                    self._images[number] = (options.transform or _keep)(image)

    def _gather(self, name: str) -> Any:
        """Returns a column as an array, or as a list of texts."""
        kind, _ = _COLUMNS[self._options.columns[name]]
        values = [each[name] for each in self._features]
        return values if kind is None else self._arrays.make_values(np.array(values, kind))


def _parse_columns(record: bytes, columns: Mapping[str, str]) -> dict[str, Any]:
    """Returns the values of columns of a record; for those that it lacks, their defaults."""
    found = decode_example(record)
    values = {}
    for name, kind in columns.items():
        _, missing = _COLUMNS[kind]
        value: Any = (found.get(name) or [missing])[0]
        if not isinstance(value, type(missing)):
            raise ValueError(f"{name} has values of another type than {kind}")
        is_text = isinstance(value, bytes) and name != IMAGE_ENCODED
        values[name] = value.decode() if is_text else value
    return values


def _check_sides(record: bytes, height: int, width: int, channels: int) -> None:
    """Checks that plain pixels, which do not say it themselves, have the sides in the index."""
    if not all(entry in record for entry in _encode_sides(height, width)):
        raise ValueError(f"it does not have the sides that the index says, {width} x {height}")


@functools.lru_cache(maxsize=4096)
def _encode_sides(height: int, width: int) -> tuple[bytes, bytes]:
    """Returns what is in a record with an image of such sides; the channels follow of them."""
    return encode_feature(IMAGE_HEIGHT, height), encode_feature(IMAGE_WIDTH, width)


def _keep(image: Any) -> Any:
    return image
