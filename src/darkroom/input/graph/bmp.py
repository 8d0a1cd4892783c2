"""BMPs in the graph: TensorFlow takes the numbers of a palette for levels of gray."""

from __future__ import annotations

import tensorflow as tf

from darkroom.input.graph.parts import cut, to_integers

_HEADERS = (40, 52, 56, 64, 108, 124)
_DEPTHS = (1, 4, 8, 24, 32)
_PALETTE_BYTES = 4 * 256


def describe_bmp(encoded: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Describes a BMP that is not decoded here; an empty text for all others.

    Args:
        encoded: string [], bytes that begin as a BMP.

    Returns:
        The description, string []; the number of pixels, int64 [].
    """
    header = _Header(encoded)
    is_known = tf.reduce_any(tf.equal(header.num_bytes, _HEADERS))
    is_known &= tf.reduce_any(tf.equal(header.bits, _DEPTHS)) & tf.equal(header.compression, 0)
    form = tf.where(is_known, "", "a BMP that is compressed, or of a rare kind")
    return form, tf.cast(header.height, tf.int64) * tf.cast(header.width, tf.int64)


def decode_bmp(encoded: tf.Tensor) -> tf.Tensor:
    """Decodes a BMP of a kind that has no description.

    Args:
        encoded: string [], its bytes.

    Returns:
        uint8 [H, W, 3], RGB.
    """
    header = _Header(encoded)
    return tf.cond(
        header.bits > 8,
        lambda: tf.io.decode_bmp(encoded)[..., :3],
        lambda: _decode_palette(encoded, header),
    )


def _decode_palette(encoded: tf.Tensor, header: _Header) -> tf.Tensor:
    width, height, bits = header.width, header.height, header.bits
    row_bytes = (width * bits + 31) // 32 * 4
    data = tf.strings.substr(encoded, header.find_pixels(), row_bytes * height)
    rows = tf.reshape(tf.io.decode_raw(data, tf.uint8), (height, row_bytes, 1))
    # The first of several pixels in a byte has the highest bits.
    shifts = tf.range(8 - bits, -1, -bits)
    mask = tf.bitwise.left_shift(1, bits) - 1
    numbers = tf.bitwise.right_shift(tf.cast(rows, tf.int32), shifts) & mask
    numbers = tf.reshape(numbers, (height, -1))[:, :width]
    numbers = tf.cond(header.is_top_down, lambda: numbers, lambda: tf.reverse(numbers, (0,)))
    palette = cut(encoded, header.end, 4 * tf.minimum(header.num_colors, 256))
    colors = tf.io.decode_raw(palette, tf.uint8, fixed_length=_PALETTE_BYTES)
    return tf.gather(tf.reshape(colors, (-1, 4))[:, 2::-1], numbers)


class _Header:
    """The header of a BMP.

    Attributes:
        num_bytes: Its size; all are int32 [].
        width: Width of the image.
        height: Its height.
        is_top_down: Whether the first row is the upper one, bool [].
        bits: Bits of a pixel.
        compression: How pixels are compressed; 0: not at all.
        num_colors: Colors in the palette.
        end: Where the palette begins.
    """

    def __init__(self, encoded: tf.Tensor) -> None:
        fields = tf.unstack(to_integers(cut(encoded, 10, 40), 10, little_endian=True))
        self._pixels, self.num_bytes, self.width, height, kind, self.compression = fields[:6]
        self.height, self.is_top_down = tf.abs(height), height < 0
        self.bits = tf.bitwise.right_shift(kind, 16)
        colors = fields[9]
        self.num_colors = tf.where(tf.equal(colors, 0), tf.bitwise.left_shift(1, self.bits), colors)
        self.end = 14 + self.num_bytes

    def find_pixels(self) -> tf.Tensor:
        """Returns where the pixels begin. Some files name the place of their palette."""
        is_palette = tf.equal(self._pixels, self.end)
        return self._pixels + tf.where(is_palette, 4 * self.num_colors, 0)
