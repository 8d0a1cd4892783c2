"""The headers of a JPEG: which way up it is, its profile, the number of its scans.

Where several places say which way up an image is, Pillow's order counts: the first EXIF block, then
XMP. Usual data are read here. The rest is left to Pillow, which has read more odd files.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

# The tag of EXIF and TIFF that says which way up an image is.
ORIENTATION_TAG = 0x0112

_EXIF, _XMP = b"Exif\0\0", b"http://ns.adobe.com/xap/1.0/\0"
_XMP_ORIENTATION = re.compile(rb'tiff:Orientation(?:="|>)([1-8])')
_SHORT, _LONG = 3, 4
# How numbers are written, by the first bytes of an EXIF block.
EXIF_ORDERS = {b"II*\0": "<", b"MM\0*": ">"}
_ENTRY_BYTES = 12
# Bytes of a value, by the number of its type.
_EXIF_SIZES = {
    1: 1,
    2: 1,
    3: 2,
    4: 4,
    5: 8,
    6: 1,
    7: 1,
    8: 2,
    9: 4,
    10: 8,
    11: 4,
    12: 8,
    13: 4,
    16: 8,
}

_STANDALONE_MARKERS = frozenset((0x01, *range(0xD0, 0xD9)))
_START_OF_SCAN, _APP1, _APP2 = 0xDA, 0xE1, 0xE2
_SEQUENTIAL_FRAMES = (0xC0, 0xC1)
# Cameras write a few dozen; a small file with many more would keep us busy.
_MAX_SEGMENTS = 10_000
_UNKNOWN_SCANS = 1 << 30
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def has_jpeg_end(data: bytes) -> bool:
    """Tells whether a JPEG has its end after its last scan; bytes after the end do not matter."""
    return data.rfind(b"\xff\xd9") > data.rfind(b"\xff\xda")


def iterate_jpeg_segments(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yields the second byte of the marker, and start and end of the data, of a JPEG's segments.

    The header of the first scan is the last segment.
    """
    place = 2
    for _ in range(_MAX_SEGMENTS):
        if place + 4 > len(data) or data[place] != 0xFF:
            return
        marker = data[place + 1]
        if marker == 0xFF or marker in _STANDALONE_MARKERS:
            place += 1 if marker == 0xFF else 2
            continue
        length = data[place + 2] << 8 | data[place + 3]
        yield marker, place + 4, place + 2 + length
        if marker == _START_OF_SCAN:
            return
        place += 2 + max(length, 2)


class JpegTraits(NamedTuple):
    """The facts in a JPEG before its first scan.

    Attributes:
        orientation: EXIF orientation, 1 to 8; 1 when it has none; None when only Pillow can tell.
        has_profile: Whether it has an embedded ICC profile.
        num_scans: Number of scans of a JPEG that needs all coefficients until the last scan, such
            as a progressive one; 1 when it is decoded line by line; a huge number when unknown.
        exif: Its EXIF blocks.
        xmp: Its XMP.
    """

    orientation: int | None
    has_profile: bool
    num_scans: int
    exif: list[bytes]
    xmp: bytes


def parse_jpeg_traits(data: bytes) -> JpegTraits:
    """Returns the facts in a JPEG before its first scan."""
    has_profile, num_scans, components = False, _UNKNOWN_SCANS, 0
    exif: list[bytes] = []
    xmp = b""
    for marker, start, end in iterate_jpeg_segments(data):
        if marker == _APP1 and data.startswith(_EXIF, start):
            exif.append(data[start + len(_EXIF) : end])
        elif marker == _APP1 and data.startswith(_XMP, start):
            xmp = data[start + len(_XMP) : end]
        elif marker == _APP2 and data.startswith(b"ICC_PROFILE\0", start):
            has_profile = True
        elif marker in _FRAMES:
            # Other frames get a number of components that no scan can have.
            is_sequential = marker in _SEQUENTIAL_FRAMES
            components = ord(data[start + 5 : start + 6] or b"\0") if is_sequential else 256
        elif marker == _START_OF_SCAN:
            is_whole = ord(data[start : start + 1] or b"\0") >= components
            num_scans = 1 if is_whole else data.count(b"\xff\xda", start - 4)
    if num_scans == _UNKNOWN_SCANS:  # Its segments are odd, or too many.
        is_turned = _EXIF in data or _XMP in data
        return JpegTraits(None if is_turned else 1, has_profile, num_scans, exif, xmp)
    return JpegTraits(_find_orientation(exif, xmp), has_profile, num_scans, exif, xmp)


def _find_orientation(exif: list[bytes], xmp: bytes) -> int | None:
    found = parse_exif_orientation(exif[0]) if exif else 0
    if found is None or len(exif) > 1:
        return None
    return found or parse_xmp_orientation(xmp)


def parse_exif_orientation(tiff: bytes) -> int | None:
    """Returns the orientation in an EXIF block (a TIFF header and its first directory).

    Returns:
        1 to 8; 0 when it has none, and None when the block is damaged or unusual.
    """
    order = EXIF_ORDERS.get(tiff[:4])
    if order is None:
        return None
    found = 0
    try:
        for tag, kind, values, start, size in iterate_exif(tiff, order, tiff[4:8]):
            if start + size > len(tiff):
                return None
            if tag == ORIENTATION_TAG:
                if values != 1 or kind not in (_SHORT, _LONG):
                    return None
                form = order + ("H" if kind == _SHORT else "I")
                (value,) = struct.unpack_from(form, tiff, start)
                found = value if 1 <= value <= 8 else 1
    except struct.error:
        return None
    return found


def iterate_exif(
    tiff: bytes, order: str, pointer: bytes
) -> Iterator[tuple[int, int, int, int, int]]:
    """Yields tag, type and number of the values in a directory of EXIF, their place and length.

    Args:
        tiff: The block.
        order: One of `EXIF_ORDERS`.
        pointer: The bytes that say where the directory is.

    Raises:
        struct.error: The rest of it is damaged.
    """
    (directory,) = struct.unpack(order + "I", pointer)
    (count,) = struct.unpack_from(order + "H", tiff, directory)
    for entry in range(directory + 2, directory + 2 + _ENTRY_BYTES * count, _ENTRY_BYTES):
        tag, kind, number, start = struct.unpack_from(order + "HHII", tiff, entry)
        size = _EXIF_SIZES.get(kind, 0) * number
        # A short value is in its entry.
        yield tag, kind, number, start if size > 4 else entry + 8, size


def parse_xmp_orientation(xmp: bytes) -> int:
    """Returns the orientation in an XMP packet, 1 to 8; 1 when it has none."""
    found = _XMP_ORIENTATION.search(xmp)
    return int(found[1]) if found else 1
