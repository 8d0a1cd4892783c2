"""Encoded bytes to pixels: the one way into a model, for training, evaluation and serving.

Everything here uses TensorFlow operations, so the same function runs in a tf.data pipeline and in
an exported SavedModel. It reads JPEG, PNG, GIF (first frame) and BMP, and returns pixels as uint8,
RGB, upright, on white. Of files that `describe_form` describes, they are not those of a conversion.

A view is a window of the upright image, resized bilinearly without antialiasing. Of a JPEG, only
the part that the view needs is decoded: the blocks of its window, at a half, a quarter or an eighth
of the size if that is at least the size of the view. This also avoids most of the aliasing in large
photographs.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from darkroom.input.graph.file_forms import decode_stored, describe_form
from darkroom.input.graph.orientation import (
    locate_upright,
    parse_orientation,
    to_float,
    turn_upright,
)
from darkroom.input.graph.profiles import (
    convert_display_p3,
    find_jpeg_profile,
    is_display_p3,
)
from darkroom.options.augmentation import Augmentation
from darkroom.options.input import CENTER_CROP, CENTER_SHARE, STRETCH
from darkroom.targets.geometry import Matrix, cut, scale

_SCALES = (1, 2, 4, 8)
# An image is cast to float32 before it is resized if it has at most this many times the pixels of a
# view, and at most this many pixels: more do not fit into the cache of a processor.
_CAST_RATIO, _CAST_PIXELS = 8, 600_000

# From int32 [2], the (height, width) of the upright image, to int32 [4]: top, left, height, width.
_Window = Callable[[tf.Tensor], tf.Tensor]


def view_image(
    encoded: tf.Tensor,
    image_size: tuple[int, int],
    resize: str = STRETCH,
    seed: tf.Tensor | None = None,
    augmentation: Augmentation | None = None,
    *,
    shape: tf.Tensor | None = None,
    channels: tf.Tensor | None = None,
    scaled: bool = True,
    resized: bool = True,
    located: bool = False,
) -> tuple[tf.Tensor, tf.Tensor | None]:
    """Decodes an image, upright, as for evaluation and serving; or a random window of it.

    Args:
        encoded: string [], the bytes of a JPEG, PNG, GIF or BMP file.
        image_size: (height, width) in pixels.
        resize: "stretch": the whole image; "center_crop": the largest window in the middle that has
            the aspect ratio of `image_size`, less an eighth of its sides. It is used without a
            seed.
        seed: int64 [2]. Equal seeds give equal windows. None: the whole image, or its middle.
        augmentation: Its `crop_area` and `crop_ratio` choose the window of a seed.
        shape: int32 [2], (height, width) of an image that is known to be upright; else None.
        channels: int64 [], 1 or 3, if `encoded` is not a file but the pixels of that shape, a byte
            a value, row by row; else None.
        scaled: Decode JPEGs at a fraction of their size if that is large enough.
        resized: Resize the pixels; else return them as they were decoded.
        located: Tell what was done to the pixels, for `locate_points`.

    Returns:
        uint8 [height, width, 3], RGB; what `locate_points` takes, or None if that is not asked for.
    """
    window: _Window | None = None
    if seed is not None and augmentation is not None:
        window = functools.partial(_sample_window, seed, augmentation)
    elif resize == CENTER_CROP:
        window = functools.partial(_choose_center, image_size)
    sides = image_size if scaled else None
    pixels, steps = _Decoder(encoded, window, sides, located).decode(shape, channels)
    return (_resize(pixels, image_size) if resized else pixels), steps


def locate_points(steps: tf.Tensor, image_size: tuple[int, int]) -> Matrix:
    """Returns where points of stored images are in their views.

    It is called for whole batches: image by image, it would take some percent of their decoding.

    Args:
        steps: int32 [..., 8], what was done to images: by what one was reduced; its EXIF
            orientation, which was undone; height and width then; the window: top, left, height and
            width.
        image_size: (height, width) of the views.

    Returns:
        A matrix of float64 [...].
    """
    divisor, orientation, *sides, top, left, height, width = tf.unstack(to_float(steps), axis=-1)
    matrix = scale(1 / divisor, 1 / divisor).then(locate_upright(orientation, *sides))
    matrix = matrix.then(cut(left, top))
    return matrix.then(scale(image_size[1] / width, image_size[0] / height))


def decode_file(
    encoded: tf.Tensor, image_size: tuple[int, int], resize: str = STRETCH
) -> tuple[tf.Tensor, tf.Tensor]:
    """Decodes an image as `view_image` does, if the pixels are those of a conversion.

    Args:
        encoded: See `view_image`, as for all arguments.
        image_size: See there.
        resize: See there.

    Returns:
        uint8 [height, width, 3], RGB, and an empty text; or zeros, and what `describe_form` says.
    """
    form = describe_form(encoded)
    decode = make_decoder(image_size, resize, None, scaled=True, resized=True)
    pixels = tf.cond(
        tf.equal(form, ""),
        lambda: decode(encoded, None, None, None)[0],
        lambda: tf.zeros((*image_size, 3), tf.uint8),
    )
    return pixels, form


@functools.lru_cache(maxsize=64)
def make_decoder(
    image_size: tuple[int, int],
    resize: str,
    augmentation: Augmentation | None,
    scaled: bool,
    resized: bool,
    located: bool = False,
) -> Any:
    """Returns `view_image` with these arguments, traced once.

    Its graph takes longer to build than the rest of a pipeline. Each split, and each epoch of a
    training, has a separate pipeline: they all share this function.

    Args:
        image_size: (height, width) in pixels.
        resize: As for `view_image`.
        augmentation: The choice of the window; None: the whole image, or its middle.
        scaled: Decode JPEGs at a fraction of their size where that is enough.
        resized: Else the pixels are given as they were decoded.
        located: Tell what was done to the pixels, for `locate_points`.

    Returns:
        A function of `encoded`, `seed`, `shape` and `channels`; the last three may be None.
    """

    def decode(
        encoded: tf.Tensor,
        seed: tf.Tensor | None,
        shape: tf.Tensor | None,
        channels: tf.Tensor | None,
    ) -> tuple[tf.Tensor, tf.Tensor | None]:
        return view_image(
            encoded,
            image_size,
            resize,
            seed,
            augmentation,
            shape=shape,
            channels=channels,
            scaled=scaled,
            resized=resized,
            located=located,
        )

    return tf.function(decode, autograph=False)


@dataclasses.dataclass(frozen=True)
class _Decoder:
    """Decodes a window of an image, or all of it, at least as large as needed.

    Attributes:
        encoded: string [].
        window: The window; None for all of it.
        sides: (height, width) that are needed, if a JPEG may be decoded at a fraction of its size.
        located: Tell what was done to the pixels, for `locate_points`.
    """

    encoded: tf.Tensor
    window: _Window | None
    sides: tuple[int, int] | None
    located: bool

    def decode(
        self, shape: tf.Tensor | None, channels: tf.Tensor | None
    ) -> tuple[tf.Tensor, tf.Tensor | None]:
        """Decodes the image.

        Args:
            shape: int32 [2], (height, width) of an image that a conversion stored; None for a file,
                which may have to be turned first.
            channels: int64 [], if the bytes are the pixels of that shape; else None.

        Returns:
            uint8 [H, W, 3], and what `locate_points` takes, if `located`.
        """
        if shape is not None and channels is not None:
            return self._cut_raw(shape, channels)
        result: tuple[tf.Tensor, tf.Tensor | None] = tf.cond(
            tf.io.is_jpeg(self.encoded),
            lambda: self._decode_jpeg(shape),
            lambda: self._decode_other(shape),
        )
        return result

    def _cut_raw(self, shape: tf.Tensor, channels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor | None]:
        stored = tf.concat((shape, (tf.cast(channels, tf.int32),)), axis=0)
        pixels = tf.reshape(tf.io.decode_raw(self.encoded, tf.uint8), stored)
        pixels, steps = self._cut(pixels, self.window(shape) if self.window else None)
        rgb = tf.concat((tf.shape(pixels)[:2], (3,)), axis=0)
        return tf.ensure_shape(tf.broadcast_to(pixels, rgb), (None, None, 3)), steps

    def _decode_other(self, shape: tf.Tensor | None) -> tuple[tf.Tensor, tf.Tensor | None]:
        """Decodes all of an image that is not a JPEG, and cuts the window out.

        One with a shape is a plain PNG, as a conversion stores it: opaque, upright and of 8 bits.
        For it, TensorFlow's operation is enough.
        """
        orientation = tf.constant(1)
        if shape is None:
            stored, orientation = decode_stored(self.encoded)
            pixels = turn_upright(stored, orientation)
        else:
            pixels = tf.io.decode_image(self.encoded, channels=3, expand_animations=False)
            pixels = tf.ensure_shape(pixels, (None, None, 3))
        window = self.window(tf.shape(pixels)[:2]) if self.window else None
        return self._cut(pixels, window, orientation=orientation)

    def _decode_jpeg(self, shape: tf.Tensor | None) -> tuple[tf.Tensor, tf.Tensor | None]:
        if shape is not None:
            return self._decode_upright(shape)
        orientation = parse_orientation(self.encoded)
        stored = tf.io.extract_jpeg_shape(self.encoded)[:2]
        result: tuple[tf.Tensor, tf.Tensor | None] = tf.cond(
            tf.equal(orientation, 1),
            lambda: self._decode_upright(stored),
            lambda: self._decode_turned(stored, orientation),
        )
        return result

    def _decode_upright(self, shape: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor | None]:
        """Decodes the window of a JPEG that needs no turn.

        The window is chosen in the full image, of this shape, so the scale does not change it.
        """
        place = self.window(shape) if self.window else None

        def decode(divisor: int) -> tf.Tensor:
            if place is None:
                return tf.io.decode_jpeg(self.encoded, channels=3, ratio=divisor)
            return tf.io.decode_and_crop_jpeg(
                self.encoded, _scale_window(place, divisor), channels=3, ratio=divisor
            )

        needed = shape if place is None else place[2:]
        pixels, divisor = _decode_at_scale(decode, needed, self.sides)
        if not self.located:
            return pixels, None
        window = None if place is None else _scale_window(place, divisor)
        return pixels, _list_steps(pixels, window, divisor)

    def _decode_turned(
        self, stored: tf.Tensor, orientation: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor | None]:
        """Decodes a JPEG that must be turned first, so all of it is decoded."""
        shape = tf.where(orientation >= 5, stored[::-1], stored)
        place = self.window(shape) if self.window else None
        pixels, divisor = _decode_at_scale(
            lambda divisor: tf.io.decode_jpeg(self.encoded, channels=3, ratio=divisor),
            shape if place is None else place[2:],
            self.sides,
        )
        is_wide = is_display_p3(find_jpeg_profile(self.encoded))
        pixels = tf.cond(is_wide, lambda: convert_display_p3(pixels), lambda: pixels)
        upright = turn_upright(pixels, orientation)
        window = None if place is None else _scale_window(place, divisor)
        return self._cut(upright, window, divisor, orientation)

    def _cut(
        self,
        upright: tf.Tensor,
        window: tf.Tensor | None,
        divisor: tf.Tensor | int = 1,
        orientation: tf.Tensor | int = 1,
    ) -> tuple[tf.Tensor, tf.Tensor | None]:
        pixels = upright
        if window is not None:
            top, left, height, width = tf.unstack(window)
            pixels = upright[top : top + height, left : left + width]
        if not self.located:
            return pixels, None
        sides = tf.shape(upright)[:2]
        return pixels, _list_steps(pixels, window, divisor, orientation, sides)


def _list_steps(
    pixels: tf.Tensor,
    window: tf.Tensor | None,
    divisor: tf.Tensor | int,
    orientation: tf.Tensor | int = 1,
    sides: tf.Tensor | tuple[int, int] = (0, 0),
) -> tf.Tensor:
    """Returns what was done to an image, int32 [8]; see `locate_points`.

    Args:
        pixels: What is left of it.
        window: int32 [4]; None for all of it.
        divisor: By what it was reduced.
        orientation: What was undone.
        sides: (height, width) of the upright image; any where it was not turned.
    """
    if window is None:
        window = tf.concat(((0, 0), tf.shape(pixels)[:2]), axis=0)
    return tf.concat((tf.stack((divisor, orientation)), sides, window), axis=0)


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


def _choose_center(image_size: tuple[int, int], shape: tf.Tensor) -> tf.Tensor:
    """Returns the window of "center_crop", int32 [4], in an upright image of a shape, int32 [2]."""
    # Whole numbers only: TensorFlow may reorder products of floats, differently in a model than in
    # an input pipeline, and half a pixel changes the window.
    wanted = tf.constant(image_size, tf.int64)
    sides = tf.cast(shape, tf.int64)
    # Whether the image is too wide, rather than too high, for the wanted aspect ratio.
    by_height = sides[0] * image_size[1] <= sides[1] * image_size[0]
    side, whole = tf.cond(by_height, lambda: (sides[0], wanted[0]), lambda: (sides[1], wanted[1]))
    # This share of the largest window, rounded half up.
    share, parts = CENTER_SHARE
    rounded = (2 * share * wanted * side + parts * whole) // (2 * parts * whole)
    size = tf.cast(tf.maximum(rounded, 1), tf.int32)
    return tf.concat(((shape - size) // 2, size), axis=0)


def _sample_window(seed: tf.Tensor, augmentation: Augmentation, shape: tf.Tensor) -> tf.Tensor:
    """Returns a random window, int32 [4], in an upright image of a shape, int32 [2]."""
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
