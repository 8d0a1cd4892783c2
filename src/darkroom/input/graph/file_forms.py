"""Which files TensorFlow decodes to the pixels that a conversion would store, told in the graph.

JPEG, gray or in colour, whatever its EXIF orientation; PNG without transparency (of 16 bits both
take the upper eight, of an animation the picture that is not part of it or the first one); BMP of
24 bits. All others are named: formats that TensorFlow does not read, transparency, which conversion
lays on white and TensorFlow drops, colour profiles where a conversion would apply them, and PNGs
that EXIF data turns.
"""

from __future__ import annotations

import tensorflow as tf

from darkroom.input.graph.orientation import (
    parse_orientation,
    parse_tiff_orientation,
    to_numbers,
)

_HEAD_BYTES = 34
_PNG_PALETTE = 3
_BMP_HEADER_BYTES = 40
# Profiles stand at the beginning, at most behind a thumbnail.
_PROFILE_BYTES = 1 << 17
# RE2's \C is any byte. The name in a profile is ASCII, or UTF-16 from version 4 on.
_FOREIGN_PROFILE = r"(?s)\C*ICC_PROFILE\x00\C*"
_SRGB = r"(?s)\C*s\x00?R\x00?G\x00?B\C*"

_HINT = "Convert the images with darkroom convert, which reads it, or leave them out."


def check_form(encoded: tf.Tensor, uri: tf.Tensor) -> tf.Tensor:
    """Returns the bytes of an image if TensorFlow gives the pixels that a conversion would store.

    Args:
        encoded: string [], the bytes of its file.
        uri: string [], where it lies.

    Returns:
        string [], `encoded`. Else running it raises `InvalidArgumentError`, which names the file.
    """
    form = describe_form(encoded)
    parts = ("The image ", uri, " is ", form, ", which cannot be read from a manifest. ", _HINT)
    check = tf.debugging.Assert(tf.equal(form, ""), (tf.strings.join(parts),))
    with tf.control_dependencies((check,)):
        return tf.identity(encoded)


def describe_form(encoded: tf.Tensor) -> tf.Tensor:
    """Returns what keeps TensorFlow from giving the pixels that a conversion would store.

    Args:
        encoded: string [], any bytes.

    Returns:
        string [], like "a CMYK JPEG"; empty when nothing does.
    """
    head = to_numbers(tf.strings.substr(encoded, 0, _HEAD_BYTES), _HEAD_BYTES)

    def begins(magic: bytes, place: int = 0) -> tf.Tensor:
        return tf.reduce_all(tf.equal(head[place : place + len(magic)], (*magic,)))

    return tf.case(
        (
            (begins(b"\xff\xd8\xff"), lambda: _describe_jpeg(encoded)),
            (begins(b"\x89PNG\r\n\x1a\n"), lambda: _describe_png(encoded, head)),
            (begins(b"BM"), lambda: _describe_bmp(head)),
            (begins(b"GIF8"), lambda: tf.constant("a GIF")),
            (begins(b"RIFF") & begins(b"WEBP", 8), lambda: tf.constant("a WebP")),
            (begins(b"II") | begins(b"MM"), lambda: tf.constant("a TIFF")),
            (begins(b"ftypavi", 4), lambda: tf.constant("an AVIF")),
            (begins(b"ftyp", 4), lambda: tf.constant("a HEIC or a relative of it")),
        ),
        lambda: tf.where(tf.equal(encoded, ""), "empty", "neither JPEG, PNG nor BMP"),
    )


def _describe_jpeg(encoded: tf.Tensor) -> tf.Tensor:
    channels = tf.io.extract_jpeg_shape(encoded)[2]
    # Only one that is encoded again, because it is turned, has its profile applied.
    is_turned = tf.not_equal(parse_orientation(encoded), 1) & tf.equal(channels, 3)
    is_foreign = tf.cond(is_turned, lambda: _has_foreign_profile(encoded), lambda: False)
    is_plain = tf.equal(channels, 1) | tf.equal(channels, 3)
    turned = tf.where(is_foreign, "a turned JPEG with a colour profile other than sRGB", "")
    return tf.where(is_plain, turned, "a CMYK JPEG")


def _has_foreign_profile(encoded: tf.Tensor) -> tf.Tensor:
    start = tf.strings.substr(encoded, 0, _PROFILE_BYTES)
    has_profile = tf.strings.regex_full_match(start, _FOREIGN_PROFILE)
    return has_profile & ~tf.strings.regex_full_match(start, _SRGB)


def _describe_png(encoded: tf.Tensor, head: tf.Tensor) -> tf.Tensor:
    depth, colour = head[24], head[25]
    before_pixels = _split(encoded, "IDAT")[0]
    has_colours = tf.equal(colour, _PNG_PALETTE) | (tf.equal(colour, 2) & tf.equal(depth, 16))
    exif = _split(encoded, "eXIf")
    # The same four bytes among the pixels are not followed by EXIF data.
    orientation = tf.cond(tf.size(exif) > 1, lambda: parse_tiff_orientation(exif[1]), lambda: 1)
    form = tf.where(tf.not_equal(orientation, 1), "a PNG that EXIF data turns", "")
    # Encoded again, it would have its profile applied.
    has_profile = has_colours & _holds(before_pixels, "iCCP")
    form = tf.where(has_profile, "a PNG of 16 bits or a palette with a colour profile", form)
    is_transparent = (colour >= 4) | _holds(before_pixels, "tRNS")
    return tf.where(is_transparent, "a PNG with transparency", form)


def _split(data: tf.Tensor, name: str) -> tf.Tensor:
    """Returns what stands before the first `name`, and what behind it where there is one."""
    # tf.strings.split makes a ragged tensor of it on the way, which takes half as long again.
    return tf.raw_ops.StringSplitV2(input=data[tf.newaxis], sep=name, maxsplit=1).values


def _holds(data: tf.Tensor, name: str) -> tf.Tensor:
    return tf.size(_split(data, name)) > 1


def _describe_bmp(head: tf.Tensor) -> tf.Tensor:
    # Older headers are smaller; behind the 24 bits a zero says that nothing is compressed.
    is_plain = (head[14] >= _BMP_HEADER_BYTES) & tf.reduce_all(
        tf.equal(head[28:34], (24, 0, 0, 0, 0, 0))
    )
    return tf.where(is_plain, "", "a BMP that is not of 24 bits")
