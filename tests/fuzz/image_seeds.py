"""Small images of every format and color mode, for the targets to change."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Iterator

import numpy as np
from PIL import Image, features

FORMATS = ("jpeg", "png", "gif", "bmp", "tiff", "webp", "avif", "heic")
TOKENS = (
    b"\xff\xd8\xff",
    b"\xff\xe1",
    b"\xff\xda",
    b"\xff\xd9",
    b"Exif\0\0",
    b"II*\0\x08\0\0\0",
    b"\x12\x01\x03\0\x01\0\0\0\x06\0",
    b"\x89PNG\r\n\x1a\n",
    b"IHDR",
    b"PLTE",
    b"IDAT",
    b"IEND",
    b"tRNS",
    b"acTL",
    b"eXIf",
    b"iCCP",
    b"RIFF",
    b"WEBP",
    b"ftypavif",
    b"ftypheic",
    b"GIF89a",
    b"BM",
)


def make_images() -> Iterator[bytes]:
    """Yields encoded images of 8 x 6 pixels."""
    pixels = np.arange(8 * 6 * 3, dtype=np.uint8).reshape(6, 8, 3)
    rgb = Image.fromarray(pixels)
    exif = Image.Exif()
    exif[0x0112] = 6
    for quality in (50, 95):
        yield _encode(rgb, "JPEG", quality=quality)
    yield _encode(rgb, "JPEG", progressive=True, exif=exif)
    yield _encode(rgb.convert("L"), "JPEG")
    yield _encode(rgb.convert("CMYK"), "JPEG")
    yield from _make_pngs(rgb, exif)
    yield _encode(rgb, "GIF", save_all=True, append_images=[rgb.rotate(180)])
    yield _encode(rgb, "BMP")
    yield _encode(rgb.convert("P"), "BMP")
    for compression in (None, "packbits", "tiff_lzw", "tiff_adobe_deflate", "jpeg"):
        yield _encode(rgb, "TIFF", compression=compression)
    for name in ("webp", "avif"):
        if features.check(name):
            yield _encode(rgb, name)
    if importlib.util.find_spec("pillow_heif"):
        import pillow_heif

        pillow_heif.register_heif_opener()
        yield _encode(rgb, "HEIF")


def _make_pngs(rgb: Image.Image, exif: Image.Exif) -> Iterator[bytes]:
    rgba = rgb.convert("RGBA")
    rgba.putalpha(90)
    deep = Image.fromarray(np.arange(48, dtype=np.uint16).reshape(6, 8) * 999)
    for image in (rgb, rgb.convert("L"), rgba, rgb.convert("LA"), rgb.quantize(4), deep):
        yield _encode(image, "PNG")
    yield _encode(rgb.convert("1"), "PNG")
    yield _encode(rgb, "PNG", exif=exif)
    yield _encode(rgb.quantize(4), "PNG", transparency=1)
    yield _encode(rgb, "PNG", save_all=True, append_images=[rgb.rotate(180)])


def _encode(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()
