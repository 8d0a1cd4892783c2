"""TIFFs: which kinds Pillow reads as they are meant, and the meaning of its values.

Pillow opens some kinds and gives wrong pixels without a word. They are rejected here.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from PIL.TiffImagePlugin import ImageFileDirectory_v2

from darkroom.errors import RejectError

_BITS, _COMPRESSION, _PHOTOMETRIC, _CHANNELS = 258, 259, 262, 277
_PLANAR, _EXTRA_SAMPLES, _SAMPLE_FORMAT = 284, 338, 339
_WHITE_IS_ZERO, _RGB, _CMYK, _YCBCR = 0, 2, 5, 6
_COLORS = {
    _WHITE_IS_ZERO: "gray, white is zero",
    1: "gray",
    _RGB: "RGB",
    3: "palette",
    _CMYK: "CMYK",
    _YCBCR: "YCbCr",
    8: "LAB",
}
_NUMBERS = {2: "signed", 3: "floating point"}
_MAX_BITS = 64
_PLAIN, _SEPARATE = 1, 2
_ALPHA, _BYTE = 2, 8


def check_kind(tags: Mapping[int, Any]) -> None:
    """Checks that Pillow reads a TIFF as it is meant.

    Args:
        tags: The tags of its first image.

    Raises:
        RejectError: It does not.
    """
    numbers = _NUMBERS.get(max(tags.get(_SAMPLE_FORMAT, (1,))))
    if numbers:
        what = f"{numbers} numbers of {count_bits(tags)} bits have no known range"
        _reject(f"{what}: store them with 8 or 16 bits, from 0 on")
    is_plain = tags.get(_COMPRESSION, _PLAIN) == _PLAIN
    if tags.get(_PHOTOMETRIC) == _YCBCR and is_plain and tags.get(_CHANNELS, 1) > 1:
        _reject("a TIFF in YCbCr without compression is not read: convert it to PNG")
    if tags.get(_PLANAR) == _SEPARATE and not _has_plain_planes(tags, is_plain):
        _reject("a TIFF with such separate planes of colors is not read: convert it to PNG")


def _has_plain_planes(tags: Mapping[int, Any], is_plain: bool) -> bool:
    """Tells whether the planes of a TIFF are colors, one after the other."""
    photometric, extra = tags.get(_PHOTOMETRIC, _WHITE_IS_ZERO), tags.get(_EXTRA_SAMPLES, ())
    colors = {_RGB: 3, _CMYK: 4}.get(photometric, 1)
    is_known = tags.get(_CHANNELS, 1) == colors + len(extra) and (colors > 1 or not extra)
    # Without compression, Pillow itself reads the planes, and takes them for plain bytes.
    is_bytes = count_bits(tags) == _BYTE and photometric != _WHITE_IS_ZERO
    return is_known and (not is_plain or (is_bytes and set(extra) <= {_ALPHA}))


def count_bits(tags: Mapping[int, Any]) -> int:
    """Returns the most bits that a value of a TIFF has."""
    return int(max(tags.get(_BITS, (1,))))


def is_inverted(tags: Mapping[int, Any]) -> bool:
    """Tells whether the largest value is black and stays so: Pillow inverts up to 8 bits."""
    return tags.get(_PHOTOMETRIC) == _WHITE_IS_ZERO and count_bits(tags) > _BYTE


def describe_unread(data: bytes) -> str | None:
    """Returns why Pillow does not open a TIFF whose header is intact; None for other files."""
    try:
        file = io.BytesIO(data)
        tags = ImageFileDirectory_v2(data[:16] if data[2] == 43 else data[:8])
        file.seek(tags.next)
        tags.load(file)
        bits, colors = tags.get(_BITS, (1,)), _COLORS.get(tags.get(_PHOTOMETRIC, -1))
        channels = tags.get(_CHANNELS, len(bits))
        if colors is None or not 0 < max(bits) <= _MAX_BITS or not 0 < channels <= len(bits):
            return None
    except Exception:  # noqa: BLE001  damaged files make it raise anything
        return None
    number = _NUMBERS.get(max(tags.get(_SAMPLE_FORMAT, (1,))), "")
    kind = f"{number} numbers" if number else "numbers"
    shown = "+".join(map(str, bits)) if len(set(bits)) > 1 else f"{bits[0]}"
    what = f"a TIFF with {kind} of {shown} bits ({colors}, {channels} a pixel) is not read"
    return f"{what}: convert it to PNG"


def _reject(detail: str) -> None:
    raise RejectError("unsupported_format", detail)
