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
_PNG_CRITICAL = frozenset((b"IHDR", b"PLTE", b"IDAT", b"IEND"))
_PNG_CHANNELS = {b"\0": 1, b"\2": 3, b"\3": 1, b"\4": 2, b"\6": 4}
# First column and row, and steps, of the seven passes of an interlaced PNG.
_ADAM7 = (
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
)
_INFLATED_BYTES = 1 << 16


class ImageError(Exception):
    """An image cannot be used: the reason code, and what is wrong, for a person."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


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


def is_plain_png(data: bytes) -> bool:
    """Tells whether a PNG has 8 bits, RGB or gray, no transparency, one frame, no EXIF data."""
    if data[24:25] != b"\x08" or data[25:26] not in (b"\0", b"\x02"):
        return False
    names = {name for name, _, _ in iterate_png_chunks(data)}
    return names.isdisjoint((b"tRNS", b"acTL", b"eXIf"))


def iterate_png_chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yields name, start and end (of the data within `data`) of the chunks that a PNG has whole.

    What follows the end of the image is left out.
    """
    place = len(_PNG_MAGIC)
    while place + 12 <= len(data):
        length = int.from_bytes(data[place : place + 4], "big")
        start, end = place + 8, place + 8 + length
        if end + 4 > len(data):
            return
        name = data[place + 4 : start]
        yield name, start, end
        if name == b"IEND":
            return
        place = end + 4


def find_png_damage(data: bytes) -> str | None:
    """Returns what is wrong with a PNG, or None.

    Told here is what Pillow lets pass and TensorFlow's decoder refuses: wrong checksums, chunks
    that the format does not know, compressed pixels without their end, a file without its end.
    """
    pixels = _PixelStream(data)
    name = b""
    for number, (name, start, end) in enumerate(iterate_png_chunks(data)):
        shown = name.decode("ascii", "replace")
        if zlib.crc32(memoryview(data)[start - 4 : end]) != int.from_bytes(
            data[end : end + 4], "big"
        ):
            return f"the checksum of its chunk {shown} is wrong"
        is_header = name == b"IHDR" and end - start == 13 and data[26] == 0
        if is_header != (number == 0) or not (name[0] & 0x20 or name in _PNG_CRITICAL):
            return f"its chunk {shown} is not what the format expects"
        if name == b"IDAT" and (damage := pixels.find_damage(data[start:end])):
            return damage
    return None if name == b"IEND" and pixels.is_complete else "it ends early"


class _PixelStream:
    """Follows the compressed pixels of a PNG to their end, keeping none of them."""

    def __init__(self, data: bytes) -> None:
        self._stream = zlib.decompressobj()
        self._missing_bytes = _count_png_bytes(data)

    @property
    def is_complete(self) -> bool:
        """Whether the stream has come to its end, and held all pixels."""
        return self._stream.eof and self._missing_bytes <= 0

    def find_damage(self, data: bytes) -> str | None:
        """Inflates a piece; returns what is wrong with it, or None."""
        try:
            while data and not self._stream.eof:
                self._missing_bytes -= len(self._stream.decompress(data, _INFLATED_BYTES))
                data = self._stream.unconsumed_tail
                if self._missing_bytes < -_INFLATED_BYTES:
                    return "it holds more data than it has pixels"
        except zlib.error as error:
            return f"its compressed pixels are damaged: {error}"
        return None


def _count_png_bytes(data: bytes) -> int:
    """Returns how many bytes the pixels of a PNG take before they are compressed."""
    height, width = parse_png_size(data)
    depth, colour, interlaced = (data[place : place + 1] for place in (24, 25, 28))
    bits = int.from_bytes(depth, "big") * _PNG_CHANNELS.get(colour, 0)
    passes = _ADAM7 if interlaced == b"\1" else ((0, 0, 1, 1),)
    num_bytes = 0
    for left, top, step_x, step_y in passes:
        columns, rows = -(-(width - left) // step_x), -(-(height - top) // step_y)
        if columns > 0 and rows > 0:
            num_bytes += rows * (1 + -(-columns * bits // 8))  # each row begins with its filter
    return num_bytes


def parse_png_size(data: bytes) -> tuple[int, int]:
    """Returns height and width of a PNG; zeros when it ends before they are told."""
    width, height = struct.unpack(">2I", data[16:24].ljust(8, b"\0"))
    return height, width


def has_jpeg_end(data: bytes) -> bool:
    """Tells whether a JPEG's end comes after its last scan; what follows it does not matter."""
    return data.rfind(b"\xff\xd9") > data.rfind(b"\xff\xda")


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
