"""Decoding with libjpeg-turbo: plain JPEGs, completely or not at all."""

from __future__ import annotations

import re

import numpy as np
import simplejpeg

from darkroom.errors import RejectError
from darkroom.images.jpeg_header import has_jpeg_end
from darkroom.images.pixels import Pixels

# libjpeg's messages when pixels are missing, and when a complete image has ended.
_MISSING_PIXELS = re.compile(
    r"premature end|bad huffman code|bad arithmetic code|instead of rst|before marker 0xd[0-7]",
    re.IGNORECASE,
)
_BEFORE_END = "before marker 0xd9"
_NO_MEMORY = re.compile("insufficient memory|memory allocation failure", re.IGNORECASE)


def parse_plain_header(data: bytes) -> tuple[int, int, int] | None:
    """Returns height, width and channels of a JPEG; None when libjpeg-turbo cannot read them."""
    try:
        height, width, colorspace, _ = simplejpeg.decode_jpeg_header(data)
    except (ValueError, KeyError):  # it does not know rare ways to reduce colors, as 4:4:1
        return None
    channels = {"Gray": 1, "RGB": 3, "YCbCr": 3}.get(colorspace)
    return None if channels is None else (height, width, channels)


def decode_sound_jpeg(data: bytes, channels: int, fast: bool = True) -> Pixels | None:
    """Decodes a JPEG completely, with smooth upsampling.

    Args:
        data: The file.
        channels: 1 or 3.
        fast: Use the fast DCT, as TensorFlow does by default; else the accurate one, as Pillow and
            OpenCV do.

    Returns:
        Its pixels; None when it breaks the rules in a way that some decoders accept.

    Raises:
        RejectError: Pixels are missing.
        MemoryError: There is not enough memory.
    """
    colorspace = "GRAY" if channels == 1 else "RGB"
    try:
        return np.asarray(simplejpeg.decode_jpeg(data, colorspace=colorspace, fastdct=fast))
    except ValueError as error:
        # The decoder reports only its first finding, so the end of the file is checked here.
        found = str(error)
    if _NO_MEMORY.search(found):
        raise MemoryError(found)
    if _MISSING_PIXELS.search(found) or not has_jpeg_end(data):
        raise RejectError("truncated", found)
    if not found.endswith(_BEFORE_END):
        return None
    return np.asarray(
        simplejpeg.decode_jpeg(data, colorspace=colorspace, fastdct=fast, strict=False)
    )
