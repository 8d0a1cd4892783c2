"""Images of every form that docs/reference/stored-images.md lists, by the rows of its table."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from itertools import product

import numpy as np
from PIL import Image, ImageCms, features

from .pictures import encode, make_photo
from .turned_images import (
    RATIONAL,
    exif_segment,
    make_entry,
    make_exif,
    make_jpeg,
    make_segment,
    make_turned_pngs,
    make_xmp,
    xmp_segment,
)

PHOTO = make_photo()
CLEAR = PHOTO.convert("RGBA")
CLEAR.putalpha(Image.linear_gradient("L").resize(PHOTO.size))
GRAY, INDEXED = PHOTO.convert("L"), PHOTO.quantize(8)
SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
_RNG = np.random.default_rng(5)
_PALETTE = [tuple(map(int, color)) for color in _RNG.integers(0, 256, (256, 3))]
_SAVED = {"save_all": True, "append_images": [PHOTO.rotate(180)]}


def make_profile(name: str) -> bytes:
    """Returns a profile with the colors of Display P3, and a name."""

    def number(value: float) -> bytes:
        return struct.pack(">i", round(value * 65536))

    def triple(*values: float) -> bytes:
        return b"XYZ \0\0\0\0" + b"".join(map(number, values))

    def text(shown: str) -> bytes:
        encoded = shown.encode("utf-16-be")
        head = struct.pack(">4s4xII4sII", b"mluc", 1, 12, b"enUS", len(encoded), 28)
        return (head + encoded).ljust(28 + -(-len(encoded) // 4) * 4, b"\0")

    values = 2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045
    curve = b"para\0\0\0\0\0\3\0\0" + b"".join(map(number, values))
    tags = {
        b"desc": text(name),
        b"cprt": text("none"),
        b"wtpt": triple(0.9642, 1, 0.8249),
        b"rXYZ": triple(0.51512, 0.24120, -0.00105),
        b"gXYZ": triple(0.29198, 0.69225, 0.04189),
        b"bXYZ": triple(0.15710, 0.06657, 0.78407),
        **dict.fromkeys((b"rTRC", b"gTRC", b"bTRC"), curve),
    }
    table, body = struct.pack(">I", len(tags)), b""
    for tag, data in tags.items():
        table += struct.pack(">4sII", tag, 132 + 12 * len(tags) + len(body), len(data))
        body += data
    size = 128 + len(table) + len(body)
    head = struct.pack(">I4sI4s4s4s", size, b"none", 0x04000000, b"mntr", b"RGB ", b"XYZ ")
    head += struct.pack(">6H4s", 2020, 1, 1, 0, 0, 0, b"acsp") + bytes(28)
    return (head + triple(0.9642, 1, 0.8249)[8:]).ljust(128, b"\0") + table + body


WIDE, OTHER = make_profile("Display P3"), make_profile("Another RGB")


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def make_png(depth: int, color: int, *chunks: bytes) -> bytes:
    """Returns a PNG of 33 x 9 random pixels, which Pillow does not write of every kind."""
    row_bytes = -(-33 * depth * {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color] // 8)
    rows = b"".join(b"\0" + _RNG.bytes(row_bytes) for _ in range(9))
    header = chunk(b"IHDR", struct.pack(">2I5B", 33, 9, depth, color, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(rows))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(chunks) + pixels + chunk(b"IEND", b"")


def insert(png: bytes, *chunks: bytes, before: bytes = b"IEND") -> bytes:
    """Returns a PNG with more chunks before one of its own."""
    place = png.rindex(before) - 4
    return png[:place] + b"".join(chunks) + png[place:]


def make_bmp(bits: int, *, top_down: bool = False, header: int = 40, colors: int = 0) -> bytes:
    """Returns a BMP of 33 x 9 random pixels."""
    num_colors = (colors or 1 << bits) if bits <= 8 else 0
    row_bytes = (33 * bits + 31) // 32 * 4
    rows = _RNG.integers(0, 256, (9, row_bytes), np.uint8)
    if colors == 2 and bits == 8:
        rows &= 1
    palette = b"".join(struct.pack("4B", *color, 0) for color in _PALETTE[:num_colors])
    if colors == 2:
        palette = b"\0\0\0\0\xff\xff\xff\0"
    start = 14 + header + len(palette)
    sides = 33, -9 if top_down else 9
    info = struct.pack("<IiiHHIIiiII", header, *sides, 1, bits, 0, 0, 1, 1, colors, 0)
    body = info.ljust(header, b"\0") + palette + rows.tobytes()
    return b"BM" + struct.pack("<IHHI", 14 + len(body), 0, 0, start) + body


def _clear_place(bmp: bytes) -> bytes:
    """Returns a BMP that does not say where its pixels are."""
    return bmp[:10] + bytes(4) + bmp[14:]


def _turn(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def _list_turned_pngs() -> Iterator[tuple[str, bytes]]:
    for number in range(2, 9):
        yield f"{number}", encode(PHOTO, exif=_turn(number))
    exif = make_exif(make_entry(6))
    for names, (place, before) in product((0, 1, 2), (("before", b"IDAT"), ("after", b"IEND"))):
        data = chunk(b"eXIf", b"Exif\0\0" * names + exif)
        yield f"{place}, {names} names", insert(encode(PHOTO), data, before=before)
        xmp = chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + make_xmp(8))
        yield f"XMP {place}", insert(encode(PHOTO), xmp, before=before)
    # A comment only names chunks.
    comment = chunk(b"tEXt", b"Comment\0An eXIf and an IHDR are chunks.")
    yield "named in a comment", insert(encode(PHOTO), chunk(b"eXIf", exif), comment)
    yield "another behind", insert(encode(PHOTO), chunk(b"eXIf", exif)) + encode(GRAY)
    yield "transparent", encode(CLEAR, exif=_turn(6))
    yield "upright by EXIF", insert(encode(PHOTO), chunk(b"eXIf", make_exif(make_entry(1))))


def _list_transparent_pngs() -> Iterator[tuple[str, bytes]]:
    for depth, color in product((8, 16), (4, 6)):
        yield f"{depth} bits, color {color}", make_png(depth, color)
    for depth in (1, 2, 4, 8):
        palette, some = chunk(b"PLTE", _RNG.bytes(3 << depth)), chunk(b"tRNS", _RNG.bytes(2))
        yield f"palette of {depth} bits", make_png(depth, 3, palette, some)
    for depth in (1, 2, 4, 8, 16):
        yield f"a gray of {depth} bits", make_png(depth, 0, chunk(b"tRNS", b"\0\1"))
    yield "a level of gray", encode(GRAY, transparency=GRAY.getpixel((3, 3)))
    yield "a color", encode(PHOTO, transparency=PHOTO.getpixel((3, 3)))


def _list_odd_jpegs() -> Iterator[tuple[str, bytes]]:
    data, segment = make_jpeg(), exif_segment(make_entry(6))
    yield "rational", make_jpeg(exif_segment(make_entry(6, RATIONAL), behind=b"\6\0\0\0\1\0\0\0"))
    scan = data.rindex(b"\xff\xda")
    yield "behind the tables", data[:scan] + segment + data[scan:]


def _strip_palette(gif: bytes) -> bytes:
    return gif[:10] + bytes(3) + gif[13 + (6 << (gif[10] & 7)) :]


_PROFILE = make_segment(b"ICC_PROFILE\0\1\1" + WIDE, 0xE2)
_OTHER = make_segment(b"ICC_PROFILE\0\1\1" + OTHER, 0xE2)
_TURNED = exif_segment(make_entry(6))
_XCODE = chunk(b"CgBI", b"\x50\0\x20\2")

FORMS: dict[str, dict[str, bytes]] = {
    "JPEG, gray or color, also progressive": {
        "color": encode(PHOTO, "JPEG"),
        "gray": encode(GRAY, "JPEG"),
        "progressive": encode(PHOTO, "JPEG", progressive=True),
        "with a profile": make_jpeg(_PROFILE),
        "upright by EXIF": make_jpeg(exif_segment(make_entry(1))),
    },
    "JPEG turned by EXIF or XMP, with sRGB, Display P3 or no profile": {
        **{f"{number}": make_jpeg(exif_segment(make_entry(number))) for number in range(2, 9)},
        "XMP": make_jpeg(xmp_segment(6)),
        "gray": encode(GRAY, "JPEG", quality=95, exif=_turn(6), icc_profile=OTHER),
        "sRGB": encode(PHOTO, "JPEG", quality=95, exif=_turn(6), icc_profile=SRGB),
        "Display P3": make_jpeg(_TURNED, _PROFILE),
    },
    "JPEG turned, with another profile": {"turned": make_jpeg(_TURNED, _OTHER)},
    "JPEG with EXIF data in an odd place, or of an odd type": dict(_list_odd_jpegs()),
    "JPEG that is repaired": {
        "bytes between segments": make_jpeg().replace(b"\xff\xdb", b"\0\1\2\xff\xdb", 1),
    },
    "CMYK JPEG": {
        "with a marker": encode(PHOTO.convert("CMYK"), "JPEG"),
        "without": encode(PHOTO.convert("CMYK"), "JPEG").replace(b"Adobe", b"adobe"),
    },
    "PNG, gray, RGB or palette, 1 to 16 bits": {
        **{f"gray of {depth} bits": make_png(depth, 0) for depth in (1, 2, 4, 8, 16)},
        **{f"RGB of {depth} bits": make_png(depth, 2) for depth in (8, 16)},
        **{
            f"palette of {depth} bits": make_png(depth, 3, chunk(b"PLTE", _RNG.bytes(3 << depth)))
            for depth in (1, 2, 4, 8)
        },
    },
    "PNG turned by EXIF or XMP": dict(_list_turned_pngs()),
    "PNG with transparency": dict(_list_transparent_pngs()),
    "animated PNG": {"RGB": encode(PHOTO, **_SAVED), "RGBA": encode(CLEAR, **_SAVED)},
    "PNG with the profile sRGB, or one that its record keeps": {
        "kept": encode(PHOTO, icc_profile=OTHER),
        "gray": encode(CLEAR.convert("LA"), icc_profile=OTHER),
        "sRGB": encode(CLEAR, icc_profile=SRGB),
    },
    "PNG with a profile that a conversion applies": {
        "transparent": encode(CLEAR, icc_profile=OTHER),
        "palette": encode(INDEXED, icc_profile=WIDE),
        "turned": encode(PHOTO, icc_profile=WIDE, exif=_turn(6)),
        "animated": encode(PHOTO, icc_profile=WIDE, **_SAVED),
    },
    "PNG with EXIF data as a text, compressed, or of an odd type": {
        **{name: data for name, data in make_turned_pngs() if name in ("tEXt", "zTXt")},
        "compressed": insert(
            encode(PHOTO),
            chunk(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + zlib.compress(make_xmp(6))),
        ),
        "rational": insert(encode(PHOTO), chunk(b"eXIf", make_exif(make_entry(6, RATIONAL)))),
    },
    "GIF, also with transparency or animated": {
        "palette": encode(INDEXED, "GIF"),
        "gray": encode(GRAY, "GIF"),
        "transparent": encode(INDEXED, "GIF", transparency=1, comment=b"long" * 200),
        "transparent gray": encode(GRAY, "GIF", transparency=GRAY.getpixel((3, 3))),
        "RGBA": encode(CLEAR, "GIF"),
        "animated": encode(PHOTO, "GIF", **_SAVED),
        "animated, transparent": encode(CLEAR, "GIF", **_SAVED),
        "without its end": encode(INDEXED, "GIF")[:-2],
    },
    "GIF without a palette, or with a first frame smaller than the image": {
        "no palette": _strip_palette(encode(INDEXED, "GIF")),
        "smaller": (small := encode(INDEXED, "GIF"))[:6] + b"\x40\0\x40\0" + small[10:],
    },
    "BMP of 1, 4, 8, 24 or 32 bits": {
        **{f"{bits} bits": make_bmp(bits) for bits in (1, 4, 8, 24, 32)},
        **{f"{bits} bits, top down": make_bmp(bits, top_down=True) for bits in (1, 4, 8, 24, 32)},
        "later header": make_bmp(8, header=124),
        "black and white": make_bmp(8, colors=2),
        **{f"{bits} bits, bytes behind": make_bmp(bits) + b"more" for bits in (8, 24, 32)},
        **{f"{bits} bits, cut padding": make_bmp(bits)[:-1] for bits in (4, 24)},
        **{f"{bits} bits, no place": _clear_place(make_bmp(bits)) for bits in (8, 24)},
        **{
            f"Pillow's {image.mode}": encode(image, "BMP")
            for image in (GRAY, INDEXED, PHOTO.convert("1"), CLEAR)
        },
    },
    "BMP of 16 bits, compressed, or with an odd header": {
        "16 bits": make_bmp(16),
        "bit fields": make_bmp(32, header=124).replace(b"\1\0\x20\0\0", b"\1\0\x20\0\3", 1),
    },
    "WebP, TIFF, AVIF, HEIC": {
        kind: encode(CLEAR, kind)
        for kind in ("WEBP", "TIFF", "AVIF")
        if kind != "AVIF" or features.check("avif")
    },
    "16 bits of RGB with one transparent color; PNG of Xcode (CgBI)": {
        "16 bits": make_png(16, 2, chunk(b"tRNS", bytes(6))),
        "Xcode": insert(encode(PHOTO), _XCODE, before=b"IHDR"),
    },
    "other formats; more than 67 megapixels": {
        "empty": b"",
        "HTML": b"<!doctype html>",
        "PSD": b"8BPS\0\1",
        "large": encode(PHOTO)[:16] + struct.pack(">2I", 10_000, 10_000) + encode(PHOTO)[24:],
    },
    "damaged": {
        "PNG": encode(PHOTO)[:-30],
        "JPEG": encode(PHOTO, "JPEG")[:-300],
        "GIF": encode(PHOTO, "GIF")[:900],
        "BMP": encode(INDEXED, "BMP")[:-30],
    },
}
