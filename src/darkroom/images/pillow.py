"""Decoding with Pillow: all images that are not plain JPEGs."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, NamedTuple

from PIL import Image, UnidentifiedImageError

from darkroom.errors import RejectError
from darkroom.images import tiff
from darkroom.images.headers import (
    JPEG,
    PNG,
    PNG_GRAY,
    PNG_RGB,
    parse_webp_size,
    sniff_format,
)
from darkroom.images.jpeg_header import ORIENTATION_TAG, parse_xmp_orientation
from darkroom.images.memory import (
    MemoryNeededError,
    Reserve,
    check_need,
    check_num_pixels,
    count_bytes,
    reserve_nothing,
)
from darkroom.images.pixels import Pixels, convert_to_rgb, find_turn, is_low, undo_orientation
from darkroom.targets.geometry import IDENTITY, Matrix

# Pillow opens only these formats, each with the reader named here: its rarer readers are where
# faults are found.
_READERS = {
    JPEG: ("JPEG", "PIL.JpegImagePlugin"),
    PNG: ("PNG", "PIL.PngImagePlugin"),
    "gif": ("GIF", "PIL.GifImagePlugin"),
    "bmp": ("BMP", "PIL.BmpImagePlugin"),
    "webp": ("WEBP", "PIL.WebPImagePlugin"),
    "tiff": ("TIFF", "PIL.TiffImagePlugin"),
    "avif": ("AVIF", "PIL.AvifImagePlugin"),
    "heic": ("HEIF", "pillow_heif.HeifImagePlugin"),
}

_NO_READER = "this Pillow was built without {}"
_MISSING = {
    "avif": "this Pillow reads no AVIF; its wheels do from version 11.3 on",
    "heic": "HEIC images need the extra 'heic' (pillow-heif), which is not installed",
}

# Pillow warns of things checked here. Threads share filters, so there is one for all calls.
warnings.filterwarnings("ignore", module=r"PIL\.")


class ImageHeader(NamedTuple):
    """The facts in the header of an image file.

    Attributes:
        height: Its height in pixels, as stored.
        width: Its width in pixels, as stored.
        channels: Number of its channels.
        profile: Its embedded ICC profile; None when it has none.
    """

    height: int
    width: int
    channels: int
    profile: bytes | None


class Decoded(NamedTuple):
    """A decoded image, upright and in 8 bits.

    Attributes:
        pixels: uint8 [height, width], or [height, width, 3] RGB.
        changes: Codes of the changes; empty when the file has exactly these pixels.
        profile: ICC profile of RGB pixels that are not known to be sRGB.
        matrix: Where a point of the file's pixels is in these.
    """

    pixels: Pixels
    changes: list[str]
    profile: bytes | None = None
    matrix: Matrix = IDENTITY


def parse_header(data: bytes, source_format: str) -> ImageHeader:
    """Returns the facts in the header of an image file, without decoding it.

    Raises:
        RejectError: The file is damaged.
    """
    with _open(data, source_format) as image:
        channels = len(image.getbands())
        return ImageHeader(image.height, image.width, channels, image.info.get("icc_profile"))


def find_orientation(data: bytes, source_format: str) -> int:
    """Returns which way up an image is, 1 to 8, without decoding it; 1 when it is damaged."""
    try:
        with _open(data, source_format) as image:
            return _read_orientation(image)
    except RejectError:
        return 1


def decode(data: bytes, source_format: str, reserve: Reserve = reserve_nothing) -> Decoded:
    """Decodes an image, or the first one of several, completely.

    Args:
        data: The file.
        source_format: Its format.
        reserve: Called with the memory that decoding takes, before it starts.

    Raises:
        RejectError: The file is damaged, of an unsupported kind or too large.
    """
    changes = [] if source_format in (JPEG, PNG) else [f"format:{source_format}"]
    if source_format == "bmp":
        data = _correct_colors(data)
    if source_format == "webp":  # opening it already takes the memory for its canvas
        _reserve(data, source_format, parse_webp_size(data), reserve)
    with _open(data, source_format) as image:
        _reserve(data, source_format, (image.height, image.width), reserve, image.mode)
        if source_format == PNG and "transparency" in image.info:
            _correct_transparency(image, data[24], data[25])
        return _load(image, changes)


def _reserve(
    data: bytes, source_format: str, size: tuple[int, int], reserve: Reserve, mode: str = ""
) -> None:
    """Checks that an image may be decoded, and that there is memory for it."""
    check_num_pixels(*size)
    num_pixels = size[0] * size[1]
    num_bytes = count_bytes(num_pixels, source_format, mode.startswith(("1", "L", "I;16")))
    with reserve(check_need(num_pixels, num_bytes, len(data))):
        return


def _correct_colors(data: bytes) -> bytes:
    """Returns a BMP of 4 or 8 bits with no number of colors, if they are black and white.

    Pillow takes it for one of a bit, and gives wrong pixels.
    """
    place = 14 + int.from_bytes(data[14:18], "little")
    palette = data[place : place + 3] + data[place + 4 : place + 7]
    is_deep = data[28:30] in (b"\4\0", b"\x08\0")
    if is_deep and data[46:50] == b"\2\0\0\0" and palette == b"\0\0\0\xff\xff\xff":
        return data[:46] + bytes(4) + data[50:]
    return data


def _correct_transparency(image: Any, depth: int, color: int) -> None:
    """Brings the transparent color of a PNG to the 8 bits that Pillow gives its pixels."""
    if color == PNG_GRAY and depth < 8:
        top = (1 << depth) - 1
        image.info["transparency"] = (image.info["transparency"] & top) * 255 // top
    elif color == PNG_RGB and depth > 8:
        what = "one transparent color in RGB of 16 bits"
        raise RejectError("unsupported_format", f"{what} is not read: store it with 8 bits")


def _load(image: Any, changes: list[str]) -> Decoded:
    """Decodes an image that is open, and makes it upright; adds the codes of changes to `changes`.

    Loading changes what Pillow says of the file. So the tags of a TIFF are read before, and the
    profile and the orientation that is still to be undone are read after it.
    """
    if getattr(image, "is_animated", False):
        changes.append("first_frame")
    bits, is_inverted = 16, False
    if image.format == "TIFF":
        tiff.check_kind(image.tag_v2)
        bits, is_inverted = tiff.count_bits(image.tag_v2), tiff.is_inverted(image.tag_v2)
        changes += ["bit_depth"] if bits > 8 else []
    # While loading, Pillow turns a TIFF upright, and finds EXIF data after a PNG's pixels.
    turned = _read_orientation(image) if image.format == "TIFF" else 1
    image.load()
    is_rgb = image.mode in ("RGB", "RGBA", "P", "PA")
    profile = image.info.get("icc_profile") if is_rgb else None
    left = _read_orientation(image)
    if max(turned, left) > 1:
        changes.append("orientation")
    pixels = convert_to_rgb(image, changes, bits)
    if image.format == "TIFF" and bits > 8 and is_low(pixels):
        changes.append("low_bits")
    upright, matrix = undo_orientation(~pixels if is_inverted else pixels, left)
    if turned > 1:
        matrix = find_turn(turned, *pixels.shape[:2]).then(matrix)
    return Decoded(upright, changes, profile, matrix)


def _read_orientation(image: Any) -> int:
    """Returns which way up an image is, 1 to 8, by EXIF or else by XMP."""
    try:
        value = image.getexif().get(ORIENTATION_TAG)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  damaged metadata makes it raise anything, and turns nothing
        return 1
    if value is None and image.format != "TIFF":  # Pillow has turned a TIFF, by XMP as well
        # Older versions of Pillow do not look at XMP themselves.
        xmp = image.info.get("XML:com.adobe.xmp") or image.info.get("xmp") or b""
        value = parse_xmp_orientation(xmp.encode() if isinstance(xmp, str) else bytes(xmp))
    return int(value) if value in range(2, 9) else 1


@contextmanager
def open_stored(data: bytes | memoryview, form: str | None = None) -> Iterator[Any]:
    """Opens the image of a record, which may be that of a stranger.

    Args:
        data: The image, as the record stores it.
        form: Its format, JPEG or PNG; None: by its first bytes.

    Raises:
        RejectError: It is another image, damaged or too large. Also for what the block raises.
    """
    data = bytes(data)
    form = form or sniff_format(data)
    if form not in (JPEG, PNG):
        raise RejectError("undecodable", f"it is {form or 'no image'}, expected JPEG or PNG")
    with _open(data, form) as image:
        check_num_pixels(image.height, image.width)
        yield image


@contextmanager
def _open(data: bytes, source_format: str) -> Iterator[Any]:
    """Opens an image; any error that Pillow raises becomes a `RejectError`, but of no memory."""
    reader = _load_reader(source_format)
    try:
        with Image.open(io.BytesIO(data), formats=[reader]) as image:
            yield image
    except (RejectError, MemoryNeededError, MemoryError):
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise RejectError("too_large", str(error).rstrip(".")) from None
    except UnidentifiedImageError:
        if source_format == "tiff" and (kind := tiff.describe_unread(data)):
            raise RejectError("unsupported_format", kind) from None
        text = f"its header is not one of {reader}, or is damaged"
        raise RejectError("undecodable", text) from None
    except Exception as error:  # noqa: BLE001  damaged files make it raise anything
        text = f"{type(error).__name__}: {error}"
        reason = "truncated" if "truncated" in text.lower() else "undecodable"
        raise RejectError(reason, text) from None


def load_readers() -> None:
    """Loads Pillow's readers of all formats that this installation has."""
    for source_format in _READERS:
        with suppress(RejectError):
            _load_reader(source_format)


def _load_reader(source_format: str) -> str:
    """Loads Pillow's reader of a format; returns Pillow's name for it."""
    name, module = _READERS[source_format]
    try:
        is_supported = getattr(import_module(module), "SUPPORTED", True)
    except ImportError:
        is_supported = False
    if is_supported and name in Image.OPEN:
        return name
    raise RejectError("unsupported_format", _describe_missing(source_format))


def _describe_missing(source_format: str) -> str:
    return _MISSING.get(source_format, _NO_READER).format(_READERS[source_format][0])


def has_reader_now(detail: str) -> bool:
    """Tells whether the detail of a reject names a missing reader that is here now."""
    for source_format in _READERS:
        if detail == _describe_missing(source_format):
            with suppress(RejectError):
                return bool(_load_reader(source_format))
    return False
