"""PNGs in the graph: TensorFlow drops transparency, and does not read which way up they are.

Chunks are found by their names in what is before and behind the pixels, because walking through all
of them costs as much as decoding a small image.
"""

from __future__ import annotations

import tensorflow as tf

from darkroom.input.graph.orientation import (
    ABSENT,
    UNUSUAL,
    parse_directory,
    search_xmp_orientation,
)
from darkroom.input.graph.parts import (
    contains,
    cut_string,
    find_last,
    split,
    to_integers,
    to_numbers,
    trace_once,
)
from darkroom.input.graph.profiles import is_srgb

_HEAD_BYTES = 26
_GRAY, _RGB, _PALETTE, _GRAY_ALPHA = 0, 2, 3, 4
_END = b"\0\0\0\0IEND\xaeB`\x82"
_XMP = b"XML:com.adobe.xmp\0"
# EXIF and XMP data that are not read here: as a text, or compressed. In RE2, \C is any byte.
_HIDDEN = (
    r"(?s)\C*(?:Raw profile type exif\x00|TXtexif\x00|TXtxmp\x00|zTXtXML:com.adobe.xmp\x00|"
    r"XML:com.adobe.xmp\x00\x01)\C*"
)
_EXIF = r"(?s)(?:Exif\x00\x00)*(?:II\*\x00|MM\x00\*)\C*"
_EXIF_NAMES = r"^(?:Exif\x00\x00)*"


def describe_png(encoded: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Describes a PNG that is not decoded as by a conversion; an empty text for all others.

    Args:
        encoded: string [], bytes that begin as a PNG.

    Returns:
        The description, string []; the number of pixels, int64 [].
    """
    depth, color = tf.unstack(to_numbers(encoded, _HEAD_BYTES)[24:])
    facts = _read_facts(encoded)
    is_deep, turn = tf.equal(depth, 16), _find_turn(facts)
    has_key = contains(facts, b"tRNS")
    # A conversion encodes these again, and then applies their profile.
    is_changed = is_deep | (color >= _PALETTE) | has_key | (turn > 1) | contains(facts, b"acTL")
    is_gray = tf.equal(color, _GRAY) | tf.equal(color, _GRAY_ALPHA)
    is_foreign = tf.cond(is_changed & ~is_gray, lambda: _has_foreign_profile(facts), lambda: False)
    form = tf.where(is_foreign, "a PNG with a color profile that a conversion applies", "")
    is_hidden = tf.equal(turn, UNUSUAL) | tf.strings.regex_full_match(facts, _HIDDEN)
    form = tf.where(is_hidden, "a PNG with unusual EXIF data, which may turn it", form)
    is_key_deep = tf.equal(color, _RGB) & is_deep & has_key
    form = tf.where(is_key_deep, "a PNG of 16 bits with one transparent color", form)
    start = cut_string(encoded, 12, 4)
    form = tf.where(tf.equal(start, b"CgBI"), "a PNG of Xcode (CgBI)", form)
    sides = to_integers(cut_string(encoded, 16, 8), 2, little_endian=False)
    num_pixels = tf.reduce_prod(tf.cast(sides, tf.int64))
    return form, tf.where(tf.equal(start, b"IHDR"), num_pixels, tf.constant(0, tf.int64))


def decode_png(encoded: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Decodes a PNG, on white.

    Args:
        encoded: string [], its bytes.

    Returns:
        The pixels as they are stored, uint8 [H, W, 3]; the orientation, int32 [], 1 to 8.
    """
    color, facts = to_numbers(encoded, _HEAD_BYTES)[-1], _read_facts(encoded)
    pixels = tf.cond(
        (color >= _GRAY_ALPHA) | contains(facts, b"tRNS"),
        lambda: _put_on_white(tf.io.decode_png(encoded, channels=4)),
        lambda: tf.io.decode_png(encoded, channels=3),
    )
    return pixels, tf.maximum(_find_turn(facts), 1)


def _put_on_white(pixels: tf.Tensor) -> tf.Tensor:
    """Returns RGB of RGBA, uint8 [H, W, 4], with the very values of Pillow."""
    color, alpha = tf.cast(pixels[..., :3], tf.float32), tf.cast(pixels[..., 3:], tf.float32)
    # No quotient of two of these numbers is near a half, so rounding is certain.
    return tf.cast((color - 255) * (alpha / 255) + 255.5, tf.uint8)


@trace_once
def _read_facts(encoded: tf.Tensor) -> tf.Tensor:
    """Returns what is before the pixels and behind them, but not what follows the image."""
    parts = split(split(encoded, _END, 1)[0], b"IDAT")
    last = tf.size(parts) - 1

    def read_behind() -> tf.Tensor:
        size = _read_length(parts[last - 1], 4)
        return cut_string(parts[last], size, tf.strings.length(parts[last]))

    behind = tf.cond(last > 0, read_behind, lambda: b"")
    return tf.strings.join((parts[0], behind))


@trace_once
def _find_turn(facts: tf.Tensor) -> tf.Tensor:
    """Returns the orientation by EXIF or else XMP data, or `ABSENT` or `UNUSUAL`."""
    exif, xmp = split(facts, b"eXIf"), split(facts, _XMP)

    def parse_exif() -> tf.Tensor:
        # The same name in a text is not followed by EXIF data.
        last = find_last(exif, _EXIF)
        return tf.cond(last > 0, lambda: parse_block(last), lambda: ABSENT)

    def parse_block(last: tf.Tensor) -> tf.Tensor:
        block = cut_string(exif[last], 0, _read_length(exif[last - 1], 4))
        return parse_directory(tf.strings.regex_replace(block, _EXIF_NAMES, ""))

    def parse_xmp() -> tf.Tensor:
        return search_xmp_orientation(cut_string(xmp[-1], 0, _read_length(xmp[-2], 8)))

    found = tf.cond(tf.size(exif) > 1, parse_exif, lambda: ABSENT)
    is_by_xmp = tf.equal(found, ABSENT) & (tf.size(xmp) > 1)
    return tf.cond(is_by_xmp, parse_xmp, lambda: found)


def _read_length(before: tf.Tensor, place: int) -> tf.Tensor:
    """Returns the length of a chunk, int32 [], which is so many bytes before what follows."""
    begin = tf.maximum(tf.strings.length(before) - place, 0)
    return tf.maximum(to_integers(cut_string(before, begin, 4), 1, little_endian=False)[0], 0)


def _has_foreign_profile(facts: tf.Tensor) -> tf.Tensor:
    """Tells whether there is a profile other than sRGB, which is compressed, after its name."""
    parts = split(facts, b"iCCP", 1)

    def is_foreign() -> tf.Tensor:
        data = cut_string(parts[1], 0, _read_length(parts[0], 4))
        # After the end of its name is the number of the compression.
        name = split(data, b"\0", 1)[0]
        compressed = cut_string(data, tf.strings.length(name) + 2, tf.strings.length(data))
        return ~is_srgb(tf.io.decode_compressed(compressed, "ZLIB"))

    return tf.cond(tf.size(parts) > 1, is_foreign, lambda: False)
