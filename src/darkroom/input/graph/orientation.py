"""The EXIF orientation of a JPEG, found and undone by graph operations.

TensorFlow ignores the flag and decodes pixels as they are stored, so photographs from phones would
be turned by 90 degrees. The orientation in the eXIf chunk of a PNG is not read.
"""

from __future__ import annotations

import tensorflow as tf

from darkroom.images.headers import ORIENTATION_TAG

# Real files have EXIF in their first or second segment. This limits hostile files.
_MAX_SEGMENTS = 64


def undo_orientation(pixels: tf.Tensor, orientation: tf.Tensor) -> tf.Tensor:
    """Returns upright pixels, by undoing an EXIF orientation.

    Args:
        pixels: uint8 [H, W, 3] as stored.
        orientation: int32 [], 1 to 8.

    Returns:
        uint8 [H, W, 3], or [W, H, 3] for the orientations 5 to 8.
    """
    # Each orientation is a transposition (5 to 8), followed by mirroring.
    pixels = tf.cond(orientation >= 5, lambda: tf.transpose(pixels, (1, 0, 2)), lambda: pixels)
    left_right = _is_one_of(orientation, (2, 3, 6, 7))
    pixels = tf.cond(left_right, lambda: tf.reverse(pixels, (1,)), lambda: pixels)
    upside_down = _is_one_of(orientation, (3, 4, 7, 8))
    return tf.cond(upside_down, lambda: tf.reverse(pixels, (0,)), lambda: pixels)


def parse_orientation(encoded: tf.Tensor) -> tf.Tensor:
    """Returns the EXIF orientation of a JPEG, or 1 if it has none or a damaged one. Never fails.

    Args:
        encoded: string [], any bytes.

    Returns:
        int32 [], 1 to 8.
    """

    def parse() -> tf.Tensor:
        start, size = _find_exif(encoded)
        return parse_tiff_orientation(_cut(encoded, start, size))

    return tf.cond(_may_have_exif(encoded), parse, lambda: tf.constant(1))


def _is_one_of(value: tf.Tensor, numbers: tuple[int, ...]) -> tf.Tensor:
    return tf.reduce_any(tf.equal(value, numbers))


def _may_have_exif(encoded: tf.Tensor) -> tf.Tensor:
    """Tells from the first bytes whether a JPEG can have EXIF data.

    Walking through the segments costs a tenth of decoding a small image. It is not necessary if the
    tables of the image come first, or right after the 18 bytes of JFIF.
    """
    head = to_numbers(tf.strings.substr(encoded, 0, 22), 22)
    is_jpeg = tf.reduce_all(tf.equal(head[:3], (0xFF, 0xD8, 0xFF)))
    is_jfif = tf.reduce_all(tf.equal(head[3:6], (0xE0, 0, 16)))
    return is_jpeg & (tf.where(is_jfif, head[21], head[3]) >= 0xE0)


def _find_exif(encoded: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns where the TIFF data of a JPEG's first EXIF segment starts, and its size; 0: none.

    It walks through the segments before the tables of the image: APPn and comments.
    """

    def is_walking(position: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
        return (position > 0) & tf.equal(size, 0)

    def step(position: tf.Tensor, _: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        head = to_numbers(_cut(encoded, position, 10), 10)
        length = head[2] * 256 + head[3]
        is_exif = tf.equal(head[1], 0xE1) & tf.reduce_all(tf.equal(head[4:], (*b"Exif\0\0",)))
        is_fill = tf.equal(head[1], 0xFF)
        goes_on = tf.equal(head[0], 0xFF) & (head[1] >= 0xE0) & ((length >= 2) | is_fill)
        found = goes_on & is_exif & (length > 8)
        following = tf.where(goes_on, position + tf.where(is_fill, 1, 2 + length), 0)
        return tf.where(found, position + 10, following), tf.where(found, length - 8, 0)

    start, size = tf.while_loop(
        is_walking, step, (tf.constant(2), tf.constant(0)), maximum_iterations=_MAX_SEGMENTS
    )
    return start, size


def parse_tiff_orientation(tiff: tf.Tensor) -> tf.Tensor:
    """Returns the orientation in the first directory of TIFF data, or 1 if there is none.

    Args:
        tiff: string [], an EXIF block, or any bytes.

    Returns:
        int32 [], 1 to 8.
    """
    head = to_numbers(tf.strings.substr(tiff, 0, 8), 8)
    is_little = tf.reduce_all(tf.equal(head[:4], (0x49, 0x49, 42, 0)))
    is_big = tf.reduce_all(tf.equal(head[:4], (0x4D, 0x4D, 0, 42)))
    place_values = tf.where(
        is_little, tf.constant((1, 1 << 8, 1 << 16, 1 << 24)), (1 << 24, 1 << 16, 1 << 8, 1)
    )
    short_values = tf.where(is_little, tf.constant((1, 1 << 8)), (1 << 8, 1))

    def shorts(data: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(data * short_values, axis=-1)

    def longs(data: tf.Tensor) -> tf.Tensor:
        # Above 2 GiB it wraps to a negative number, which callers treat as invalid.
        return tf.reduce_sum(data * place_values, axis=-1)

    offset = longs(head[4:8])
    count = shorts(to_numbers(_cut(tiff, offset, 2), 2))
    directory = to_numbers(_cut(tiff, offset + 2, 12 * count))
    entries = tf.reshape(directory[: tf.size(directory) // 12 * 12], (-1, 12))
    kind = shorts(entries[:, 2:4])
    # The standard says SHORT, but some writers use LONG.
    value = tf.where(tf.equal(kind, 4), longs(entries[:, 8:12]), shorts(entries[:, 8:10]))
    is_valid = (
        tf.equal(shorts(entries[:, 0:2]), ORIENTATION_TAG)
        & (tf.equal(kind, 3) | tf.equal(kind, 4))
        & tf.equal(longs(entries[:, 4:8]), 1)
        & (value >= 1)
        & (value <= 8)
        & (is_little | is_big)
    )
    return tf.concat(((1,), tf.boolean_mask(value, is_valid)), axis=0)[-1]


def _cut(data: tf.Tensor, position: tf.Tensor, count: tf.Tensor | int) -> tf.Tensor:
    """Returns the part of a string that exists. tf.strings.substr fails beyond the end."""
    length = tf.strings.length(data)
    inside = (position >= 0) & (position <= length)
    return tf.strings.substr(data, tf.where(inside, position, length), count)


def to_numbers(data: tf.Tensor, count: int | None = None) -> tf.Tensor:
    """Returns the bytes of a string as int32. A count cuts them, or adds zeros at the end."""
    return tf.cast(tf.io.decode_raw(data, tf.uint8, fixed_length=count), tf.int32)
