"""The image of a record to a view: the same pixels as `darkroom.input.graph.decode` makes.

A JPEG is decoded at a fraction of its size if that is at least the size of the view. Without a
window, or with a window of a PNG or of raw pixels, what is decoded has the very pixels of the
graph. In a window of a JPEG, colors at its edges may differ, because TensorFlow decodes the window
alone. Resizing rounds differently, by one level of 255 at most.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
import simplejpeg
from PIL import Image

from darkroom.errors import build_missing_extra_error

# As `image/format` names them.
FORMATS = ("jpeg", "png", "RAW")
JPEG, PNG, RAW = range(3)
_DIVISORS = (8, 4, 2, 1)

Array = np.ndarray[Any, Any]


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
    window: Sequence[int] | None,
    view: Array,
    *,
    scaled: bool = True,
) -> None:
    """Decodes a window of an image into a view.

    Args:
        image: The image, as the record stores it.
        form: JPEG, PNG or RAW.
        shape: Its height, width and channels.
        window: Top, left, height and width in pixels; None for all of it.
        view: uint8 [height, width, 3], RGB, which is written.
        scaled: Decode a JPEG at a fraction of its size if that is large enough.

    Raises:
        ValueError: The image cannot be decoded.
    """
    sides = view.shape[:2]
    divisor = 1
    if form == JPEG and scaled:
        needed = window[2:] if window else shape
        fits = min(needed[0] // sides[0], needed[1] // sides[1])
        divisor = next((each for each in _DIVISORS if each <= fits), 1)
    height, width = (-(-side // divisor) for side in shape[:2])
    if form == JPEG and window is None and (height, width) == sides:
        _decode_jpeg(image, divisor, shape, view)
        return
    pixels = decode(image, form, shape, divisor)
    if window is not None:
        top, left = window[0] // divisor, window[1] // divisor
        bottom = top + max(window[2] // divisor, 1)
        pixels = pixels[top:bottom, left : left + max(window[3] // divisor, 1)]
    if pixels.shape[:2] == sides:
        view[:] = pixels
    else:
        cv2 = load_opencv()
        cv2.resize(pixels, sides[::-1], dst=view, interpolation=cv2.INTER_LINEAR)


def decode(image: bytes | memoryview, form: int, shape: Sequence[int], divisor: int = 1) -> Array:
    """Returns the pixels of an image, uint8 [height, width, 3].

    Args:
        image: See `decode_view`, also for `form` and `shape`.
        form: See there.
        shape: See there.
        divisor: 1, 2, 4 or 8: decode a JPEG at this fraction of its size.
    """
    if form == JPEG:
        return _decode_jpeg(image, divisor, shape)
    if form == RAW:
        pixels = np.frombuffer(image, np.uint8).reshape(tuple(shape))
        return np.repeat(pixels, 3, axis=2) if shape[2] == 1 else pixels
    return np.asarray(Image.open(io.BytesIO(image)).convert("RGB"))


def _decode_jpeg(
    image: bytes | memoryview, divisor: int, shape: Sequence[int], view: Array | None = None
) -> Array:
    # TensorFlow's decoder has the fast DCT, too, and accepts what a conversion accepts.
    pixels: Array = simplejpeg.decode_jpeg(
        image,
        "RGB",
        fastdct=True,
        min_height=-(-shape[0] // divisor),
        min_width=-(-shape[1] // divisor),
        buffer=view,
        strict=False,
    )
    return pixels
