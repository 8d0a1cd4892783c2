"""The EXIF orientation of a JPEG, found and undone by graph operations.

TensorFlow ignores the flag and decodes pixels as they are stored, so photographs from phones would
be turned by 90 degrees. Where there is no flag in EXIF data, that in XMP counts, as in a
conversion. `png` finds these data in a PNG.
"""

from __future__ import annotations

import tensorflow as tf

from darkroom.images.jpeg_header import ORIENTATION_TAG
from darkroom.input.graph.parts import contains, cut_string, split, to_numbers, trace_once
from darkroom.targets.geometry import FLIPPED, MIRRORED, TRANSPOSED, Matrix, turn

# Real files have EXIF in their first or second segment. This limits hostile files.
_MAX_SEGMENTS = 64
# The start of an EXIF segment, after its marker and its length. In RE2, \C is any byte.
_EXIF = r"\C{4}Exif\x00\x00"
_EXIF_NAME, _XMP_NAME = b"Exif\0\0", b"http://ns.adobe.com/xap/1.0/\0"
_XMP_ORIENTATION = r'(?s)\C*?tiff:Orientation(?:="|>)([1-8])\C*'
# EXIF and XMP data are at the beginning: each is one segment of at most 64 KiB.
_EXIF_BYTES, _XMP_BYTES = 1 << 16, 1 << 17
_SHORT, _LONG = 3, 4
# Other results than an orientation.
ABSENT, UNUSUAL = 0, -1


def turn_upright(pixels: tf.Tensor, orientation: tf.Tensor) -> tf.Tensor:
    """Returns upright pixels, by undoing an EXIF orientation.

    Args:
        pixels: uint8 [H, W, 3] as stored.
        orientation: int32 [], 1 to 8.

    Returns:
        uint8 [H, W, 3], or [W, H, 3] for the orientations 5 to 8.
    """
    transposed, mirrored, flipped = _find_turns(orientation)
    pixels = tf.cond(transposed, lambda: tf.transpose(pixels, (1, 0, 2)), lambda: pixels)
    pixels = tf.cond(mirrored, lambda: tf.reverse(pixels, (1,)), lambda: pixels)
    return tf.cond(flipped, lambda: tf.reverse(pixels, (0,)), lambda: pixels)


def locate_upright(orientation: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> Matrix:
    """Returns where points go when an EXIF orientation is undone.

    Args:
        orientation: [...], 1 to 8.
        height: float64 [...], of the upright image.
        width: Its width.
    """
    return turn(height, width, *map(to_float, _find_turns(orientation)))


def _find_turns(orientation: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Returns whether orientations are undone by a transposition, by a mirror, and by another."""
    each = orientation[..., tf.newaxis]
    return tuple(
        tf.reduce_any(tf.equal(each, numbers), axis=-1)
        for numbers in (TRANSPOSED, MIRRORED, FLIPPED)
    )


def to_float(values: tf.Tensor) -> tf.Tensor:
    """Returns whole numbers or truth values as float64, of which matrices are."""
    return tf.cast(values, tf.float64)


def parse_orientation(encoded: tf.Tensor) -> tf.Tensor:
    """Returns the orientation of a JPEG, or 1 if it has none or a damaged one. Never fails.

    Args:
        encoded: string [], any bytes.

    Returns:
        int32 [], 1 to 8.
    """
    return tf.maximum(read_orientation(encoded), 1)


@trace_once
def read_orientation(encoded: tf.Tensor) -> tf.Tensor:
    """Returns the orientation of a JPEG, or tells that it may have one that is not read here.

    Args:
        encoded: string [], any bytes.

    Returns:
        int32 [], 1 to 8; 1 or `ABSENT` if it has none; `UNUSUAL` where EXIF data are in a place, or
        of a kind, that is not read.
    """

    def parse() -> tf.Tensor:
        start, size = _find_exif(encoded)
        found = tf.cond(size > 0, lambda: parse_directory(cut_string(encoded, start, size)), look)
        return tf.cond(tf.equal(found, ABSENT), lambda: _parse_xmp(encoded), lambda: found)

    def look() -> tf.Tensor:
        has_exif = contains(tf.strings.substr(encoded, 0, _EXIF_BYTES), _EXIF_NAME)
        return tf.where(has_exif, UNUSUAL, ABSENT)

    return tf.cond(_may_have_exif(encoded), parse, look)


def _parse_xmp(encoded: tf.Tensor) -> tf.Tensor:
    """Returns the orientation in the last XMP data of a JPEG, or 1 if it has none."""
    parts = split(tf.strings.substr(encoded, 0, _XMP_BYTES), _XMP_NAME)
    return tf.cond(tf.size(parts) > 1, lambda: search_xmp_orientation(parts[-1]), lambda: 1)


def search_xmp_orientation(xmp: tf.Tensor) -> tf.Tensor:
    """Returns the orientation in XMP data, or 1 if they have none.

    Args:
        xmp: string [], any bytes.

    Returns:
        int32 [], 1 to 8.
    """
    found = tf.strings.regex_full_match(xmp, _XMP_ORIENTATION)
    digit = tf.strings.regex_replace(xmp, _XMP_ORIENTATION, r"\1")
    return tf.cond(found, lambda: to_numbers(digit, 1)[0] - ord("0"), lambda: 1)


def _may_have_exif(encoded: tf.Tensor) -> tf.Tensor:
    """Tells from the first bytes whether a JPEG can have EXIF data.

    Walking through the segments costs a tenth of decoding a small image. It is not necessary if the
    tables of the image come first, or right after the 18 bytes of JFIF.
    """
    is_jpeg = tf.equal(tf.strings.substr(encoded, 0, 3), b"\xff\xd8\xff")
    is_jfif = tf.equal(tf.strings.substr(encoded, 0, 6), b"\xff\xd8\xff\xe0\0\x10")
    head = tf.unstack(to_numbers(encoded, 22))
    return is_jpeg & (tf.where(is_jfif, head[21], head[3]) >= 0xE0)


@trace_once
def _find_exif(encoded: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns where the TIFF data of a JPEG's first EXIF segment starts, and its size; 0: none.

    It walks through the segments before the tables of the image: APPn and comments.
    """

    def is_walking(position: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
        return (position > 0) & tf.equal(size, 0)

    def step(position: tf.Tensor, _: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Looks at one segment; returns where the next one begins, or the EXIF data and their size.

        The position is 0 when the walk is over, as at the tables of the image.
        """
        segment = cut_string(encoded, position, 10)
        first, marker, high, low = tf.unstack(to_numbers(segment, 4))
        length = high * 256 + low
        is_exif = tf.equal(marker, 0xE1) & tf.strings.regex_full_match(segment, _EXIF)
        is_fill = tf.equal(marker, 0xFF)
        goes_on = tf.equal(first, 0xFF) & (marker >= 0xE0) & ((length >= 2) | is_fill)
        found = goes_on & is_exif & (length > 8)
        following = tf.where(goes_on, position + tf.where(is_fill, 1, 2 + length), 0)
        return tf.where(found, position + 10, following), tf.where(found, length - 8, 0)

    start, size = tf.while_loop(
        is_walking, step, (tf.constant(2), tf.constant(0)), maximum_iterations=_MAX_SEGMENTS
    )
    return start, size


@trace_once
def parse_directory(tiff: tf.Tensor) -> tf.Tensor:
    """Returns the orientation in the first directory of TIFF data. Never fails.

    Args:
        tiff: string [], an EXIF block, or any bytes.

    Returns:
        int32 [], 1 to 8; `ABSENT` if there is none; `UNUSUAL` if it has a type that is not read.
    """
    start, length = tf.strings.substr(tiff, 0, 4), tf.strings.length(tiff)
    is_little, is_big = tf.equal(start, b"II*\0"), tf.equal(start, b"MM\0*")

    def read(data: tf.Tensor, dtype: tf.DType, count: int | None = None) -> tf.Tensor:
        little = tf.io.decode_raw(data, dtype, little_endian=True, fixed_length=count)
        big = tf.io.decode_raw(data, dtype, little_endian=False, fixed_length=count)
        return tf.where(is_little, little, big)

    # Above 2 GiB it wraps to a negative number.
    offset = read(tiff, tf.int32, 8)[1]
    offset = tf.where((offset < 0) | (offset > length), length, offset)
    count = tf.cast(read(cut_string(tiff, offset, 2), tf.uint16, 2)[0], tf.int32)
    directory = cut_string(tiff, offset + 2, 12 * count)
    entries = tf.strings.substr(directory, 0, tf.strings.length(directory) // 12 * 12)
    tag, kind, _, _, short, _ = tf.unstack(tf.reshape(read(entries, tf.int16), (-1, 6)), axis=1)
    _, values, long = tf.unstack(tf.reshape(read(entries, tf.int32), (-1, 3)), axis=1)
    # The standard says SHORT, but some writers use LONG.
    is_short, is_long = tf.equal(kind, _SHORT), tf.equal(kind, _LONG)
    value = tf.where(is_long, long, tf.cast(short, tf.int32))
    value = tf.where((value >= 1) & (value <= 8), value, 1)
    value = tf.where((is_short | is_long) & tf.equal(values, 1), value, UNUSUAL)
    is_found = tf.equal(tag, ORIENTATION_TAG) & (is_little | is_big)
    # A mask would take three times as many operations.
    found = tf.dynamic_partition(value, tf.cast(is_found, tf.int32), 2)[1]
    return tf.concat(((ABSENT,), found), axis=0)[-1]
