"""GIFs in the graph: TensorFlow makes transparent pixels black, or shows their hidden color."""

from __future__ import annotations

import tensorflow as tf

from darkroom.input.graph.parts import cut_string, overwrite, to_numbers, trace_once

_HEADER_BYTES = 13
_EXTENSION, _FRAME, _CONTROL = 0x21, 0x2C, 0xF9
# Blocks before the first frame. Real files have a few; this limits hostile ones.
_MAX_BLOCKS = 1 << 14
_WHITE = b"\xff\xff\xff"
# The end of a frame and of the file, which a file may lack.
_END = b"\0;"


def describe_gif(encoded: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Describes a GIF that is not decoded as by a conversion; an empty text for all others.

    Args:
        encoded: string [], bytes that begin as a GIF.

    Returns:
        The description, string []; the number of pixels, int64 [].
    """
    frame, _ = _find_frame(encoded)
    columns, rows = _read_shorts(encoded, 6, 2)
    left, top, width, height = _read_shorts(encoded, frame + 1, 4)
    is_whole = tf.equal(left + top, 0) & (width >= columns) & (height >= rows)
    has_palette = (_read_byte(encoded, 10) >= 0x80) | (_read_byte(encoded, frame + 9) >= 0x80)
    form = tf.where(is_whole, "", "a GIF whose first frame is smaller than the image")
    form = tf.where(has_palette, form, "a GIF without a palette")
    # Where there is no frame, it is damaged.
    return tf.where(frame > 0, form, ""), tf.cast(width, tf.int64) * tf.cast(height, tf.int64)


def decode_gif(encoded: tf.Tensor) -> tf.Tensor:
    """Decodes the first frame of a GIF, on white.

    Args:
        encoded: string [], its bytes.

    Returns:
        uint8 [H, W, 3], RGB.
    """
    frame, control = _find_frame(encoded)
    flags, _, _, number = tf.unstack(to_numbers(cut_string(encoded, control + 3, 4), 4))
    is_transparent = (control > 0) & tf.equal(flags & 1, 1)
    opaque = tf.cond(
        is_transparent, lambda: _paint(encoded, frame, control, number), lambda: encoded
    )
    whole = tf.strings.join((opaque, _END))
    return tf.io.decode_image(whole, channels=3, expand_animations=False)


def _paint(
    encoded: tf.Tensor, frame: tf.Tensor, control: tf.Tensor, number: tf.Tensor
) -> tf.Tensor:
    """Returns a GIF whose transparent color is white, and not transparent."""
    shared = _read_byte(encoded, 10)
    own = _read_byte(encoded, frame + 9)
    has_own = own >= 0x80
    palette = tf.where(has_own, frame + 10, _HEADER_BYTES)
    num_colors = tf.bitwise.left_shift(2, tf.where(has_own, own, shared) & 7)
    # No pixel has a color that is not in the palette.
    color = tf.where(number < num_colors, _WHITE, b"")
    return overwrite(overwrite(encoded, palette + 3 * number, color), control + 3, b"\0")


@trace_once
def _find_frame(encoded: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns where the first frame begins, and the block that controls it; 0: there is none."""
    flags = _read_byte(encoded, 10)
    palette = tf.where(flags >= 0x80, tf.bitwise.left_shift(6, flags & 7), 0)

    def is_walking(
        position: tf.Tensor, control: tf.Tensor, frame: tf.Tensor, _: tf.Tensor
    ) -> tf.Tensor:
        return (position > 0) & tf.equal(frame, 0)

    def step(
        position: tf.Tensor, control: tf.Tensor, _: tf.Tensor, is_inside: tf.Tensor
    ) -> tuple[tf.Tensor, ...]:
        """Looks at one block, or at one part of an extension; returns the state for the next.

        The position is 0 when the walk is over: at a frame, or where no block begins.
        """
        first, second = tf.unstack(to_numbers(cut_string(encoded, position, 2), 2))
        # An extension is a name and parts; each part begins with its length.
        begins = ~is_inside & tf.equal(first, _EXTENSION)
        frame = tf.where(~is_inside & tf.equal(first, _FRAME), position, 0)
        control = tf.where(begins & tf.equal(second, _CONTROL), position, control)
        following = tf.where(is_inside, position + 1 + first, tf.where(begins, position + 2, 0))
        return following, control, frame, begins | (is_inside & (first > 0))

    start = (_HEADER_BYTES + palette, tf.constant(0), tf.constant(0), tf.constant(False))
    _, control, frame, _ = tf.while_loop(is_walking, step, start, maximum_iterations=_MAX_BLOCKS)
    return frame, control


def _read_byte(encoded: tf.Tensor, position: tf.Tensor | int) -> tf.Tensor:
    return to_numbers(cut_string(encoded, position, 1), 1)[0]


def _read_shorts(encoded: tf.Tensor, position: tf.Tensor | int, count: int) -> list[tf.Tensor]:
    data = cut_string(encoded, position, 2 * count)
    numbers = tf.io.decode_raw(data, tf.uint16, fixed_length=2 * count)
    return list(tf.unstack(tf.cast(numbers, tf.int32)))
