"""Which files TensorFlow decodes to the pixels that a conversion would store.

These are JPEGs, gray or in color, that any usual EXIF or XMP data turn; PNGs without transparency;
BMPs of 24 bits. (Of 16 bits both decoders keep the upper eight. Of an animated PNG both take the
default picture.) Other files are described, by graph operations: formats that TensorFlow cannot
read; transparency, which a conversion puts on white and TensorFlow drops; color profiles that a
conversion would apply; PNGs that EXIF data turns; JPEGs with EXIF data in an unusual place.

One difference is left. A conversion ends reading EXIF data, as Pillow does, at a value that is
outside of them; input reads on.
"""

from __future__ import annotations

import tensorflow as tf

from darkroom.input.graph.orientation import (
    is_orientation_hidden,
    parse_orientation,
    parse_tiff_orientation,
    parse_xmp_orientation,
    to_numbers,
    trace_once,
)

_HEAD_BYTES = 34
_PNG_PALETTE = 3
_BMP_HEADER_BYTES = 40
# Profiles are at the beginning, or after a thumbnail.
_PROFILE_BYTES = 1 << 17
# In RE2, \C is any byte. The name in a profile is ASCII; from version 4 on, it is UTF-16.
_FOREIGN_PROFILE = r"(?s)\C*ICC_PROFILE\x00\C*"
_SRGB = r"(?s)\C*s\x00?R\x00?G\x00?B\C*"

GIF = "a GIF"
# How files begin that TensorFlow cannot read; the first that fits counts.
_FOREIGN = {
    GIF: "GIF8",
    "a WebP": r"RIFF\C{4}WEBP",
    "a TIFF": "II|MM",
    "an AVIF": r"\C{4}ftypavi",
    "a HEIC or a relative of it": r"\C{4}ftyp",
}

_HINT = "Convert the images with darkroom convert, which reads this form, or leave them out."


def check_decodable(encoded: tf.Tensor, uri: tf.Tensor) -> tf.Tensor:
    """Checks that TensorFlow decodes an image to the pixels that a conversion would store.

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
    """Describes an image if TensorFlow decodes it to different pixels than a conversion.

    Args:
        encoded: string [], any bytes.

    Returns:
        string [], for example "a CMYK JPEG"; empty if the pixels are the same.
    """
    start = tf.strings.substr(encoded, 0, _HEAD_BYTES)
    head = tf.unstack(to_numbers(encoded, _HEAD_BYTES))
    form = tf.where(tf.equal(encoded, ""), "empty", "neither JPEG, PNG, GIF nor BMP")
    for name, beginning in reversed(_FOREIGN.items()):
        has_begun = tf.strings.regex_full_match(start, rf"(?s)({beginning})\C*")
        form = tf.where(has_begun, name, form)
    is_bmp = tf.equal(tf.strings.substr(start, 0, 2), b"BM")
    # Older headers are smaller. After the number of bits, 24, a zero means no compression.
    kind = tf.equal(tf.stack(head[28:34]), (24, 0, 0, 0, 0, 0))
    is_plain = (head[14] >= _BMP_HEADER_BYTES) & tf.reduce_all(kind)
    form = tf.where(is_bmp, tf.where(is_plain, "", "a BMP that is not of 24 bits"), form)
    is_jpeg = tf.equal(tf.strings.substr(start, 0, 3), b"\xff\xd8\xff")
    is_png = tf.equal(tf.strings.substr(start, 0, 8), b"\x89PNG\r\n\x1a\n")
    return tf.case(
        (
            (is_jpeg, lambda: _describe_jpeg(encoded)),
            (is_png, lambda: _describe_png(encoded, head[24], head[25])),
        ),
        lambda: form,
    )


def _describe_jpeg(encoded: tf.Tensor) -> tf.Tensor:
    channels = tf.io.extract_jpeg_shape(encoded)[2]
    is_turned = tf.not_equal(parse_orientation(encoded), 1) & tf.equal(channels, 3)

    def has_foreign_profile() -> tf.Tensor:
        start = tf.strings.substr(encoded, 0, _PROFILE_BYTES)
        has_profile = tf.strings.regex_full_match(start, _FOREIGN_PROFILE)
        return has_profile & ~tf.strings.regex_full_match(start, _SRGB)

    # A conversion applies the profile of a turned JPEG, because it encodes that again.
    is_foreign = tf.cond(is_turned, has_foreign_profile, lambda: False)
    is_plain = tf.equal(channels, 1) | tf.equal(channels, 3)
    form = tf.where(is_foreign, "a turned JPEG with a color profile other than sRGB", "")
    unusual = "a JPEG with unusual EXIF data, which may turn it"
    form = tf.where(is_orientation_hidden(encoded), unusual, form)
    return tf.where(is_plain, form, "a CMYK JPEG")


def _describe_png(encoded: tf.Tensor, depth: tf.Tensor, color: tf.Tensor) -> tf.Tensor:
    before_pixels = _split(encoded, "IDAT")[0]
    has_colors = tf.equal(color, _PNG_PALETTE) | (tf.equal(color, 2) & tf.equal(depth, 16))
    exif = _split(encoded, "eXIf")
    # The same four bytes among the pixels are not followed by EXIF data.
    orientation = tf.cond(tf.size(exif) > 1, lambda: parse_tiff_orientation(exif[1]), lambda: 1)
    by_xmp = parse_xmp_orientation(before_pixels, b"XML:com.adobe.xmp\0")
    is_turned = tf.not_equal(orientation, 1) | tf.not_equal(by_xmp, 1)
    form = tf.where(is_turned, "a PNG that EXIF data turns", "")
    text = "a PNG with EXIF data as a text, which may turn it"
    form = tf.where(_contains(before_pixels, "Raw profile type exif"), text, form)
    # A conversion encodes these again and applies their profile.
    has_profile = has_colors & _contains(before_pixels, "iCCP")
    form = tf.where(has_profile, "a PNG of 16 bits or a palette with a color profile", form)
    is_transparent = (color >= 4) | _contains(before_pixels, "tRNS")
    return tf.where(is_transparent, "a PNG with transparency", form)


def _split(data: tf.Tensor, name: str) -> tf.Tensor:
    """Returns the bytes before the first `name` and, if there is one, the bytes after it."""
    # tf.strings.split takes half as long again, because it makes a ragged tensor.
    return tf.raw_ops.StringSplitV2(input=data[tf.newaxis], sep=name, maxsplit=1).values


def _contains(data: tf.Tensor, name: str) -> tf.Tensor:
    return tf.size(_split(data, name)) > 1
