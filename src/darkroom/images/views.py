"""The image of a record to a view: the same pixels as `darkroom.input.graph.decode` makes.

A JPEG is decoded at a fraction of its size if that is at least the size of the view. Without a
window, or with a window of a PNG or of raw pixels, what is decoded has the very pixels of the
graph. In a window of a JPEG, colors at its edges may differ, because TensorFlow decodes the window
alone. Resizing rounds differently, by one level of 255 at most.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType

import numpy as np
import simplejpeg
from PIL import Image, UnidentifiedImageError

from darkroom.errors import RejectError, build_missing_extra_error
from darkroom.images.memory import READ_BUDGET, Need, check_num_pixels, count_bytes
from darkroom.images.pillow import open_stored
from darkroom.runtime.arrays import Array

# As `image/format` names them.
STORED_FORMATS = ("jpeg", "png", "RAW")
JPEG_FORM, PNG_FORM, RAW_FORM = range(3)
_DIVISORS = (8, 4, 2, 1)
# Those of more pixels wait for each other, so that all threads together do not take all memory.
_LARGE_PIXELS = 1 << 23
_NOTHING = nullcontext()
_PNG_READERS = ("PNG",)

# By what the sides of an image are divided when it is decoded, and what of that a view shows: top,
# left, height and width in pixels.
ViewPart = tuple[int, tuple[int, int, int, int]]


def load_opencv() -> ModuleType:
    """Returns OpenCV, which then leaves threads to the reader.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        import cv2
    except ModuleNotFoundError as error:
        raise build_missing_extra_error("Resizing images without TensorFlow", "reader") from error
    # It would start threads for each image, beside those that decode images.
    cv2.setNumThreads(1)
    return cv2


def decode_view(
    image: bytes | memoryview,
    form: int,
    shape: Sequence[int],
    part: ViewPart,
    view: Array,
) -> None:
    """Decodes a part of an image into a view.

    Args:
        image: The image, as the record stores it.
        form: JPEG, PNG or RAW.
        shape: Its height, width and channels.
        part: What `choose_part` says.
        view: uint8 [height, width, 3], RGB, which is written.

    Raises:
        RejectError: It is another image, or too large.
        MissingExtraError: OpenCV is not installed.
        Exception: What decoders raise.
    """
    with _hold_memory(shape) if shape[0] * shape[1] > _LARGE_PIXELS else _NOTHING:
        _decode_part(image, form, shape, part, view)


def decode_to_array(image: bytes | memoryview, form: int, shape: Sequence[int]) -> Array:
    """Returns the pixels of an image, uint8 [height, width, 3], RGB, maybe read-only.

    Args:
        image: The image, as the record stores it.
        form: JPEG, PNG or RAW.
        shape: Its height, width and channels.

    Raises:
        RejectError: It is another image, or too large.
        Exception: What decoders raise.
    """
    with _hold_memory(shape) if shape[0] * shape[1] > _LARGE_PIXELS else _NOTHING:
        return _decode(image, form, shape, 1)


def choose_part(
    form: int,
    shape: Sequence[int],
    window: Sequence[int] | None,
    sides: Sequence[int],
    *,
    scaled: bool = True,
) -> ViewPart:
    """Returns what a view decodes of an image: its window, at a fraction of its size.

    The fraction and the rounding of the window are those of `darkroom.input.graph.decode`, so that
    a model gets the same pixels: both change together.

    Args:
        form: JPEG, PNG or RAW.
        shape: Height and width of the image, and maybe more.
        window: Top, left, height and width in pixels; None for all of it.
        sides: Height and width of the view.
        scaled: Whether the sides of a JPEG may be divided at all.
    """
    divisor = 1
    if scaled and form == JPEG_FORM:
        needed = window[2:] if window else shape
        fits = min(needed[0] // sides[0], needed[1] // sides[1])
        divisor = next((each for each in _DIVISORS if each <= fits), 1)
    if window is None:
        return divisor, (0, 0, *_reduce(shape, divisor))
    top, left, height, width = (each // divisor for each in window)
    return divisor, (top, left, max(height, 1), max(width, 1))


def _reduce(shape: Sequence[int], divisor: int) -> tuple[int, int]:
    """Returns height and width of a JPEG that is decoded at a fraction of its size."""
    return -(-shape[0] // divisor), -(-shape[1] // divisor)


def is_usual_jpeg(jpeg: bytes | memoryview, shape: Sequence[int]) -> bool:
    """Tells whether a JPEG has the sides that are said, and gray pixels or YCbCr.

    Decoders tell other colors apart by markers of Adobe's, which not all of them read.
    """
    try:
        height, width, colors, _ = simplejpeg.decode_jpeg_header(jpeg, strict=False)
    except (ValueError, KeyError):
        return False
    return (height, width) == (shape[0], shape[1]) and colors in ("YCbCr", "Gray")


def _hold_memory(shape: Sequence[int]) -> AbstractContextManager[None]:
    """Waits until there is memory for a large image, and holds it while the block runs."""
    check_num_pixels(shape[0], shape[1])
    # What the block frees goes back to the system by itself.
    return READ_BUDGET.reserve(Need(0, count_bytes(shape[0] * shape[1], STORED_FORMATS[JPEG_FORM])))


def _decode_part(
    image: bytes | memoryview, form: int, shape: Sequence[int], part: ViewPart, view: Array
) -> None:
    """Does what `decode_view` does, when there is memory."""
    sides = view.shape[:2]
    divisor, (top, left, height, width) = part
    if form == JPEG_FORM and sides == (height, width) == _reduce(shape, divisor):
        _decode_jpeg(image, divisor, shape, view)
        return
    pixels = _decode(image, form, shape, divisor)[top : top + height, left : left + width]
    if pixels.shape[:2] == sides:
        view[:] = pixels
    else:
        cv2 = load_opencv()
        cv2.resize(pixels, sides[::-1], dst=view, interpolation=cv2.INTER_LINEAR)


def _decode(image: bytes | memoryview, form: int, shape: Sequence[int], divisor: int) -> Array:
    """Returns all pixels, uint8 [height, width, 3], maybe read-only.

    A JPEG has 1 / `divisor` of its sides, rounded up; other images are decoded in full.
    """
    if form == JPEG_FORM:
        sides = _reduce(shape, divisor)
        return _decode_jpeg(image, divisor, shape, np.empty((*sides, 3), np.uint8))
    if form == RAW_FORM:
        pixels = np.frombuffer(image, np.uint8).reshape(tuple(shape))
        return np.repeat(pixels, 3, axis=2) if shape[2] == 1 else pixels
    try:  # not `pillow.open_stored`, which is slower
        opened = Image.open(io.BytesIO(image), formats=_PNG_READERS)
    except UnidentifiedImageError:
        raise RejectError("undecodable", "it is not a PNG") from None
    _check_sides(opened.height, opened.width, shape)
    return np.asarray(opened.convert("RGB"))


def _decode_jpeg(
    image: bytes | memoryview, divisor: int, shape: Sequence[int], view: Array
) -> Array:
    """Decodes into a view, which must be as large as the image of this shape at this fraction."""
    least: Sequence[int] = (0, 0)
    if divisor > 1:
        # Several sizes are equal at a fraction.
        _check_sides(*_read_sides(image), shape)
        least = view.shape
    # TensorFlow's decoder has the fast DCT, too, and accepts what a conversion accepts.
    try:
        pixels: Array = simplejpeg.decode_jpeg(
            image,
            "RGB",
            fastdct=True,
            min_height=least[0],
            min_width=least[1],
            buffer=view,
            strict=False,
        )
    except ValueError:  # also of a larger image, which is not decoded
        _check_sides(*_read_sides(image), shape)
        raise
    if pixels.shape != view.shape:
        _check_sides(*_read_sides(image), shape)
    return pixels


def _read_sides(jpeg: bytes | memoryview) -> tuple[int, int]:
    try:
        height, width, *_ = simplejpeg.decode_jpeg_header(jpeg, strict=False)
    except KeyError:  # as in `jpeg.parse_plain_header`
        with open_stored(jpeg, STORED_FORMATS[JPEG_FORM]) as opened:
            return opened.height, opened.width
    return height, width


def _check_sides(height: int, width: int, shape: Sequence[int]) -> None:
    """Checks that an image is as large as said."""
    if (height, width) != (shape[0], shape[1]):
        text = f"it has {width} x {height} pixels, expected {shape[1]} x {shape[0]}"
        raise RejectError("undecodable", text)
