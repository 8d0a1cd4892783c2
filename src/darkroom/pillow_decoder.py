"""Decoding with Pillow: everything that is not a plain JPEG."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageOps

from darkroom.image_bytes import JPEG, PNG, ImageError
from darkroom.pixels import Pixels, convert_to_rgb

# A decoded image of this many pixels takes 384 MiB; a bomb is told by its header, undecoded.
MAX_PIXELS = 1 << 27

# Pillow opens nothing else: its rarer readers are where its faults are found.
_PILLOW_FORMATS = {
    JPEG: "JPEG",
    PNG: "PNG",
    "gif": "GIF",
    "bmp": "BMP",
    "webp": "WEBP",
    "tiff": "TIFF",
    "avif": "AVIF",
}
_ORIENTATION_TAG = 0x0112

# Pillow warns of what is checked here. A filter around each call would not do: threads share them.
warnings.filterwarnings("ignore", module=r"PIL\.")


class Header(NamedTuple):
    """What an image file says of itself.

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
        changes: Codes of what that took; empty when the file holds just these pixels.
        profile: ICC profile of RGB pixels that are not known to be sRGB.
    """

    pixels: Pixels
    changes: list[str]
    profile: bytes | None = None


def check_num_pixels(height: int, width: int) -> None:
    """Checks that an image may be decoded.

    Raises:
        ImageError: It has too many pixels.
    """
    if height * width > MAX_PIXELS:
        raise ImageError(
            "too_large", f"{width} x {height} pixels are more than {MAX_PIXELS:,} together"
        )


def read_header(data: bytes, source_format: str) -> Header:
    """Returns what an image file says of itself, undecoded.

    Raises:
        ImageError: The file is damaged.
    """
    with _open(data, source_format) as image:
        channels = len(image.getbands())
        return Header(image.height, image.width, channels, image.info.get("icc_profile"))


def decode(data: bytes, source_format: str) -> Decoded:
    """Decodes an image, or the first one of several, completely.

    Raises:
        ImageError: The file is damaged, of an unsupported kind or too large.
    """
    if source_format not in _PILLOW_FORMATS:
        raise ImageError("unsupported_format", f"{source_format} images are not supported")
    changes = [] if source_format in (JPEG, PNG) else [f"format:{source_format}"]
    with _open(data, source_format) as image:
        check_num_pixels(image.height, image.width)
        if getattr(image, "is_animated", False):
            changes.append("first_frame")
        # Pillow turns a TIFF while it loads, and finds EXIF data behind a PNG's pixels only then.
        is_turned = _is_turned(image)
        image.load()
        is_rgb = image.mode in ("RGB", "RGBA", "P", "PA")
        profile = image.info.get("icc_profile") if is_rgb else None
        if is_turned or _is_turned(image):
            changes.append("orientation")
            ImageOps.exif_transpose(image, in_place=True)
        return Decoded(np.asarray(convert_to_rgb(image, changes)), changes, profile)


def _is_turned(image: Any) -> bool:
    """Tells whether an image has EXIF data that turns it; other metadata does not count."""
    if image.format != "TIFF" and "exif" not in image.info:
        return False
    return image.getexif().get(_ORIENTATION_TAG, 1) in range(2, 9)


@contextmanager
def _open(data: bytes, source_format: str) -> Iterator[Any]:
    """Opens an image; whatever a damaged one makes Pillow raise becomes its refusal."""
    try:
        with Image.open(io.BytesIO(data), formats=[_PILLOW_FORMATS[source_format]]) as image:
            yield image
    except ImageError:
        raise
    except KeyError as error:
        text = f"Pillow was built without {source_format}"
        raise ImageError("unsupported_format", text) from error
    except Image.DecompressionBombError as error:
        raise ImageError("too_large", str(error)) from None
    except Exception as error:  # noqa: BLE001  there is no telling what it raises
        text = f"{type(error).__name__}: {error}"
        reason = "truncated" if "truncated" in text.lower() else "undecodable"
        raise ImageError(reason, text) from None
