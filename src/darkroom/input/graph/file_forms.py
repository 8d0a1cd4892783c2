"""Which files the graph decodes to the pixels that a conversion would store, and how.

These are JPEGs, PNGs, GIFs and BMPs of the usual kinds. All others are described: formats that
TensorFlow cannot read, CMYK, color profiles that a conversion would apply, EXIF data in an unusual
place, images that are too large.

One difference is left. A conversion ends reading EXIF data, as Pillow does, at a value that is
outside of them; the graph reads on.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from darkroom.images.memory import MAX_PIXELS
from darkroom.input.graph.bmp import decode_bmp, describe_bmp
from darkroom.input.graph.gif import decode_gif, describe_gif
from darkroom.input.graph.orientation import UNUSUAL, read_orientation
from darkroom.input.graph.parts import trace_once
from darkroom.input.graph.png import decode_png, describe_png
from darkroom.input.graph.profiles import find_jpeg_profile, is_display_p3, is_srgb

# A function of the bytes of a file.
_Way = Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]

_HEAD_BYTES = 12
# How files begin.
_JPEG, _PNG, _GIF, _BMP = b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF8", b"BM"
# How files begin that TensorFlow cannot read; the first that fits counts. In RE2, \C is any byte.
_FOREIGN = {
    "a WebP": r"RIFF\C{4}WEBP",
    "a TIFF": r"II[*+]\x00|MM\x00[*+]",
    "an AVIF": r"\C{4}ftypavi",
    "a HEIC or a relative of it": r"\C{4}ftyp",
}

_OTHER = "neither JPEG, PNG, GIF nor BMP"
_HINT = "Convert the images with darkroom convert, which reads this form, or leave them out."


def check_decodable(encoded: tf.Tensor, uri: tf.Tensor) -> tf.Tensor:
    """Checks that the graph decodes an image to the pixels that a conversion would store.

    Args:
        encoded: string [], the bytes of its file.
        uri: string [], its path.

    Returns:
        string [], `encoded`. If the check fails, running it raises an `InvalidArgumentError` that
        names the file.
    """
    form = describe_form(encoded)
    parts = ("The image ", uri, " is ", form, ", which input cannot read directly. ", _HINT)
    check = tf.debugging.Assert(tf.equal(form, ""), (tf.strings.join(parts),))
    with tf.control_dependencies((check,)):
        return tf.identity(encoded)


@trace_once  # for all pipelines, as those of each split and epoch
def describe_form(encoded: tf.Tensor) -> tf.Tensor:
    """Describes an image if the graph decodes it to different pixels than a conversion.

    Args:
        encoded: string [], any bytes.

    Returns:
        string [], for example "a CMYK JPEG"; empty if the pixels are the same.
    """
    form, num_pixels = _choose(
        encoded,
        _describe_jpeg,
        describe_png,
        describe_gif,
        describe_bmp,
        lambda _: (_describe_other(encoded), tf.constant(0, tf.int64)),
    )
    large = f"an image of more than {MAX_PIXELS:,} pixels"
    return tf.where((num_pixels > MAX_PIXELS) & tf.equal(form, ""), large, form)


@trace_once
def decode_stored(encoded: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Decodes an image, but not a JPEG. What is transparent becomes white.

    Args:
        encoded: string [], the bytes of its file.

    Returns:
        The pixels as they are stored, uint8 [H, W, 3]; the orientation, int32 [], 1 to 8.
    """

    def decode_upright(decode: Callable[[tf.Tensor], tf.Tensor]) -> _Way:
        return lambda encoded: (decode(encoded), tf.constant(1))

    # Its operation also raises the error of a file that is not an image.
    other = decode_upright(lambda encoded: tf.io.decode_image(encoded, 3, expand_animations=False))
    gif, bmp = decode_upright(decode_gif), decode_upright(decode_bmp)
    pixels, orientation = _choose(encoded, other, decode_png, gif, bmp, other)
    return tf.ensure_shape(pixels, (None, None, 3)), orientation


def _choose(encoded: tf.Tensor, jpeg: _Way, png: _Way, gif: _Way, bmp: _Way, other: _Way) -> Any:
    """Returns what the function for the format of an image returns for it."""
    start = tf.strings.substr(encoded, 0, _HEAD_BYTES)
    return tf.case(
        [
            (
                tf.equal(tf.strings.substr(start, 0, len(begin)), begin),
                functools.partial(way, encoded),
            )
            for begin, way in ((_JPEG, jpeg), (_PNG, png), (_GIF, gif), (_BMP, bmp))
        ],
        functools.partial(other, encoded),
    )


def _describe_other(encoded: tf.Tensor) -> tf.Tensor:
    start = tf.strings.substr(encoded, 0, _HEAD_BYTES)
    form = tf.where(tf.equal(encoded, ""), "an empty file", _OTHER)
    for name, beginning in reversed(_FOREIGN.items()):
        has_begun = tf.strings.regex_full_match(start, rf"(?s)(?:{beginning})\C*")
        form = tf.where(has_begun, name, form)
    return form


def _describe_jpeg(encoded: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Describes a JPEG as `describe_form` does; returns the number of its pixels, int64 [], too.

    Where several descriptions fit, the last one counts.
    """
    shape = tf.io.extract_jpeg_shape(encoded)
    channels, orientation = shape[2], read_orientation(encoded)
    is_turned = (orientation > 1) & tf.equal(channels, 3)

    def has_foreign_profile() -> tf.Tensor:
        profile = find_jpeg_profile(encoded)
        return tf.not_equal(profile, "") & ~is_srgb(profile) & ~is_display_p3(profile)

    # A conversion applies the profile of a turned JPEG, because it encodes that again.
    is_foreign = tf.cond(is_turned, has_foreign_profile, lambda: False)
    is_plain = tf.equal(channels, 1) | tf.equal(channels, 3)
    wide = "a turned JPEG with a color profile other than sRGB or Display P3"
    form = tf.where(is_foreign, wide, "")
    unusual = "a JPEG with unusual EXIF data, which may turn it"
    form = tf.where(tf.equal(orientation, UNUSUAL), unusual, form)
    form = tf.where(is_plain, form, "a CMYK JPEG")
    return form, tf.reduce_prod(tf.cast(shape[:2], tf.int64))
