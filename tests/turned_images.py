"""Draws JPEGs and PNGs that say in every possible place which way up they are."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Iterator

from darkroom.images.jpeg_header import ORIENTATION_TAG

from .pictures import encode, make_photo

BYTE, ASCII, SHORT, LONG, RATIONAL, SIGNED_SHORT, SIGNED_LONG, FLOAT = 1, 2, 3, 4, 5, 8, 9, 11
XMP_NAME = b"http://ns.adobe.com/xap/1.0/\0"
Entry = tuple[int, int, int, bytes]


def make_exif(*entries: Entry, order: str = "<", behind: bytes = b"") -> bytes:
    """Returns an EXIF block of (tag, type, number of values, field); values start at 512."""
    mark = b"II*\0" if order == "<" else b"MM\0*"
    data = mark + struct.pack(order + "IH", 8, len(entries))
    for tag, kind, count, field in entries:
        data += struct.pack(order + "HHI", tag, kind, count) + field.ljust(4, b"\0")[:4]
    return (data + bytes(4)).ljust(512, b"\0") + behind


def make_entry(value: int, kind: int = SHORT, order: str = "<", count: int = 1) -> Entry:
    form = {BYTE: "B", ASCII: "B", SHORT: "H", LONG: "I", SIGNED_SHORT: "h", SIGNED_LONG: "i"}
    if kind == FLOAT:
        return ORIENTATION_TAG, kind, count, struct.pack(order + "f", value)
    if kind == RATIONAL or count > 2:
        return ORIENTATION_TAG, kind, count, struct.pack(order + "I", 512)
    packed = struct.pack(order + form[kind], value)
    return ORIENTATION_TAG, kind, count, packed * count


def make_segment(data: bytes, marker: int = 0xE1) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(data) + 2) + data


def make_xmp(value: int, form: str = 'tiff:Orientation="{}"') -> bytes:
    text = "<x:xmpmeta><rdf:Description " + form.format(value) + "/></x:xmpmeta>"
    return text.encode()


def make_jpeg(*segments: bytes) -> bytes:
    data = encode(make_photo(), "JPEG", quality=95, subsampling=0)
    return data[:2] + b"".join(segments) + data[2:]


def exif_segment(*entries: Entry, order: str = "<", behind: bytes = b"") -> bytes:
    return make_segment(b"Exif\0\0" + make_exif(*entries, order=order, behind=behind))


def xmp_segment(value: int, **form: str) -> bytes:
    return make_segment(XMP_NAME + make_xmp(value, **form))


def make_odd_jpegs() -> Iterator[tuple[str, bytes]]:
    six, eight = make_entry(6), make_entry(8)
    yield "long, little-endian", make_jpeg(exif_segment(make_entry(6, LONG)))
    big = make_entry(6, LONG, ">")
    yield "long, big-endian", make_jpeg(exif_segment(big, order=">"))
    yield "twice", make_jpeg(exif_segment(six), exif_segment(eight))
    yield "twice, first none", make_jpeg(exif_segment(), exif_segment(eight), xmp_segment(3))
    yield "XMP attribute", make_jpeg(xmp_segment(6))
    yield "XMP element", make_jpeg(xmp_segment(6, form="><tiff:Orientation>{}</tiff:Orientation"))
    yield "two XMP", make_jpeg(xmp_segment(6), xmp_segment(8))
    yield "EXIF before XMP", make_jpeg(exif_segment(six), xmp_segment(8))
    yield "EXIF without, XMP", make_jpeg(exif_segment(), xmp_segment(8))
    yield "behind many segments", make_jpeg(*[make_segment(b"", 0xE5)] * 11_000, exif_segment(six))
    yield "the last of one tag", make_jpeg(exif_segment(six, eight))
    yield (
        "rational",
        make_jpeg(exif_segment(make_entry(6, RATIONAL), behind=struct.pack("<II", 6, 1))),
    )
    yield "signed", make_jpeg(exif_segment(make_entry(6, SIGNED_SHORT)))
    yield "two values", make_jpeg(exif_segment(make_entry(6, count=2)))
    data = make_jpeg()
    scan = data.rindex(b"\xff\xda")
    yield "behind the tables", data[:scan] + exif_segment(six) + data[scan:]


def make_random_jpeg(chance: random.Random, sound: bool = False) -> bytes:
    """Returns a JPEG with random EXIF and XMP data; unless `sound`, some are damaged."""
    segments = []
    for _ in range(chance.choice((1, 1, 1, 2))):
        order = chance.choice("<>")
        entries = []
        for _ in range(chance.choice((0, 1, 1, 1, 2))):
            kind = chance.choice((BYTE, ASCII, SHORT, SHORT, LONG, RATIONAL, SIGNED_LONG, FLOAT))
            count = chance.choice((1, 1, 1, 2, 3))
            entries.append(make_entry(chance.randrange(10), kind, order, count))
            # A text that is within the block, or ends behind it.
            offset = 64 if sound else chance.choice((64, 600, 1 << 31))
            text = (0x010F, ASCII, chance.choice((4, 9, 90)), struct.pack(order + "I", offset))
            entries.append(text)
        chance.shuffle(entries)
        behind = struct.pack(order + "II", chance.randrange(10), chance.randrange(1, 3))
        segments.append(exif_segment(*entries, order=order, behind=behind))
    segments += [xmp_segment(chance.randrange(10))] * chance.choice((0, 0, 1))
    chance.shuffle(segments)
    return make_jpeg(*segments)


def make_png(*chunks: tuple[bytes, bytes]) -> bytes:
    data = encode(make_photo(), "PNG")
    more = b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in chunks
    )
    return data[:33] + more + data[33:]


def make_turned_pngs() -> Iterator[tuple[str, bytes]]:
    exif = make_exif(make_entry(6))
    text = f"\nexif\n{len(exif) + 6:8}\n{(b'Exif' + bytes(2) + exif).hex()}\n".encode()
    name = b"Raw profile type exif\0"
    yield "tEXt", make_png((b"tEXt", name + text))
    yield "zTXt", make_png((b"zTXt", name + b"\0" + zlib.compress(text)))
    yield "XMP", make_png((b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + make_xmp(6)))
    yield "EXIF", make_png((b"eXIf", exif))
