"""What the bytes of an image file say without being decoded: format, size, which way up, damage."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

JPEG, PNG = "jpeg", "png"

_PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
_MAGIC = (
    (b"\xff\xd8\xff", JPEG),
    (_PNG_MAGIC, PNG),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
    (b"BM", "bmp"),
    (b"II*\0", "tiff"),
    (b"MM\0*", "tiff"),
)
_BRANDS = {
    b"avif": "avif",
    b"avis": "avif",
    b"heic": "heic",
    b"heix": "heic",
    b"mif1": "heic",
    b"msf1": "heic",
}
_ORIENTATION_TAG = 0x0112
_STANDALONE_MARKERS = frozenset((0x01, *range(0xD0, 0xD9)))
_START_OF_SCAN, _APP1 = 0xDA, 0xE1


def sniff_format(data: bytes) -> str | None:
    """Returns the format of an image by its first bytes, or None when it is none that we know."""
    for magic, name in _MAGIC:
        if data.startswith(magic):
            return name
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    if data[4:8] == b"ftyp":
        return _BRANDS.get(data[8:12])
    return None


def describe_bytes(data: bytes) -> str:
    """Returns what a file that is no image seems to be, for a message."""
    start = data[:512].lstrip().lower()
    for magic, name in ((b"<!doctype html", "HTML"), (b"<html", "HTML"), (b"%pdf", "PDF")):
        if start.startswith(magic):
            return f"it looks like {name}"
    if start.startswith((b"<svg", b"<?xml")):
        return "it looks like XML or SVG"
    if start.startswith((b"pk\x03\x04", b"\x1f\x8b")):
        return "it looks like an archive"
    if start and all(32 <= byte < 127 or byte in b"\r\n\t" for byte in start):
        return "it looks like text"
    return f"it begins with {data[:8].hex(' ')}"


def iterate_png_chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yields name, start and end (of the data within `data`) of the chunks that a PNG has whole."""
    place = len(_PNG_MAGIC)
    while place + 12 <= len(data):
        length = int.from_bytes(data[place : place + 4], "big")
        start, end = place + 8, place + 8 + length
        if end + 4 > len(data):
            return
        yield data[place + 4 : start], start, end
        place = end + 4


def find_png_damage(data: bytes) -> str | None:
    """Returns what is wrong with the chunks of a PNG, or None.

    Pillow reads a PNG that has no end, or a wrong checksum behind its pixels; TensorFlow's decoder
    refuses both, so they have to be told here.
    """
    name = b""
    for name, start, end in iterate_png_chunks(data):
        checksum = int.from_bytes(data[end : end + 4], "big")
        if zlib.crc32(memoryview(data)[start - 4 : end]) != checksum:
            return f"the checksum of its chunk {name.decode('ascii', 'replace')} is wrong"
    return None if name == b"IEND" else "it ends early"


def parse_jpeg_orientation(data: bytes) -> int:
    """Returns the EXIF orientation of a JPEG, 1 to 8; 1 when it has none or a damaged one."""
    place = 2
    while place + 4 <= len(data) and data[place] == 0xFF:
        marker = data[place + 1]
        if marker == 0xFF or marker in _STANDALONE_MARKERS:
            place += 1 if marker == 0xFF else 2
            continue
        if marker == _START_OF_SCAN:
            break
        length = int.from_bytes(data[place + 2 : place + 4], "big")
        if marker == _APP1 and data[place + 4 : place + 10] == b"Exif\0\0":
            return parse_exif_orientation(data[place + 10 : place + 2 + length])
        place += 2 + max(length, 2)
    return 1


def parse_exif_orientation(tiff: bytes) -> int:
    """Returns the orientation in an EXIF block (a TIFF header and its first directory)."""
    order = {b"II": "<", b"MM": ">"}.get(tiff[:2])
    if order is None:
        return 1
    try:
        (directory,) = struct.unpack_from(order + "I", tiff, 4)
        (entries,) = struct.unpack_from(order + "H", tiff, directory)
        for entry in range(entries):
            place = directory + 2 + 12 * entry
            tag, _, _, value = struct.unpack_from(order + "HHIH", tiff, place)
            if tag == _ORIENTATION_TAG:
                return value if 1 <= value <= 8 else 1
    except struct.error:
        return 1
    return 1
