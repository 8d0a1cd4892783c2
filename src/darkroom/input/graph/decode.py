"""Encoded bytes to pixels: the one way into a model, for training, evaluation and serving.

Everything here uses TensorFlow operations, so the same function runs in a tf.data pipeline and in
an exported SavedModel. It reads JPEG, PNG, GIF (first frame) and BMP, and returns pixels as uint8,
RGB, upright.

A view is a window of the upright image, resized bilinearly without antialiasing. Of a JPEG, only
the part that the view needs is decoded: the blocks of its window, at a half, a quarter or an eighth
of the size if that is at least the size of the view. This also avoids most of the aliasing in large
photographs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from darkroom.input.graph.orientation import parse_orientation, undo_orientation
from darkroom.options.augmentation import Augmentation
from darkroom.options.input import CENTER_CROP, CENTER_SHARE, STRETCH

_SCALES = (1, 2, 4, 8)
# An image is cast to float32 before it is resized if it has at most this many times the pixels of a
# view, and at most this many pixels: more do not fit into the cache of a processor.
_CAST_RATIO, _CAST_PIXELS = 8, 600_000

# From int32 [2], the (height, width) of the upright image, to int32 [4]: top, left, height, width.
_Window = Callable[[tf.Tensor], tf.Tensor]


def decode_image(
    encoded: tf.Tensor,
    image_size: tuple[int, int],
    resize: str = STRETCH,
    *,
    shape: tf.Tensor | None = None,
    channels: tf.Tensor | None = None,
    scaled: bool = True,
    resized: bool = True,
) -> tf.Tensor:
    """Decodes an image, upright, as for evaluation and serving.

    Args:
        encoded: string [], the bytes of a JPEG, PNG, GIF or BMP file.
        image_size: (height, width) in pixels.
        resize: "stretch": the whole image; "center_crop": the largest window in the middle that has
            the aspect ratio of `image_size`, less an eighth of its sides.
        shape: int32 [2], (height, width) of an image that is known to be upright; else None.
        channels: int64 [], 1 or 3, if `encoded` is not a file but the pixels of that shape, a byte
            a value, row by row; else None.
        scaled: Decode JPEGs at a fraction of their size if that is large enough.
        resized: Resize the pixels; else return them as they were decoded.

    Returns:
        uint8 [height, width, 3], RGB.
    """
    window = functools.partial(_choose_center, image_size) if resize == CENTER_CROP else None
    pixels = _decode_window(encoded, image_size, window, shape, channels, scaled)
    return _resize(pixels, image_size) if resized else pixels


def decode_training_image(
    encoded: tf.Tensor,
    image_size: tuple[int, int],
    seed: tf.Tensor,
    augmentation: Augmentation,
    *,
    shape: tf.Tensor | None = None,
    channels: tf.Tensor | None = None,
    scaled: bool = True,
    resized: bool = True,
) -> tf.Tensor:
    """Decodes a random window of an image, with the areas and ratios of `augmentation`.

    Args:
        encoded: string [], the bytes of a JPEG, PNG, GIF or BMP file.
        image_size: (height, width) in pixels.
        seed: int64 [2]. Equal seeds give equal windows.
        augmentation: Its `crop_area` and `crop_ratio` are used.
        shape: int32 [2], (height, width) of an image that is known to be upright; else None.
        channels: int64 [], 1 or 3, if `encoded` is not a file but the pixels of that shape, a byte
            a value, row by row; else None.
        scaled: Decode JPEGs at a fraction of their size if that is large enough.
        resized: Resize the pixels; else return them as they were decoded.

    Returns:
        uint8 [height, width, 3], RGB.
    """
    window = functools.partial(_sample_window, seed, augmentation)
    pixels = _decode_window(encoded, image_size, window, shape, channels, scaled)
    return _resize(pixels, image_size) if resized else pixels


@functools.lru_cache(maxsize=64)
def make_decoder(
    image_size: tuple[int, int],
    resize: str,
    augmentation: Augmentation | None,
    scaled: bool,
    resized: bool,
) -> Any:
    """Returns `decode_training_image`, or without an augmentation `decode_image`, traced once.

    Its graph takes longer to build than the rest of a pipeline. Each split, and each epoch of a
    training, has a separate pipeline: they all share this function.

    Args:
        image_size: (height, width) in pixels.
        resize: As for `decode_image`.
        augmentation: The choice of the window; None: the whole image, or its middle.
        scaled: Decode JPEGs at a fraction of their size where that is enough.
        resized: Else the pixels are given as they were decoded.

    Returns:
        A function of `encoded`, `seed`, `shape` and `channels`; the last three may be None.
    """

    def decode(
        encoded: tf.Tensor,
        seed: tf.Tensor | None,
        shape: tf.Tensor | None,
        channels: tf.Tensor | None,
    ) -> tf.Tensor:
        decode = functools.partial(decode_image, resize=resize)
        if augmentation and seed is not None:
            decode = functools.partial(decode_training_image, seed=seed, augmentation=augmentation)
        return decode(
            encoded, image_size, shape=shape, channels=channels, scaled=scaled, resized=resized
        )

    return tf.function(decode, autograph=False)


def _decode_window(
    encoded: tf.Tensor,
    image_size: tuple[int, int],
    window: _Window | None,
    shape: tf.Tensor | None,
    channels: tf.Tensor | None,
    scaled: bool,
) -> tf.Tensor:
    """Returns uint8 [H, W, 3]: a window of the image, or all of it, at least as large as needed."""
    if shape is not None and channels is not None:
        return _cut_raw(encoded, window, shape, channels)

    def decode_jpeg() -> tf.Tensor:
        sides = image_size if scaled else None
        if shape is not None:
            return _decode_jpeg(encoded, window, shape, sides)
        orientation = parse_orientation(encoded)
        stored = tf.io.extract_jpeg_shape(encoded)[:2]
        return tf.cond(
            tf.equal(orientation, 1),
            lambda: _decode_jpeg(encoded, window, stored, sides),
            lambda: _decode_turned_jpeg(encoded, window, stored, sides, orientation),
        )

    def decode_other() -> tf.Tensor:
        pixels = tf.io.decode_image(encoded, channels=3, expand_animations=False)
        pixels = tf.ensure_shape(pixels, (None, None, 3))
        return _cut(pixels, window(tf.shape(pixels)[:2])) if window else pixels

    return tf.cond(tf.io.is_jpeg(encoded), decode_jpeg, decode_other)


def _cut_raw(
    encoded: tf.Tensor, window: _Window | None, shape: tf.Tensor, channels: tf.Tensor
) -> tf.Tensor:
    """Returns a window of an image that is stored as raw pixels."""
    stored = tf.concat((shape, (tf.cast(channels, tf.int32),)), axis=0)
    pixels = tf.reshape(tf.io.decode_raw(encoded, tf.uint8), stored)
    pixels = _cut(pixels, window(shape)) if window else pixels
    rgb = tf.concat((tf.shape(pixels)[:2], (3,)), axis=0)
    return tf.ensure_shape(tf.broadcast_to(pixels, rgb), (None, None, 3))


def _decode_jpeg(
    encoded: tf.Tensor, window: _Window | None, shape: tf.Tensor, sides: tuple[int, int] | None
) -> tf.Tensor:
    """Decodes the window of an upright JPEG, at the scale that `sides` need."""
    place = window(shape) if window else None

    def decode(scale: int) -> tf.Tensor:
        if place is None:
            return tf.io.decode_jpeg(encoded, channels=3, ratio=scale)
        return tf.io.decode_and_crop_jpeg(
            encoded, _scale_window(place, scale), channels=3, ratio=scale
        )

    return _decode_at_scale(decode, shape if place is None else place[2:], sides)[0]


def _decode_turned_jpeg(
    encoded: tf.Tensor,
    window: _Window | None,
    stored: tf.Tensor,
    sides: tuple[int, int] | None,
    orientation: tf.Tensor,
) -> tf.Tensor:
    """Does the same for a JPEG that must be turned first, so all of it is decoded."""
    shape = tf.where(orientation >= 5, stored[::-1], stored)
    place = window(shape) if window else None
    pixels, scale = _decode_at_scale(
        lambda scale: tf.io.decode_jpeg(encoded, channels=3, ratio=scale),
        shape if place is None else place[2:],
        sides,
    )
    upright = undo_orientation(pixels, orientation)
    return upright if place is None else _cut(upright, _scale_window(place, scale))


def _decode_at_scale(
    decode: Callable[[int], tf.Tensor], needed: tf.Tensor, sides: tuple[int, int] | None
) -> tuple[tf.Tensor, tf.Tensor | int]:
    """Calls `decode` with the largest divisor for which the needed part still covers `sides`.

    Returns:
        Its result, and the divisor.
    """
    if sides is None:
        return decode(1), 1
    fits = tf.reduce_min(needed // tf.constant(sides))
    branches: list[Any] = [functools.partial(decode, scale) for scale in _SCALES]
    index = tf.reduce_sum(tf.cast(fits >= tf.constant(_SCALES[1:]), tf.int32))
    return tf.switch_case(index, branches), tf.constant(_SCALES)[index]


def _scale_window(window: tf.Tensor, scale: tf.Tensor | int) -> tf.Tensor:
    return tf.maximum(window // scale, (0, 0, 1, 1))


def _cut(pixels: tf.Tensor, window: tf.Tensor) -> tf.Tensor:
    top, left, height, width = tf.unstack(window)
    return pixels[top : top + height, left : left + width]


def _choose_center(image_size: tuple[int, int], shape: tf.Tensor) -> tf.Tensor:
    # Whole numbers only: TensorFlow may reorder products of floats, differently in a model than in
    # an input pipeline, and half a pixel changes the window.
    wanted = tf.constant(image_size, tf.int64)
    sides = tf.cast(shape, tf.int64)
    # Whether the image is too wide, rather than too high, for the wanted aspect ratio.
    by_height = sides[0] * image_size[1] <= sides[1] * image_size[0]
    side, whole = tf.cond(by_height, lambda: (sides[0], wanted[0]), lambda: (sides[1], wanted[1]))
    share, parts = CENTER_SHARE
    rounded = (2 * share * wanted * side + parts * whole) // (2 * parts * whole)
    size = tf.cast(tf.maximum(rounded, 1), tf.int32)
    return tf.concat(((shape - size) // 2, size), axis=0)


def _sample_window(seed: tf.Tensor, augmentation: Augmentation, shape: tf.Tensor) -> tf.Tensor:
    begin, size, _ = tf.image.stateless_sample_distorted_bounding_box(
        tf.concat((shape, (3,)), axis=0),
        tf.zeros((1, 0, 4)),
        seed,
        min_object_covered=0.0,
        aspect_ratio_range=augmentation.crop_ratio,
        area_range=augmentation.crop_area,
        max_attempts=10,
        use_image_if_no_bounding_boxes=True,
    )
    return tf.concat((begin[:2], size[:2]), axis=0)


def _resize(pixels: tf.Tensor, image_size: tuple[int, int]) -> tf.Tensor:
    """Resizes bilinearly, without antialiasing."""
    most_cast = min(_CAST_RATIO * image_size[0] * image_size[1], _CAST_PIXELS)
    shape = tf.shape(pixels)

    def interpolate() -> tf.Tensor:
        # TensorFlow's kernel is slower for uint8 than for float32, by half. But a cast reads all
        # pixels of a large image, of which the kernel needs few.
        resized = tf.cond(
            shape[0] * shape[1] <= most_cast,
            lambda: tf.image.resize(tf.cast(pixels, tf.float32), image_size),
            lambda: tf.image.resize(pixels, image_size),
        )
        return tf.cast(resized + 0.5, tf.uint8)

    fits = tf.reduce_all(tf.equal(shape[:2], image_size))
    return tf.ensure_shape(tf.cond(fits, lambda: pixels, interpolate), (*image_size, 3))
