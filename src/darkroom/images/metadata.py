"""What a JPEG or PNG says besides its pixels: where it was taken, with which camera.

Only images whose bytes are kept can say it: those that are encoded again have their pixels alone.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Sequence
from contextlib import suppress

from darkroom.images.headers import iterate_png_chunks
from darkroom.images.jpeg_header import EXIF_ORDERS, iterate_exif

# A place on Earth; the number of one camera or lens.
LOCATION, SERIAL = "location", "serial"

# Directories of EXIF, by the tag that points to them.
_FIRST, _CAMERA, _GPS = 0, 0x8769, 0x8825
_LATITUDE, _LONGITUDE = 2, 4
_SERIALS = ((_FIRST, 0xC62F), (_CAMERA, 0xA431), (_CAMERA, 0xA435))
_XMP_LOCATION = re.compile(rb'GPSL(?:atitude|ongitude)\s*(?:=\s*["\']|>)\s*[^"\'<\s]')
_XMP_SERIAL = re.compile(rb'SerialNumber\s*(?:=\s*["\']|>)\s*[^"\'<\s0]')
_MAX_TEXT_BYTES = 1 << 20

_APP0, _APP2, _APP14, _COMMENT, _START_OF_SCAN, _END = 0xE0, 0xE2, 0xEE, 0xFE, 0xDA, 0xD9
# What the pixels or their colors depend on.
_KEPT_SEGMENTS = {_APP0: b"JFIF\0", _APP2: b"ICC_PROFILE\0", _APP14: b"Adobe"}
_MARKER_AFTER_SCAN = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
_KEPT_CHUNKS = frozenset(
    b"IHDR PLTE IDAT IEND tRNS gAMA cHRM sRGB iCCP cICP sBIT bKGD hIST pHYs sPLT".split()
)


def find_private(exif: Sequence[bytes], xmp: bytes) -> str:
    """Returns what metadata say that a person may not want to tell.

    Args:
        exif: Blocks of EXIF, each a TIFF header and its directories.
        xmp: XMP, or texts of the same form.

    Returns:
        `location` and `serial`, as far as they are there, joined by a comma.
    """
    if not exif and not xmp:
        return ""
    found = set()
    if _XMP_LOCATION.search(xmp):
        found.add(LOCATION)
    if _XMP_SERIAL.search(xmp):
        found.add(SERIAL)
    for tiff in exif:
        order = EXIF_ORDERS.get(tiff[:4])
        if order is None:
            continue
        directories = {_FIRST: _read_directory(tiff, order, tiff[4:8])}
        for pointer in (_CAMERA, _GPS):
            place = directories[_FIRST].get(pointer, b"")
            directories[pointer] = _read_directory(tiff, order, place)
        # Without a fix, cameras write an empty directory, or zeros. Numerators say where.
        for tag in (_LATITUDE, _LONGITUDE):
            value = directories[_GPS].get(tag, b"")
            if any(value[start : start + 4].strip(b"\0") for start in range(0, len(value), 8)):
                found.add(LOCATION)
        if any(directories[where].get(tag, b"").strip(b"\0 0") for where, tag in _SERIALS):
            found.add(SERIAL)
    return ",".join(sorted(found))


def _read_directory(tiff: bytes, order: str, pointer: bytes) -> dict[int, bytes]:
    """Returns the values of a directory by tag, as far as it can be read."""
    values: dict[int, bytes] = {}
    # Some readers find what is before the damage.
    with suppress(struct.error):
        for tag, _, _, start, size in iterate_exif(tiff, order, pointer):
            values[tag] = tiff[start : start + size]
    return values


def find_png_private(data: bytes) -> str:
    """Returns what the metadata of a PNG say, as `find_private` does."""
    exif: list[bytes] = []
    texts = b""
    for name, start, end in iterate_png_chunks(data):
        if name == b"eXIf":
            exif.append(data[start:end])
        elif name in (b"tEXt", b"zTXt", b"iTXt"):
            keyword, _, rest = data[start:end].partition(b"\0")
            text = _read_text(name, rest)
            if keyword.startswith(b"Raw profile type"):  # ImageMagick's, in hexadecimal
                try:
                    block = bytes.fromhex(b"".join(text.split()[2:]).decode("ascii"))
                except ValueError:
                    continue
                exif.append(block.removeprefix(b"Exif\0\0"))
            else:
                texts += keyword + b">" + text + b"<"
    return find_private(exif, texts)


def _read_text(chunk: bytes, rest: bytes) -> bytes:
    """Returns the text of a chunk, what follows its keyword; empty where it is damaged."""
    text, is_packed = rest, False
    if chunk == b"zTXt":
        text, is_packed = rest[1:], True
    elif chunk == b"iTXt":  # after two flags, the language and the translated keyword
        text, is_packed = rest[2:].split(b"\0", 2)[-1], rest[:1] == b"\1"
    try:
        return zlib.decompressobj().decompress(text, _MAX_TEXT_BYTES) if is_packed else text
    except zlib.error:
        return b""


def strip_jpeg(data: bytes) -> bytes | None:
    """Returns a JPEG without EXIF, XMP, IPTC, comments, previews and what follows its end.

    Its pixels, its profile and what else their colors depend on stay byte for byte.

    Returns:
        The JPEG, `data` itself if it has nothing of these; None when its segments break the rules.
    """
    parts, place = [data[:2]], 2
    while True:
        while data.startswith(b"\xff\xff", place):
            place += 1
        marker = data[place + 1] if data.startswith(b"\xff", place) and place + 1 < len(data) else 0
        if marker == _END:
            stripped = b"".join((*parts, data[place : place + 2]))
            return data if len(stripped) == len(data) else stripped
        end = place + 2 + int.from_bytes(data[place + 2 : place + 4], "big")
        if marker < 0xC0 or end < place + 4 or end > len(data):
            return None
        needed = _KEPT_SEGMENTS.get(marker)
        is_metadata = marker == _COMMENT or marker in range(_APP0, _APP0 + 16)
        if not is_metadata or (needed and data.startswith(needed, place + 4)):
            parts.append(data[place:end])
        if marker == _START_OF_SCAN:
            found = _MARKER_AFTER_SCAN.search(data, end)
            if not found:
                return None
            parts.append(data[end : found.start()])
            end = found.start()
        place = end


def strip_png(data: bytes) -> bytes:
    """Returns a PNG without EXIF, texts, times, unknown chunks and what follows its end.

    Its pixels, its profile and what else their colors depend on stay byte for byte.

    Returns:
        The PNG; `data` itself if it has nothing of these.
    """
    kept = [
        data[start - 8 : end + 4]
        for name, start, end in iterate_png_chunks(data)
        if name in _KEPT_CHUNKS
    ]
    stripped = data[:8] + b"".join(kept)
    return data if len(stripped) == len(data) else stripped
