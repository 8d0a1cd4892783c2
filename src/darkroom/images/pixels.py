"""Pixels in memory: upright, 8 bits, gray or sRGB; their hash, luminance and encoding."""

from __future__ import annotations

import functools
import io
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import simplejpeg
import xxhash
from PIL import Image, ImageCms

from darkroom.dataset import example
from darkroom.errors import RejectError
from darkroom.images.headers import JPEG, PNG
from darkroom.targets.geometry import FLIPPED, MIRRORED, TRANSPOSED, Matrix, scale, turn

# `image/format` of plain pixels; no file has this format.
RAW = "RAW"
# High, so that an image that is encoded again loses little.
JPEG_QUALITY = 95
# From this quality on, a JPEG has full color resolution; below, brightness needs the bytes more.
_FULL_COLOR_QUALITY = 95
_LUMINANCE_SIDE = 64
_REC601 = np.array([0.299, 0.587, 0.114])
_STRIP_PIXELS = 1 << 20
_SAMPLE_SIDE = 16
# What 14 of 16 bits, as those of a thermal camera, are at most when eight are left.
_MAX_LOW_LEVEL = 63
_COLOR_MODES = ("CMYK", "YCbCr", "LAB")
_ALPHA_MODES = ("PA", "LA", "RGBA", "RGBa", "La")

Pixels = npt.NDArray[np.uint8]


def undo_orientation(pixels: Pixels, orientation: int) -> tuple[Pixels, Matrix]:
    """Undoes an EXIF orientation, 1 to 8; returns upright pixels, and where points go."""
    if orientation in TRANSPOSED:
        pixels = pixels.swapaxes(0, 1)
    if orientation in MIRRORED:
        pixels = pixels[:, ::-1]
    if orientation in FLIPPED:
        pixels = pixels[::-1]
    return np.ascontiguousarray(pixels), find_turn(orientation, *pixels.shape[:2])


def find_turn(orientation: int, height: int, width: int) -> Matrix:
    """Returns where points go when an EXIF orientation is undone; the sides are those after it."""
    turns = (orientation in each for each in (TRANSPOSED, MIRRORED, FLIPPED))
    return turn(height, width, *turns)


def convert_to_rgb(image: Any, changes: list[str], deep_bits: int = 16) -> Pixels:
    """Returns the pixels of a Pillow image in gray or RGB, and adds the codes of the changes.

    Transparent images are put on white. Of more than 8 bits, the upper eight remain. Colors other
    than RGB are converted by the image's profile; RGB images with a profile are left for
    `convert_profile`.

    Args:
        image: The image.
        changes: Codes of the changes before.
        deep_bits: Bits of a value of gray that Pillow gives as 16 bits.

    Raises:
        RejectError: The pixels are of a kind that is not supported.
    """
    changes += [code for code in _name_conversion(image) if code not in changes]
    return _map_strips(image, functools.partial(_convert, deep_bits))


def _name_conversion(image: Any) -> Iterator[str]:
    """Yields the codes of the changes that make an image gray or RGB of 8 bits."""
    mode, is_transparent = image.mode, "transparency" in image.info
    if mode.startswith("I;16") or mode == "1":
        yield "bit_depth"
    if mode in _ALPHA_MODES or is_transparent:
        yield "alpha"
    elif mode == "P":
        yield "palette"
    elif mode in _COLOR_MODES:
        yield mode.lower()
    elif mode not in ("1", "L", "RGB", "RGBX") and not mode.startswith("I;16"):
        what = f"pixels of mode {mode} "
        what += (
            "(32 bits) have no known range: store them with 8 or 16 bits"
            if mode in ("I", "F")
            else "are not supported"
        )
        raise RejectError("unsupported_format", what)


def is_low(pixels: Pixels) -> bool:
    """Tells whether 8 bits that are left of more are dark, because the upper ones are not used."""
    return int(pixels.max()) <= _MAX_LOW_LEVEL


def _convert(deep_bits: int, image: Any) -> Any:
    """Returns an image in mode `L` or `RGB`; gray stays gray."""
    if image.mode.startswith("I"):
        values = np.asarray(image)
        gray = (values >> (deep_bits - 8)).astype(np.uint8)
        if "transparency" in image.info:
            gray[values == image.info["transparency"]] = 255
        return Image.fromarray(gray)
    if image.mode in _ALPHA_MODES or "transparency" in image.info:
        rgba = image.convert("RGBA")
        white = Image.new("RGBA", rgba.size, (255, 255, 255, 255))
        is_gray = image.mode in ("1", "L", "LA", "La")
        return Image.alpha_composite(white, rgba).convert("L" if is_gray else "RGB")
    if image.mode in _COLOR_MODES:
        return _apply_profile(image, image.info.get("icc_profile")) or image.convert("RGB")
    if image.mode in ("L", "RGB"):
        return image
    return image.convert("L" if image.mode == "1" else "RGB")


def _map_strips(image: Any, convert: Callable[[Any], Any]) -> Pixels:
    """Converts an image in strips, so that a large one is never in memory three times."""
    width, height = image.size
    rows = max(1, _STRIP_PIXELS // max(width, 1))
    if rows >= height:
        return np.asarray(convert(image))
    pixels: Pixels | None = None
    for top in range(0, height, rows):
        strip = np.asarray(convert(image.crop((0, top, width, min(top + rows, height)))))
        if pixels is None:
            pixels = np.empty((height, *strip.shape[1:]), np.uint8)
        pixels[top : top + rows] = strip
    return pixels  # type: ignore[return-value]


def convert_profile(pixels: Pixels, profile: bytes | None) -> Pixels:
    """Returns RGB pixels in sRGB; unchanged when they have no profile, or that of sRGB."""
    if not profile or pixels.shape[2:] != (3,):
        return pixels
    height, width = pixels.shape[:2]
    rows = max(1, _STRIP_PIXELS // max(width, 1))
    converted = np.empty_like(pixels)
    for top in range(0, height, rows):
        strip = _apply_profile(Image.fromarray(pixels[top : top + rows]), profile)
        if strip is None:
            return pixels
        converted[top : top + rows] = np.asarray(strip)
    return converted


def _apply_profile(image: Any, profile: bytes | None) -> Any:
    """Returns an image in sRGB; None when it has no usable profile, or is in sRGB already."""
    if not profile:
        return None
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        if "sRGB" in ImageCms.getProfileDescription(source):
            return None
        target = ImageCms.createProfile("sRGB")
        return ImageCms.profileToProfile(image, source, target, outputMode="RGB")
    except (ImageCms.PyCMSError, OSError, ValueError):
        return None  # The profile is damaged: the plain values are the best available.


def shrink(pixels: Pixels, short_side: int) -> tuple[Pixels, Matrix]:
    """Reduces the short side to `short_side` by the area filter; returns where points go, too."""
    height, width = pixels.shape[:2]
    factor = short_side / min(height, width)
    size = (max(1, round(width * factor)), max(1, round(height * factor)))
    reduced = np.asarray(_as_image(pixels).resize(size, Image.Resampling.BOX))
    return reduced, scale(size[0] / width, size[1] / height)


def encode(pixels: Pixels, target: str, quality: int = JPEG_QUALITY) -> bytes:
    """Returns pixels as a JPEG, a PNG or raw bytes, without metadata.

    A JPEG's colors have full resolution (4:4:4) from quality 95 on, otherwise half of it (4:2:0).
    """
    if target == RAW:
        return pixels.tobytes()
    if target == JPEG:
        gray = count_channels(pixels) == 1
        stacked = np.ascontiguousarray(pixels[..., None] if pixels.ndim == 2 else pixels)
        colors = "444" if quality >= _FULL_COLOR_QUALITY else "420"
        colorspace, subsampling = ("GRAY", "Gray") if gray else ("RGB", colors)
        encoded: bytes = simplejpeg.encode_jpeg(stacked, quality, colorspace, subsampling)
        return encoded
    buffer = io.BytesIO()
    _as_image(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def encode_stored(features: Mapping[str, Sequence[Any]]) -> bytes:
    """Returns the image of a record as a file; plain pixels become a PNG.

    Args:
        features: The record's features by name.
    """
    data: bytes = features[example.IMAGE_ENCODED][0]
    if features.get(example.IMAGE_FORMAT) != [RAW.encode()]:
        return data
    names = (example.IMAGE_HEIGHT, example.IMAGE_WIDTH, example.IMAGE_CHANNELS)
    return encode(np.frombuffer(data, np.uint8).reshape([features[n][0] for n in names]), PNG)


def _as_image(pixels: Pixels) -> Image.Image:
    return Image.fromarray(pixels[..., 0] if pixels.shape[2:] == (1,) else pixels)


def count_channels(pixels: Pixels) -> int:
    """Returns the number of channels of [height, width] or [height, width, channels]."""
    return 1 if pixels.ndim == 2 else pixels.shape[2]


def hash_pixels(pixels: Pixels) -> str:
    """Returns xxh3-128 of shape and pixels: uint8 [height, width] or [height, width, channels].

    Pixels whose three channels are equal count as gray, because a model sees the same image.
    """
    is_gray = _has_equal_channels(pixels)
    num_channels = 1 if is_gray else count_channels(pixels)
    digest = xxhash.xxh3_128(struct.pack("<3I", *pixels.shape[:2], num_channels))
    for strip in _cut_strips(pixels):
        digest.update(np.ascontiguousarray(strip[..., 0] if is_gray else strip).data)
    return digest.hexdigest()


def _has_equal_channels(pixels: Pixels) -> bool:
    """Tells whether all channels of RGB pixels are equal; a few pixels tell most images apart."""
    if pixels.shape[2:] != (3,):
        return False
    sample = pixels[:: 1 + pixels.shape[0] // _SAMPLE_SIDE, :: 1 + pixels.shape[1] // _SAMPLE_SIDE]
    red, green = sample[..., 0], sample[..., 1]
    if (red != green).any():
        return False
    return all(
        np.array_equal(part[..., 0], part[..., 1]) and np.array_equal(part[..., 0], part[..., 2])
        for part in _cut_strips(pixels)
    )


def _cut_strips(pixels: Pixels) -> Iterator[Pixels]:
    """Yields views of some rows each, so that their results need little memory."""
    rows = max(1, _STRIP_PIXELS // max(pixels.shape[1], 1))
    for top in range(0, pixels.shape[0], rows):
        yield pixels[top : top + rows]


def measure_luminance(pixels: Pixels) -> float:
    """Returns the mean luminance (Rec. 601), 0 to 255, over every n-th row and column."""
    height, width = pixels.shape[:2]
    rows, columns = max(1, height // _LUMINANCE_SIDE), max(1, width // _LUMINANCE_SIDE)
    # Whole rows first, which are added at once; less than 128 of them stay below 2**16.
    across = pixels[::rows].reshape(-(-height // rows), -1).sum(axis=0, dtype=np.uint16)
    sample = across.reshape(width, -1)[::columns]
    means = sample.sum(axis=0, dtype=np.int64) / (-(-height // rows) * len(sample))
    return round(float(means[0] if len(means) == 1 else means @ _REC601), 4)
