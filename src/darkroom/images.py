"""From the bytes of a file to the bytes that the trainer decodes.

The user's own bytes stay untouched when they are an upright RGB or grayscale JPEG or PNG of 8 bits.
Anything else is encoded again, once: upright, in sRGB, on white where it was transparent, the first
frame where it had several; JPEG sources as JPEG (quality 95, 4:4:4), all others as PNG.
"""

from __future__ import annotations

import io
import struct
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import simplejpeg
import xxhash
from PIL import Image, ImageCms, ImageOps

from darkroom.errors import UsageError
from darkroom.image_bytes import (
    JPEG,
    PNG,
    describe_bytes,
    find_png_damage,
    iterate_png_chunks,
    parse_jpeg_orientation,
    sniff_format,
)

CHECKS_FULL, CHECKS_HEADER = "full", "header"
CHECKS = (CHECKS_FULL, CHECKS_HEADER)

JPEG_QUALITY = 95
# A decoded image of this many pixels takes 384 MiB; a bomb is told by its header, undecoded.
MAX_PIXELS = 1 << 27
MAX_IMAGE_BYTES = 64 << 20

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
_LUMINANCE_SIDE = 64
_REC601 = np.array([0.299, 0.587, 0.114])

Pixels = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class ImageOptions:
    """How images are checked and stored.

    Attributes:
        checks: `full` decodes every image completely before it is written; `header` reads its
            header only, so a damaged one may be written.
        resize_short_side: Short side in pixels to which larger images are reduced (area filter);
            None leaves sizes alone. Images are never enlarged.
    """

    checks: str = CHECKS_FULL
    resize_short_side: int | None = None

    def __post_init__(self) -> None:
        """Checks the options.

        Raises:
            UsageError: A value is out of its range.
        """
        if self.checks not in CHECKS:
            raise UsageError(f"checks must be one of {CHECKS}, got {self.checks!r}.")
        if self.resize_short_side is not None and self.resize_short_side < 1:
            raise UsageError(f"resize_short_side must be positive, got {self.resize_short_side}.")


@dataclass(frozen=True)
class PreparedImage:
    """An image ready to be written.

    Attributes:
        encoded: The bytes that the trainer decodes.
        format: `jpeg` or `png`.
        height: Its height in pixels.
        width: Its width in pixels.
        channels: 1 (grayscale) or 3 (RGB).
        changes: Codes of what was changed, and so why it was encoded again; empty when untouched.
        source_format: Format of the file.
        source_height: Height in the file, upright, before any resizing.
        source_width: Width in the file, likewise.
        pixel_hash: xxh3-128 of shape and pixels, upright and before any resizing; None when the
            image was not decoded.
        luminance: Mean luminance 0 to 255 of a fixed subsample; None when not decoded.
    """

    encoded: bytes
    format: str
    height: int
    width: int
    channels: int
    changes: tuple[str, ...]
    source_format: str
    source_height: int
    source_width: int
    pixel_hash: str | None
    luminance: float | None


class ImageError(Exception):
    """An image cannot be used: the reason code, and what is wrong, for a person."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def prepare_image(data: bytes, options: ImageOptions) -> PreparedImage:
    """Returns what is written for the bytes of an image file.

    Raises:
        ImageError: The bytes are no image, damaged, of an unsupported kind or too large.
    """
    if not data:
        raise ImageError("empty", "the file has no bytes")
    source_format = sniff_format(data)
    if source_format is None:
        raise ImageError("not_an_image", describe_bytes(data))
    if source_format == JPEG:
        return _prepare_jpeg(data, options)
    if source_format == PNG:
        if options.checks == CHECKS_FULL and (damage := find_png_damage(data)):
            raise ImageError("truncated" if "early" in damage else "undecodable", damage)
        if _is_plain_png(data):
            return _prepare_plain(data, PNG, options)
    return _prepare_other(data, source_format, options)


def _prepare_jpeg(data: bytes, options: ImageOptions) -> PreparedImage:
    try:
        height, width, colorspace, _ = simplejpeg.decode_jpeg_header(data)
    except ValueError as error:
        raise ImageError(_jpeg_reason(error), str(error)) from None
    _check_pixels(height, width)
    if colorspace not in ("YCbCr", "RGB", "Gray") or parse_jpeg_orientation(data) != 1:
        return _prepare_other(data, JPEG, options)
    channels = 1 if colorspace == "Gray" else 3
    if options.checks == CHECKS_HEADER and not _must_shrink(height, width, options):
        return PreparedImage(
            data, JPEG, height, width, channels, (), JPEG, height, width, None, None
        )
    return _finish(data, JPEG, _decode_jpeg(data, channels), JPEG, [], options)


def _decode_jpeg(data: bytes, channels: int) -> Pixels:
    """Decodes a JPEG completely, as TensorFlow does by default: fast DCT, smooth upsampling."""
    colorspace = "GRAY" if channels == 1 else "RGB"
    try:
        pixels: Pixels = simplejpeg.decode_jpeg(data, colorspace=colorspace, fastdct=True)
    except ValueError as error:
        raise ImageError(_jpeg_reason(error), str(error)) from None
    return pixels


def _jpeg_reason(error: ValueError) -> str:
    text = str(error).lower()
    return "truncated" if "premature" in text or "truncated" in text else "undecodable"


def _is_plain_png(data: bytes) -> bool:
    """Tells whether a PNG has 8 bits, RGB or gray, no transparency, one frame, no rotation."""
    depth, colour = data[24:25], data[25:26]
    if depth != b"\x08" or colour not in (b"\0", b"\x02"):
        return False
    for name, _, _ in iterate_png_chunks(data):
        if name in (b"tRNS", b"acTL", b"eXIf"):
            return False
        if name == b"IDAT":
            break
    return True


def _prepare_plain(data: bytes, source_format: str, options: ImageOptions) -> PreparedImage:
    """Checks a PNG whose bytes can stay."""
    with _open(data, source_format) as image:
        width, height = image.size
        _check_pixels(height, width)
        if options.checks == CHECKS_HEADER and not _must_shrink(height, width, options):
            channels = 1 if image.mode == "L" else 3
            return PreparedImage(
                data, PNG, height, width, channels, (), PNG, height, width, None, None
            )
        pixels = np.asarray(_load(image))
    return _finish(data, source_format, pixels, source_format, [], options)


def _prepare_other(data: bytes, source_format: str, options: ImageOptions) -> PreparedImage:
    """Decodes an image whose bytes can hardly stay, and encodes it again."""
    if source_format not in _PILLOW_FORMATS:
        raise ImageError("unsupported_format", f"{source_format} images are not supported")
    with _open(data, source_format) as image:
        _check_pixels(image.height, image.width)
        changes = [] if source_format in (JPEG, PNG) else [f"format:{source_format}"]
        if getattr(image, "n_frames", 1) > 1:
            changes.append("first_frame")
        upright = _turn_upright(_load(image), changes)
        pixels = np.asarray(_to_srgb(upright, changes))
    kept = None
    if not changes and source_format == PNG and data[24:25] == b"\x08":
        kept = data  # it only carries EXIF data that turns nothing
    elif not changes:
        changes = ["bit_depth"]
    target = JPEG if source_format == JPEG else PNG
    return _finish(kept, target, pixels, source_format, changes, options)


def _open(data: bytes, source_format: str) -> Any:
    try:
        with warnings.catch_warnings():
            # Our own limit on pixels is checked right after, on the same header.
            warnings.simplefilter("ignore")
            return Image.open(io.BytesIO(data), formats=[_PILLOW_FORMATS[source_format]])
    except Exception as error:  # noqa: BLE001  Pillow raises whatever a damaged file makes it raise
        raise ImageError("undecodable", f"{type(error).__name__}: {error}") from None


def _load(image: Any) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image.load()
    except Exception as error:  # noqa: BLE001  likewise
        text = f"{type(error).__name__}: {error}"
        reason = "truncated" if "truncated" in text.lower() else "undecodable"
        raise ImageError(reason, text) from None
    return image


def _turn_upright(image: Any, changes: list[str]) -> Any:
    if image.getexif().get(0x0112, 1) in range(2, 9):
        changes.append("orientation")
        return ImageOps.exif_transpose(image)
    return image


def _to_srgb(image: Any, changes: list[str]) -> Any:
    """Returns an image as 8-bit gray or sRGB."""
    has_alpha = image.mode in ("PA", "LA", "RGBA", "RGBa", "La") or "transparency" in image.info
    if has_alpha:
        changes.append("alpha")
        return _flatten(image)
    if image.mode in ("L", "RGB"):
        return image
    if image.mode.startswith("I;16"):
        changes.append("bit_depth")
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.mode == "1":
        changes.append("bit_depth")
        return image.convert("L")
    if image.mode in ("CMYK", "YCbCr", "LAB"):
        changes.append(image.mode.lower())
        return _apply_profile(image)
    if image.mode == "P":
        changes.append("palette")
        return image.convert("RGB")
    raise ImageError("unsupported_format", f"pixels of mode {image.mode} are not supported")


def _apply_profile(image: Any) -> Any:
    profile = image.info.get("icc_profile")
    if profile:
        try:
            source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            target = ImageCms.createProfile("sRGB")
            return ImageCms.profileToProfile(image, source, target, outputMode="RGB")
        except (ImageCms.PyCMSError, OSError):
            pass  # a damaged profile: the plain conversion below is the best that is left
    return image.convert("RGB")


def _flatten(image: Any) -> Any:
    """Returns a transparent image on white; gray stays gray."""
    gray = image.mode in ("L", "LA", "La")
    rgba = image.convert("RGBA")
    canvas = Image.new("RGBA", rgba.size, (255, 255, 255, 255))
    return Image.alpha_composite(canvas, rgba).convert("L" if gray else "RGB")


def _finish(
    data: bytes | None,
    target: str,
    pixels: Pixels,
    source_format: str,
    changes: list[str],
    options: ImageOptions,
) -> PreparedImage:
    """Measures pixels, shrinks them if asked, and encodes them unless the bytes can stay."""
    source_height, source_width = pixels.shape[:2]
    pixel_hash, luminance = hash_pixels(pixels), measure_luminance(pixels)
    if _must_shrink(source_height, source_width, options):
        pixels, data = _shrink(pixels, options), None
        changes = [*changes, "resize"]
    height, width = pixels.shape[:2]
    return PreparedImage(
        encoded=_encode(pixels, target) if data is None else data,
        format=target,
        height=height,
        width=width,
        channels=1 if pixels.ndim == 2 or pixels.shape[2] == 1 else 3,
        changes=tuple(changes),
        source_format=source_format,
        source_height=source_height,
        source_width=source_width,
        pixel_hash=pixel_hash,
        luminance=luminance,
    )


def _must_shrink(height: int, width: int, options: ImageOptions) -> bool:
    return options.resize_short_side is not None and min(height, width) > options.resize_short_side


def _shrink(pixels: Pixels, options: ImageOptions) -> Pixels:
    height, width = pixels.shape[:2]
    scale = (options.resize_short_side or 0) / min(height, width)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    image = Image.fromarray(pixels[..., 0] if pixels.shape[2:] == (1,) else pixels)
    return np.asarray(image.resize(size, Image.Resampling.BOX))


def _encode(pixels: Pixels, target: str) -> bytes:
    if target == JPEG:
        gray = pixels.ndim == 2 or pixels.shape[2] == 1
        stacked = np.ascontiguousarray(pixels[..., None] if pixels.ndim == 2 else pixels)
        colorspace = "GRAY" if gray else "RGB"
        subsampling = "Gray" if gray else "444"
        encoded: bytes = simplejpeg.encode_jpeg(stacked, JPEG_QUALITY, colorspace, subsampling)
        return encoded
    buffer = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[2:] == (1,) else pixels).save(buffer, "PNG")
    return buffer.getvalue()


def hash_pixels(pixels: Pixels) -> str:
    """Returns xxh3-128 of shape and pixels: uint8 [height, width] or [height, width, channels]."""
    channels = 1 if pixels.ndim == 2 else pixels.shape[2]
    digest = xxhash.xxh3_128(struct.pack("<3I", *pixels.shape[:2], channels))
    digest.update(np.ascontiguousarray(pixels).data)
    return digest.hexdigest()


def measure_luminance(pixels: Pixels) -> float:
    """Returns the mean luminance (Rec. 601), 0 to 255, of every n-th row and column."""
    height, width = pixels.shape[:2]
    rows, columns = max(1, height // _LUMINANCE_SIDE), max(1, width // _LUMINANCE_SIDE)
    sample = pixels[::rows, ::columns].reshape(-1, 1 if pixels.ndim == 2 else pixels.shape[2])
    means = sample.mean(axis=0, dtype=np.float64)
    return round(float(means[0] if len(means) == 1 else means @ _REC601), 4)


def _check_pixels(height: int, width: int) -> None:
    if height * width > MAX_PIXELS:
        raise ImageError(
            "too_large", f"{width} x {height} pixels are more than {MAX_PIXELS:,} together"
        )
