"""Encoded bytes to pixels: the one way into a model, for training, evaluation and serving.

Everything here is made of TensorFlow operations, so that the same function runs in a tf.data
pipeline and inside an exported SavedModel. JPEG, PNG, GIF (first frame) and BMP are read; pixels
are uint8, RGB, upright: TensorFlow ignores the EXIF orientation of a JPEG, so it is read here.
An orientation in the eXIf chunk of a PNG is not read.
"""

from __future__ import annotations

import tensorflow as tf

CROP_AREA = (0.08, 1.0)
CROP_RATIO = (3 / 4, 4 / 3)
# Real files have EXIF in their first or second segment; this bounds hostile ones.
_MAX_SEGMENTS = 64
_ORIENTATION_TAG = 0x0112


def decode_image(encoded: tf.Tensor, image_size: tuple[int, int]) -> tf.Tensor:
    """Returns the whole image, upright, resized bilinearly without antialias.

    Args:
        encoded: string [], the bytes of a JPEG, PNG, GIF or BMP file.
        image_size: (height, width) in pixels.

    Returns:
        uint8 [height, width, 3], RGB.
    """
    return _resize(_decode_upright(encoded, parse_orientation(encoded)), image_size)


def decode_training_image(
    encoded: tf.Tensor, image_size: tuple[int, int], seed: tf.Tensor, *, crop: bool, flip: bool
) -> tf.Tensor:
    """Returns a random view of the image; without crop and flip, what `decode_image` returns.

    Args:
        encoded: string [], the bytes of a JPEG, PNG, GIF or BMP file.
        image_size: (height, width) in pixels.
        seed: int64 [2]; equal seeds give equal views.
        crop: Cut a random window (8 to 100 % of the area, ratio 3/4 to 4/3) before resizing.
        flip: Mirror left to right with probability one half.

    Returns:
        uint8 [height, width, 3], RGB.
    """
    orientation = parse_orientation(encoded)
    if crop:
        # An upright JPEG is decoded only where the window is; the rest must be turned first.
        pixels = tf.cond(
            tf.io.is_jpeg(encoded) & tf.equal(orientation, 1),
            lambda: _decode_window(encoded, seed),
            lambda: _cut_window(_decode_upright(encoded, orientation), seed),
        )
    else:
        pixels = _decode_upright(encoded, orientation)
    resized = _resize(pixels, image_size)
    return tf.image.stateless_random_flip_left_right(resized, seed) if flip else resized


def turn_upright(pixels: tf.Tensor, orientation: tf.Tensor) -> tf.Tensor:
    """Undoes an EXIF orientation.

    Args:
        pixels: uint8 [H, W, 3] as stored.
        orientation: int32 [], 1 to 8.

    Returns:
        uint8 [H, W, 3], or [W, H, 3] for the orientations 5 to 8.
    """
    # Each orientation is a transposition (5 to 8) followed by mirrorings.
    pixels = tf.cond(orientation >= 5, lambda: tf.transpose(pixels, (1, 0, 2)), lambda: pixels)
    left_right = _is_one_of(orientation, (2, 3, 6, 7))
    pixels = tf.cond(left_right, lambda: tf.reverse(pixels, (1,)), lambda: pixels)
    upside_down = _is_one_of(orientation, (3, 4, 7, 8))
    return tf.cond(upside_down, lambda: tf.reverse(pixels, (0,)), lambda: pixels)


def parse_orientation(encoded: tf.Tensor) -> tf.Tensor:
    """Returns the EXIF orientation of a JPEG; 1 when there is none or it is damaged. Never fails.

    Args:
        encoded: string [], any bytes.

    Returns:
        int32 [], 1 to 8.
    """
    return tf.cond(
        _may_hold_exif(encoded), lambda: _parse_exif_orientation(encoded), lambda: tf.constant(1)
    )


def _decode_upright(encoded: tf.Tensor, orientation: tf.Tensor) -> tf.Tensor:
    pixels = tf.io.decode_image(encoded, channels=3, expand_animations=False)
    pixels = tf.ensure_shape(pixels, (None, None, 3))
    return tf.cond(orientation > 1, lambda: turn_upright(pixels, orientation), lambda: pixels)


def _decode_window(encoded: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    shape = tf.io.extract_jpeg_shape(encoded)
    return tf.io.decode_and_crop_jpeg(encoded, _sample_window(shape, seed), channels=3)


def _cut_window(pixels: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    top, left, height, width = tf.unstack(_sample_window(tf.shape(pixels), seed))
    return pixels[top : top + height, left : left + width]


def _sample_window(shape: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    """Returns a random window as int32 [4]: top, left, height, width."""
    begin, size, _ = tf.image.stateless_sample_distorted_bounding_box(
        shape,
        tf.zeros((1, 0, 4)),
        seed,
        min_object_covered=0.0,
        aspect_ratio_range=CROP_RATIO,
        area_range=CROP_AREA,
        max_attempts=10,
        use_image_if_no_bounding_boxes=True,
    )
    return tf.concat((begin[:2], size[:2]), axis=0)


def _resize(pixels: tf.Tensor, image_size: tuple[int, int]) -> tf.Tensor:
    resized = tf.round(tf.image.resize(pixels, image_size, method="bilinear"))
    return tf.ensure_shape(tf.cast(resized, tf.uint8), (*image_size, 3))


def _is_one_of(value: tf.Tensor, numbers: tuple[int, ...]) -> tf.Tensor:
    return tf.reduce_any(tf.equal(value, numbers))


def _may_hold_exif(encoded: tf.Tensor) -> tf.Tensor:
    """Tells from the first bytes whether a JPEG can hold EXIF data.

    Walking the segments costs a tenth of decoding a small image, so files whose tables follow at
    once, or right after the 18 bytes of JFIF, are told apart first.
    """
    head = _to_numbers(tf.strings.substr(encoded, 0, 22), 22)
    is_jpeg = tf.reduce_all(tf.equal(head[:3], (0xFF, 0xD8, 0xFF)))
    is_jfif = tf.reduce_all(tf.equal(head[3:6], (0xE0, 0, 16)))
    return is_jpeg & (tf.where(is_jfif, head[21], head[3]) >= 0xE0)


def _parse_exif_orientation(encoded: tf.Tensor) -> tf.Tensor:
    start, size = _find_exif(encoded)
    return _parse_tiff_orientation(_cut(encoded, start, size))


def _find_exif(encoded: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns where the TIFF data of a JPEG's first EXIF segment starts, and its size; 0: none.

    Walks the segments that stand before the image's tables: APPn and comments.
    """

    def is_walking(position: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
        return (position > 0) & tf.equal(size, 0)

    def step(position: tf.Tensor, _: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        head = _to_numbers(_cut(encoded, position, 10), 10)
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


def _parse_tiff_orientation(tiff: tf.Tensor) -> tf.Tensor:
    """Returns the orientation in the first directory of TIFF data; 1 when there is none."""
    head = _to_numbers(tf.strings.substr(tiff, 0, 8), 8)
    is_little = tf.reduce_all(tf.equal(head[:4], (0x49, 0x49, 42, 0)))
    is_big = tf.reduce_all(tf.equal(head[:4], (0x4D, 0x4D, 0, 42)))
    place_values = tf.where(
        is_little, tf.constant((1, 1 << 8, 1 << 16, 1 << 24)), (1 << 24, 1 << 16, 1 << 8, 1)
    )
    short_values = tf.where(is_little, tf.constant((1, 1 << 8)), (1 << 8, 1))

    def shorts(data: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(data * short_values, axis=-1)

    def longs(data: tf.Tensor) -> tf.Tensor:
        # Wraps to a negative number above 2 GiB, which no caller takes for a valid one.
        return tf.reduce_sum(data * place_values, axis=-1)

    offset = longs(head[4:8])
    count = shorts(_to_numbers(_cut(tiff, offset, 2), 2))
    directory = _to_numbers(_cut(tiff, offset + 2, 12 * count))
    entries = tf.reshape(directory[: tf.size(directory) // 12 * 12], (-1, 12))
    kind = shorts(entries[:, 2:4])
    # SHORT is what the standard says; some writers use LONG.
    value = tf.where(tf.equal(kind, 4), longs(entries[:, 8:12]), shorts(entries[:, 8:10]))
    is_valid = (
        tf.equal(shorts(entries[:, 0:2]), _ORIENTATION_TAG)
        & (tf.equal(kind, 3) | tf.equal(kind, 4))
        & tf.equal(longs(entries[:, 4:8]), 1)
        & (value >= 1)
        & (value <= 8)
        & (is_little | is_big)
    )
    return tf.concat(((1,), tf.boolean_mask(value, is_valid)), axis=0)[-1]


def _cut(data: tf.Tensor, position: tf.Tensor, count: tf.Tensor | int) -> tf.Tensor:
    """Returns the part of a string that exists; tf.strings.substr fails beyond the end."""
    length = tf.strings.length(data)
    inside = (position >= 0) & (position <= length)
    return tf.strings.substr(data, tf.where(inside, position, length), count)


def _to_numbers(data: tf.Tensor, count: int | None = None) -> tf.Tensor:
    """Returns the bytes of a string as int32; with a count exactly so many, zeros at the end."""
    return tf.cast(tf.io.decode_raw(data, tf.uint8, fixed_length=count), tf.int32)
