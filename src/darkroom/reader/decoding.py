"""Reads and decodes the images of a batch, each by itself, and changes them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from darkroom.dataset.example import (
    IMAGE_ENCODED,
    IMAGE_HEIGHT,
    IMAGE_WIDTH,
    decode_example,
    encode_feature,
)
from darkroom.errors import MissingExtraError
from darkroom.images.views import RAW_FORM, ViewPart, choose_part, decode_to_array, decode_view
from darkroom.options.augmentation import Augmentation
from darkroom.options.input import CENTER_CROP
from darkroom.reader.augment import Changes
from darkroom.reader.record_files import Places, RecordFiles, find_image_bytes
from darkroom.reader.windows import choose_centers, sample_windows
from darkroom.runtime.arrays import Array
from darkroom.targets.geometry import IDENTITY, Matrix, cut, scale

# The type of a column of numbers, and the default for records that lack a column.
COLUMN_TYPES: Mapping[str, tuple[Any, Any]] = {
    "bytes": (None, b""),
    "int64": (np.int64, 0),
    "float": (np.float32, np.nan),
}


@dataclass(frozen=True)
class ViewOptions:
    """What a batch has of its records; `darkroom.load` describes the fields.

    Attributes:
        image_size: (height, width) in pixels; None: images keep their sizes.
        resize: `stretch` or `center_crop`.
        augmentation: Changes of training images.
        scaled_decoding: Decode JPEGs at a fraction of their size where that is enough.
        columns: Types of the features of the records that batches have, too, by name.
        transform: Is given each image, and returns what the batch has instead; each image and its
            target if targets say places.
        min_visible: Share of an object that a view must show.
        first_label: Number of the first label of objects.
    """

    image_size: tuple[int, int] | None
    resize: str
    augmentation: Augmentation
    scaled_decoding: bool
    columns: Mapping[str, str]
    transform: Callable[..., Any] | None
    min_visible: float = 0
    first_label: int = 0


class Decoding:
    """The decoding of some images: what each one shows, how it changes, and where it goes.

    Args:
        files: The files of their records.
        places: Where their records are, [N].
        options: What a batch has of them.
        positions: int64 [N], their positions in an epoch.
        epoch: As `draws.number_epoch` gives it.
        views: uint8 [N, H, W, 3], which is written; None: images keep their sizes.
        wrap: Makes of an image, uint8 [H, W, 3], what the framework has.

    Attributes:
        changes: The random changes of the images.
        images: The images that were transformed or keep their sizes; [N].
        targets: What the images are labelled with, if `transform` changes that, too; else None.
        features: The columns of each image, by name; [N].
    """

    def __init__(
        self,
        files: RecordFiles,
        places: Places,
        options: ViewOptions,
        *,
        positions: Array,
        epoch: int,
        views: Array | None,
        wrap: Callable[[Array], Any] | None = None,
    ) -> None:
        self._files, self._places, self._options = files, places, options
        self._views, self._wrap = views, wrap or _keep
        facts = places.facts
        self._shapes = [*zip(facts["height"], facts["width"], facts["channels"], strict=True)]
        self._parts = self._choose_parts(positions, epoch)
        self.changes = Changes(options.augmentation, positions, epoch)
        self.images: list[Any] = [None] * len(positions)
        self.targets: Any = None
        self.features: list[dict[str, Any]] = [{}] * len(positions)

    def run(self, chunk: Sequence[int]) -> None:
        """Reads and decodes the images of some places.

        Threads do this at once, each for other places: nothing else may change here.

        Raises:
            DataError: A record is missing or damaged, or its dataset was replaced.
            UsageError: `transform` failed.
        """
        for number in chunk:
            record = self._files.read(self._places, number)
            image, form = find_image_bytes(record, self._places, number)
            what = "the columns"
            try:
                if self._options.columns:
                    self.features[number] = _parse_columns(record, self._options.columns)
                what = "the image"
                if form == RAW_FORM:
                    _check_sides(record, *self._shapes[number])
                view = self._decode(number, image, form)
            except (MissingExtraError, MemoryError):
                raise
            except Exception as error:
                raise self._files.build_damage_error(self._places, number, what, error) from error
            self._change(number, view)

    def locate(self) -> Matrix:
        """Returns where the points of each image are in its view, [N] each.

        An image that keeps its size is its own view.
        """
        if self._views is None:
            return IDENTITY
        sides = self._views.shape[1:3]
        divisors, windows = (np.array(each) for each in zip(*self._parts, strict=True))
        top, left, height, width = windows.T
        across, down = sides[1] / width, sides[0] / height
        matrix = scale(across / divisors, down / divisors).then(cut(left * across, top * down))
        return matrix.then(self.changes.locate(*sides))

    def _decode(self, number: int, image: memoryview, form: int) -> Any:
        """Returns a decoded image."""
        shape = self._shapes[number]
        if self._views is None:
            return decode_to_array(image, form, shape)
        view = self._views[number]
        decode_view(image, form, shape, self._parts[number], view)
        return view

    def _change(self, number: int, view: Any) -> None:
        """Changes a decoded image, and transforms it."""
        if self._views is not None:
            self.changes.change(number, view)
        if self._views is None or self._options.transform is not None:
            self._transform(number, self._wrap(view))

    def _transform(self, number: int, image: Any) -> None:
        transform: Any = self._options.transform or _keep
        with self._files.report_transform(self._places, number):
            if self.targets is None:
                self.images[number] = transform(image)
            else:
                found = transform(image, self.targets[number])
                self.images[number], self.targets[number] = _check_pair(found)

    def _choose_parts(self, positions: Array, epoch: int) -> list[ViewPart]:
        """Returns what is decoded of each image; nothing where they keep their sizes."""
        sides, scaled = self._options.image_size, self._options.scaled_decoding
        if sides is None:
            return []
        windows = self._choose_windows(sides, positions, epoch)
        images = zip(self._places.facts["format"], self._shapes, windows, strict=True)
        return [choose_part(*image, sides, scaled=scaled) for image in images]

    def _choose_windows(
        self, sides: tuple[int, int], positions: Array, epoch: int
    ) -> list[list[int]] | list[None]:
        options, sizes = self._options, np.array(self._shapes, np.int64)[:, :2]
        if options.augmentation.crop:
            found = sample_windows(sizes, positions, epoch, options.augmentation)
            return found.tolist()  # type: ignore[no-any-return]
        if options.resize == CENTER_CROP:
            return choose_centers(sizes, sides).tolist()  # type: ignore[no-any-return]
        return [None] * len(positions)


def _parse_columns(record: bytes, columns: Mapping[str, str]) -> dict[str, Any]:
    """Returns the values of columns of a record; for those that it lacks, their defaults."""
    found = decode_example(record)
    values = {}
    for name, kind in columns.items():
        _, missing = COLUMN_TYPES[kind]
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


def _check_pair(found: Any) -> Any:
    """Checks that a transform of images and targets returned both."""
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise TypeError(f"it returned {type(found).__name__}, expected (image, target)")
    return found


def _keep(image: Any) -> Any:
    return image
