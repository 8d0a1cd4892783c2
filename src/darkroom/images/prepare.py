"""From the bytes of a file to the bytes that the trainer decodes.

The user's own bytes stay as they are if they are an upright RGB or grayscale JPEG or PNG of 8 bits.
All other images are encoded again, once: upright, in sRGB, transparent images on white, the first
of several frames; JPEG sources as JPEG (quality 95, 4:4:4; less if they are reduced), all others as
PNG. An embedded profile is applied when an RGB image is encoded again; gray keeps its values. With
the encoding `raw` every image is decoded, and its pixels themselves are stored. On request, bytes
that stay lose their metadata, and nothing else.

With checks `full`, a file is rejected if TensorFlow's decoder would reject it (truncated anywhere,
a wrong checksum in a PNG), or if a JPEG decoder had to invent pixels. Some JPEGs break the rules
and decode anyway. Superfluous bytes at or after the end do not matter. A JPEG with odd segments
before its pixels is encoded again (`repaired`), because other decoders may not accept it.

Plain images need no decoder but libjpeg-turbo (`prepare_plain`). Everything else needs decoders
with a longer list of faults, so conversion prepares it in another process (`decoders`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from darkroom.errors import RejectError
from darkroom.images import pillow
from darkroom.images.headers import (
    JPEG,
    PNG,
    PNG_GRAY,
    PNG_GRAY_ALPHA,
    PNG_PALETTE,
    describe_bytes,
    find_foreign_format,
    find_png_damage,
    has_sound_png_header,
    is_plain_png,
    parse_png_size,
    sniff_format,
)
from darkroom.images.jpeg import decode_sound_jpeg, parse_plain_header
from darkroom.images.jpeg_header import parse_jpeg_traits
from darkroom.images.memory import (
    Reserve,
    check_need,
    check_num_pixels,
    count_plain_jpeg_bytes,
    reserve_nothing,
)
from darkroom.images.metadata import find_png_private, find_private, strip_jpeg, strip_png
from darkroom.images.perceptual_hash import hash_look
from darkroom.images.pillow import Decoded
from darkroom.images.pixels import (
    JPEG_QUALITY,
    RAW,
    convert_profile,
    count_channels,
    encode,
    hash_pixels,
    is_low,
    measure_luminance,
    shrink,
    undo_orientation,
)
from darkroom.options.image import (
    ALWAYS_COPIES,
    CHECK_FULL,
    CHECK_HEADER,
    ImageOptions,
)
from darkroom.targets.geometry import IDENTITY, Matrix

MAX_IMAGE_BYTES = 64 << 20
# A picture has about ten; some hundreds keep a decoder busy for minutes.
_MAX_PLAIN_SCANS = 100


class PreparedImage(NamedTuple):
    """An image ready to be written.

    Attributes:
        encoded: The bytes that the trainer decodes.
        format: `jpeg`, `png` or `RAW`.
        height: Its height in pixels.
        width: Its width in pixels.
        channels: 1 (grayscale) or 3 (RGB).
        changes: Codes of the changes; empty when the bytes are the file's own.
        source_format: Format of the file.
        source_height: Height in the file, upright, before any resizing.
        source_width: Width in the file, upright, before any resizing.
        pixel_hash: xxh3-128 of shape and pixels, upright and before any resizing; None when the
            image was not decoded.
        decoded_hash: The same for a JPEG as Pillow and OpenCV decode it, with the accurate DCT.
            None when it is equal, for other images, and when it was not asked for.
        perceptual_hash: Hash of how the image looks, upright and before any resizing; None when not
            decoded, and of plain and tiny images.
        private: What its stored bytes say of place and camera, as `metadata.find_private` returns;
            None for an image of an older dataset.
        luminance: Mean luminance 0 to 255 of a fixed subsample; None when not decoded.
        matrix: Where a point of the file's pixels is in the image that is stored.
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
    decoded_hash: str | None
    perceptual_hash: str | None
    private: str | None
    luminance: float | None
    matrix: Matrix = IDENTITY


def prepare_image(
    data: bytes, options: ImageOptions, reserve: Reserve = reserve_nothing
) -> PreparedImage:
    """Returns the record's values for the bytes of an image file.

    Args:
        data: The file.
        options: How it is checked and stored.
        reserve: Returns a context that is entered before memory is taken.

    Raises:
        RejectError: The bytes are not an image, damaged, of an unsupported kind or too large.
    """
    source_format = _sniff(data)
    if source_format == JPEG:
        return _prepare_jpeg(data, options, reserve)
    if source_format == PNG:
        return _prepare_png(data, options, reserve)
    decoded = pillow.decode(data, source_format, reserve)
    return _finish(None, PNG, decoded, source_format, options)


def prepare_plain(
    data: bytes, options: ImageOptions, reserve: Reserve = reserve_nothing
) -> PreparedImage | None:
    """Prepares an image as `prepare_image` does, if libjpeg-turbo is the only decoder it needs.

    This is an intact JPEG, gray or in color, of few scans, without a profile to apply; with checks
    `header`, also a PNG that stays as it is.

    Returns:
        The prepared image; None when the image needs another decoder.

    Raises:
        RejectError: As by `prepare_image`.
    """
    source_format = _sniff(data)
    if source_format == JPEG:
        header = parse_plain_header(data)
        return header and _prepare_sound_jpeg(data, header, options, reserve, plain=True)
    return _keep_plain_png(data, options) if source_format == PNG else None


def _sniff(data: bytes) -> str:
    """Returns the format of a file by its first bytes; rejects all that is not read."""
    if not data:
        raise RejectError("empty", "the file has no bytes")
    source_format = sniff_format(data)
    if source_format is None:
        if name := find_foreign_format(data):
            detail = f"the image has the format {name}, which is not read: convert it to PNG"
            raise RejectError("unsupported_format", detail)
        raise RejectError("not_an_image", describe_bytes(data))
    return source_format


def _prepare_jpeg(data: bytes, options: ImageOptions, reserve: Reserve) -> PreparedImage:
    """Prepares a JPEG with libjpeg-turbo, or with Pillow where that cannot.

    Pillow has CMYK, and JPEGs in gray or color that break the rules, which become `repaired`.
    """
    # Pillow accepts odd headers, as TensorFlow does.
    header = parse_plain_header(data) or pillow.parse_header(data, JPEG)[:3]
    if header[2] in (1, 3):
        prepared = _prepare_sound_jpeg(data, header, options, reserve, plain=False)
        if prepared is not None:
            return prepared
    decoded = pillow.decode(data, JPEG, reserve)
    if header[2] in (1, 3):
        decoded.changes.insert(0, "repaired")
    return _finish(None, JPEG, decoded, JPEG, options)


def _prepare_sound_jpeg(
    data: bytes,
    header: tuple[int, int, int],
    options: ImageOptions,
    reserve: Reserve,
    plain: bool,
) -> PreparedImage | None:
    """Prepares a JPEG with libjpeg-turbo; None when it cannot, or when `plain` forbids it."""
    height, width, channels = header
    check_num_pixels(height, width)
    traits = parse_jpeg_traits(data)
    orientation = traits.orientation
    if orientation is None:
        if plain:
            return None
        orientation = pillow.find_orientation(data, JPEG)
    stays = orientation == 1 and not _must_change(height, width, options)
    stored, private = data, ""
    if stays:
        private = find_private(traits.exif, traits.xmp)
        if options.strip_metadata:
            stripped = strip_jpeg(data)
            if stripped is None:
                return None
            stored, private = stripped, ""
    if stays and options.image_check == CHECK_HEADER:
        return _keep(stored, JPEG, height, width, channels, private, stored is not data)
    if plain and (traits.num_scans > _MAX_PLAIN_SCANS or (traits.has_profile and not stays)):
        return None
    num_bytes = count_plain_jpeg_bytes(height * width, channels, traits.num_scans, stays)
    with reserve(check_need(height * width, num_bytes, len(data))):
        # First, so that only one of both forms is in memory.
        decoded_hash = _hash_accurate(data, channels, orientation, options)
        pixels = decode_sound_jpeg(data, channels)
        if pixels is None:
            return None
        if stays:
            decoded = Decoded(pixels, [] if stored is data else ["metadata"])
            return _finish(stored, JPEG, decoded, JPEG, options, decoded_hash, private)
        changes = ["orientation"] if orientation != 1 else []
        has_profile = traits.has_profile and channels == 3
        profile = pillow.parse_header(data, JPEG).profile if has_profile else None
        upright, matrix = undo_orientation(pixels, orientation)
        decoded = Decoded(upright, changes, profile, matrix)
        return _finish(None, JPEG, decoded, JPEG, options, decoded_hash)


def _hash_accurate(
    data: bytes, channels: int, orientation: int, options: ImageOptions
) -> str | None:
    """Returns the hash of a JPEG's upright pixels as Pillow and OpenCV decode it, if asked for."""
    if options.find_decoded_copies != ALWAYS_COPIES or options.image_check != CHECK_FULL:
        return None
    pixels = decode_sound_jpeg(data, channels, fast=False)
    return None if pixels is None else hash_pixels(undo_orientation(pixels, orientation)[0])


def _prepare_png(data: bytes, options: ImageOptions, reserve: Reserve) -> PreparedImage:
    """Prepares a PNG, whose bytes stay if Pillow has to change nothing.

    Damage is looked for first, because Pillow accepts some that TensorFlow does not.
    """
    check_num_pixels(*parse_png_size(data))
    if options.image_check == CHECK_FULL:
        if damage := find_png_damage(data):
            raise RejectError("truncated" if "early" in damage else "undecodable", damage)
    elif kept := _keep_plain_png(data, options):
        return kept
    elif not has_sound_png_header(data):
        raise RejectError("undecodable", "it does not begin with an intact header")
    decoded = pillow.decode(data, PNG, reserve)
    # Pillow gives some pixels in 8 bits without a word: only the file's header has its depth. The
    # colors of a palette have 8 bits at any depth.
    depth, color = data[24], data[25]
    if depth != 8 and color != PNG_PALETTE and "bit_depth" not in decoded.changes:
        decoded.changes.append("bit_depth")
    if depth > 8 and is_low(decoded.pixels):
        decoded.changes.append("low_bits")
    if color == PNG_GRAY_ALPHA and decoded.pixels.ndim == 3:  # as Pillow gives 16 bits
        decoded = decoded._replace(pixels=np.ascontiguousarray(decoded.pixels[..., 0]))
    if decoded.changes:
        return _finish(None, PNG, decoded, PNG, options)
    stored = strip_png(data) if options.strip_metadata else data
    decoded.changes.extend([] if stored is data else ["metadata"])
    return _finish(stored, PNG, decoded, PNG, options, private=find_png_private(stored))


def _keep_plain_png(data: bytes, options: ImageOptions) -> PreparedImage | None:
    """Returns a PNG that is written as it is, without decoding; None when it must be decoded."""
    height, width = parse_png_size(data)
    check_num_pixels(height, width)
    is_kept = options.image_check == CHECK_HEADER and not _must_change(height, width, options)
    if not is_kept or not is_plain_png(data):
        return None
    stored = strip_png(data) if options.strip_metadata else data
    channels = 1 if data[25] == PNG_GRAY else 3
    private = find_png_private(stored)
    return _keep(stored, PNG, height, width, channels, private, stored is not data)


def _keep(
    data: bytes,
    format: str,
    height: int,
    width: int,
    channels: int,
    private: str,
    is_stripped: bool,
) -> PreparedImage:
    """Returns an image that is written as it is, without decoding."""
    changes = ("metadata",) if is_stripped else ()
    facts = None, None, None, private, None
    return PreparedImage(
        data, format, height, width, channels, changes, format, height, width, *facts
    )


def _finish(
    data: bytes | None,
    target: str,
    decoded: Decoded,
    source_format: str,
    options: ImageOptions,
    decoded_hash: str | None = None,
    private: str = "",
) -> PreparedImage:
    """Measures pixels, shrinks them if asked, and encodes them unless the bytes stay."""
    pixels, changes, quality = decoded.pixels, decoded.changes, JPEG_QUALITY
    matrix = decoded.matrix
    source_height, source_width = pixels.shape[:2]
    pixel_hash, luminance = hash_pixels(pixels), measure_luminance(pixels)
    perceptual_hash = hash_look(pixels)
    if _must_shrink(source_height, source_width, options):
        pixels, reduction = shrink(pixels, options.resize_short_side or 1)
        matrix, data = matrix.then(reduction), None
        changes, quality = [*changes, "resize"], options.jpeg_quality
    if options.is_raw:
        changes, data, target = [*changes, "raw"], None, RAW
    if data is None:
        private = ""
        changes = [change for change in changes if change != "metadata"]
        converted = convert_profile(pixels, decoded.profile)
        changes = changes if converted is pixels else [*changes, "profile"]
        pixels, data = converted, encode(converted, target, quality)
    height, width = pixels.shape[:2]
    return PreparedImage(
        encoded=data,
        format=target,
        height=height,
        width=width,
        channels=count_channels(pixels),
        changes=tuple(changes),
        source_format=source_format,
        source_height=source_height,
        source_width=source_width,
        pixel_hash=pixel_hash,
        decoded_hash=None if decoded_hash == pixel_hash else decoded_hash,
        perceptual_hash=perceptual_hash,
        private=private,
        luminance=luminance,
        matrix=matrix,
    )


def _must_change(height: int, width: int, options: ImageOptions) -> bool:
    """Tells whether an image must change because of the options or its size."""
    return options.is_raw or _must_shrink(height, width, options)


def _must_shrink(height: int, width: int, options: ImageOptions) -> bool:
    return options.resize_short_side is not None and min(height, width) > options.resize_short_side
