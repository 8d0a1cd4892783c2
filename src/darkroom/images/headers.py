"""Tells format, size and damage of an image file by its name and its bytes, without decoding."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator

from darkroom.storage.uris import find_ending

JPEG, PNG = "jpeg", "png"
# Files with other endings (licences, notes, thumbnail databases) are not images.
IMAGE_ENDINGS = frozenset(
    f".{name}"
    for name in "avif bmp gif heic heif jfif jpe jpeg jpg png tif tiff webp".split()  # noqa: SIM905
)
# Types of color in the header of a PNG.
PNG_GRAY, PNG_RGB, PNG_PALETTE, PNG_GRAY_ALPHA = 0, 2, 3, 4

_PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
_MAGIC = (
    (b"\xff\xd8\xff", JPEG),
    (_PNG_MAGIC, PNG),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
    (b"BM", "bmp"),
    (b"II*\0", "tiff"),
    (b"MM\0*", "tiff"),
    (b"II+\0", "tiff"),
    (b"MM\0+", "tiff"),
)
# How images of other formats begin, which are named but not read; the first that fits counts.
_FOREIGN = tuple(
    (re.compile(pattern, re.DOTALL), name)
    for pattern, name in (
        (rb"\x89PNG\r\n\x1a\n....CgBI", "PNG of Xcode (CgBI)"),
        (rb"\0\0\0\x0cjP  |\xff\x4f\xff\x51", "JPEG 2000"),
        (rb"\0\0\0\x0cJXL |\xff\x0a", "JPEG XL"),
        (rb"II\xbc", "JPEG XR"),
        (rb"\0\0\x01\0[^\0]\0...\0", "ICO"),
        (rb"8BPS", "PSD"),
        (rb"gimp xcf", "XCF"),
        (rb"DDS ", "DDS"),
        (rb"P[1-6](?:\s|#[^\n]*\n)+\d+\s|P7\s(?:WIDTH|332)|P[fF]\s+\d+\s+\d+\s", "PGM or PPM"),
        (rb"qoif", "QOI"),
        (rb"%!PS|\xc5\xd0\xd3\xc6", "EPS"),
        (rb"SIMPLE  =", "FITS"),
        (rb"\x76\x2f\x31\x01", "OpenEXR"),
        (rb"#\?RADIANCE|#\?RGBE", "Radiance HDR"),
        (rb".{128}DICM", "DICOM"),
    )
)
_FOREIGN_BYTES = 1024
_TGA_END = b"TRUEVISION-XFILE.\0"
_AVIF_BRANDS = (b"avif", b"avis")
# The last two say only that it is one or more images of this family.
_HEIC_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1")
_PNG_CRITICAL = frozenset((b"IHDR", b"PLTE", b"IDAT", b"IEND"))
_PNG_NOT_PLAIN = frozenset((b"tRNS", b"acTL", b"eXIf"))
_PNG_TEXTS = frozenset((b"tEXt", b"zTXt", b"iTXt"))
# Names of the texts that can say which way up a PNG is; the first is ImageMagick's.
_PNG_EXIF = (b"Raw profile type exif\0", b"XML:com.adobe.xmp\0", b"exif\0", b"xmp\0")
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


def is_image_name(path: str) -> bool:
    """Tells whether a path has the ending of an image."""
    return find_ending(path) in IMAGE_ENDINGS


def sniff_format(data: bytes) -> str | None:
    """Returns the format of an image by its first bytes, or None for an unknown one."""
    if data.startswith(_PNG_MAGIC) and data[12:16] == b"CgBI":
        return None  # decoders of PNGs do not read it
    for magic, name in _MAGIC:
        if data.startswith(magic):
            return name
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    if data[4:8] != b"ftyp":
        return None
    # ISO's family of formats: the file's own brand, then those that it is compatible with.
    end = min(int.from_bytes(data[:4], "big"), 256)
    brands = [data[8:12], *(data[place : place + 4] for place in range(16, end, 4))]
    if brands[0] not in (*_AVIF_BRANDS, *_HEIC_BRANDS):
        return None
    return "avif" if any(brand in _AVIF_BRANDS for brand in brands) else "heic"


def find_foreign_format(data: bytes) -> str | None:
    """Returns the name of an image format that is known by its bytes, but not read."""
    start = data[:_FOREIGN_BYTES]
    for pattern, name in _FOREIGN:
        if pattern.match(start):
            return name
    return "TGA" if data.endswith(_TGA_END) else None


def describe_bytes(data: bytes) -> str:
    """Returns the likely kind of a file that is not an image, for a message."""
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
    """Tells whether a PNG is opaque RGB or gray of 8 bits, with one frame and never turned."""
    if data[24:25] != b"\x08" or data[25:26] not in (b"\0", b"\x02"):
        return False
    if not has_sound_png_header(data):
        return False
    return not any(
        name in _PNG_NOT_PLAIN or (name in _PNG_TEXTS and data.startswith(_PNG_EXIF, start))
        for name, start, _ in iterate_png_chunks(data)
    )


def has_sound_png_header(data: bytes) -> bool:
    """Tells whether a PNG begins with an intact header, and has pixels."""
    checksum = int.from_bytes(data[29:33], "big")
    return zlib.crc32(data[12:29]) == checksum and 0 not in parse_png_size(data)


def iterate_png_chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yields name, start and end (of the chunk's data within `data`) of a PNG's complete chunks.

    Bytes after the end of the image are ignored.
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
    """Returns the problem with a PNG, or None.

    It finds faults that Pillow accepts and TensorFlow's decoder does not: wrong checksums, unknown
    chunks, compressed pixels without their end, a file without its end.
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
            return f"its chunk {shown} is not as the format expects"
        if name == b"IDAT" and (damage := pixels.find_damage(data[start:end])):
            return damage
    return None if name == b"IEND" and pixels.is_complete else "it ends early"


class _PixelStream:
    """Reads the compressed pixels of a PNG to their end, and keeps none of them."""

    def __init__(self, data: bytes) -> None:
        self._stream = zlib.decompressobj()
        self._missing_bytes = _count_png_bytes(data)

    @property
    def is_complete(self) -> bool:
        """Whether the stream has ended, and had all pixels."""
        return self._stream.eof and self._missing_bytes <= 0

    def find_damage(self, data: bytes) -> str | None:
        """Inflates a part; returns the problem with it, or None."""
        try:
            while data and not self._stream.eof:
                self._missing_bytes -= len(self._stream.decompress(data, _INFLATED_BYTES))
                data = self._stream.unconsumed_tail
                if self._missing_bytes < -_INFLATED_BYTES:
                    return "it has more data than pixels"
        except zlib.error as error:
            return f"its compressed pixels are damaged: {error}"
        return None


def _count_png_bytes(data: bytes) -> int:
    """Returns how many bytes the pixels of a PNG take before they are compressed."""
    height, width = parse_png_size(data)
    depth, color, interlaced = (data[place : place + 1] for place in (24, 25, 28))
    bits = int.from_bytes(depth, "big") * _PNG_CHANNELS.get(color, 0)
    passes = _ADAM7 if interlaced == b"\1" else ((0, 0, 1, 1),)
    num_bytes = 0
    for left, top, step_x, step_y in passes:
        columns, rows = -(-(width - left) // step_x), -(-(height - top) // step_y)
        if columns > 0 and rows > 0:
            num_bytes += rows * (1 + -(-columns * bits // 8))  # each row begins with its filter
    return num_bytes


def parse_png_size(data: bytes) -> tuple[int, int]:
    """Returns height and width of a PNG; zeros when it does not begin with them."""
    if data[12:16] != b"IHDR":
        return 0, 0
    width, height = struct.unpack(">2I", data[16:24].ljust(8, b"\0"))
    return height, width


def parse_webp_size(data: bytes) -> tuple[int, int]:
    """Returns height and width of the canvas of a WebP; zeros when it does not begin with them."""
    kind, bits = data[12:16], int.from_bytes(data[20:30].ljust(10, b"\0"), "little")
    if kind == b"VP8X":
        return (bits >> 56) % (1 << 24) + 1, (bits >> 32) % (1 << 24) + 1
    if kind == b"VP8L":
        return (bits >> 22) % (1 << 14) + 1, (bits >> 8) % (1 << 14) + 1
    if kind == b"VP8 ":
        return (bits >> 64) % (1 << 14), (bits >> 48) % (1 << 14)
    return 0, 0
