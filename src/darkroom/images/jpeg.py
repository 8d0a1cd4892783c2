"""Decoding with libjpeg-turbo: plain JPEGs, whole or not at all."""

from __future__ import annotations

import re

import numpy as np
import simplejpeg

from darkroom.errors import RejectError
from darkroom.images.headers import has_jpeg_end
from darkroom.images.pixels import Pixels

# What libjpeg says when pixels are missing, and when it came to the end of a whole image.
_MISSING_PIXELS = re.compile(
    r"premature end|bad huffman code|bad arithmetic code|instead of rst|before marker 0xd[0-7]",
    re.IGNORECASE,
)
_BEFORE_END = "before marker 0xd9"


def read_plain_header(data: bytes) -> tuple[int, int, int] | None:
    """Returns height, width and channels of a JPEG; None when libjpeg-turbo finds it odd."""
    try:
        height, width, colorspace, _ = simplejpeg.decode_jpeg_header(data)
    except ValueError:
        return None
    channels = {"Gray": 1, "RGB": 3, "YCbCr": 3}.get(colorspace)
    return None if channels is None else (height, width, channels)


def decode_sound_jpeg(data: bytes, channels: int) -> Pixels | None:
    """Decodes a JPEG completely, as TensorFlow does by default: fast DCT, smooth upsampling.

    Returns:
        Its pixels; None when it breaks the rules in a way that some decoders forgive.
    """
    colorspace = "GRAY" if channels == 1 else "RGB"
    try:
        return np.asarray(simplejpeg.decode_jpeg(data, colorspace=colorspace, fastdct=True))
    except ValueError as error:
        # Only what the decoder found first, so the end of the file is looked for here.
        found = str(error)
    if _MISSING_PIXELS.search(found) or not has_jpeg_end(data):
        raise RejectError("truncated", found)
    if not found.endswith(_BEFORE_END):
        return None
    return np.asarray(
        simplejpeg.decode_jpeg(data, colorspace=colorspace, fastdct=True, strict=False)
    )
