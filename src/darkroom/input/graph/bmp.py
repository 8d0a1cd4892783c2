"""BMPs in the graph: TensorFlow takes the numbers of a palette for levels of gray.

It also fails where bytes follow the pixels, and where the last row is not padded.
"""

from __future__ import annotations

import tensorflow as tf

from darkroom.input.graph.parts import cut_string, to_integers

_HEADERS = (40, 52, 56, 64, 108, 124)
_DEPTHS = (1, 4, 8, 24, 32)
_MAX_COLORS = 256


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
    is_known &= (header.width > 0) & (header.height > 0)
    is_known &= (header.bits > 8) | ((header.num_colors > 0) & (header.num_colors <= _MAX_COLORS))
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
    rows = _read_rows(encoded, header)
    return tf.cond(
        header.bits > 8,
        lambda: tf.reshape(rows, (header.height, header.width, -1))[..., 2::-1],
        lambda: _look_up(encoded, header, rows),
    )


def _read_rows(encoded: tf.Tensor, header: _Header) -> tf.Tensor:
    """Returns the bytes of the pixels, uint8 [H, bytes of a row], the upper row first."""
    used_bytes = (header.width * header.bits + 7) // 8
    row_bytes = (used_bytes + 3) // 4 * 4
    num_bytes = row_bytes * header.height
    data = cut_string(encoded, header.find_pixels(), num_bytes)
    # The last row may lack its padding.
    data = tf.strings.join((data, cut_string(b"\0\0\0", 0, row_bytes - used_bytes)))
    rows = tf.io.decode_raw(cut_string(data, 0, num_bytes), tf.uint8)
    rows = tf.reshape(rows, (header.height, row_bytes))[:, :used_bytes]
    return tf.cond(header.is_top_down, lambda: rows, lambda: tf.reverse(rows, (0,)))


def _look_up(encoded: tf.Tensor, header: _Header, rows: tf.Tensor) -> tf.Tensor:
    """Returns the colors, uint8 [H, W, 3], of pixels that are numbers in a palette.

    Args:
        encoded: string [], the bytes of the file.
        header: Its header, with at most 8 bits of a pixel.
        rows: uint8 [H, bytes of a row], which `_read_rows` returns.
    """
    bits = header.bits
    # The first of several pixels in a byte has the highest bits.
    shifts = tf.range(8 - bits, -1, -bits)
    mask = tf.bitwise.left_shift(1, bits) - 1
    numbers = tf.bitwise.right_shift(tf.cast(rows, tf.int32)[..., tf.newaxis], shifts) & mask
    numbers = tf.reshape(numbers, (header.height, -1))[:, : header.width]
    # Blue, green, red and an unused byte for each. What a palette lacks is black.
    palette = cut_string(encoded, header.end, 4 * header.num_colors)
    colors = tf.io.decode_raw(palette, tf.uint8, fixed_length=4 * _MAX_COLORS)
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
        fields = tf.unstack(to_integers(cut_string(encoded, 10, 40), 10, little_endian=True))
        self._pixels, self.num_bytes, self.width, height, kind, self.compression = fields[:6]
        self.height, self.is_top_down = tf.abs(height), height < 0
        self.bits = tf.bitwise.right_shift(kind, 16)
        colors = fields[9]
        self.num_colors = tf.where(tf.equal(colors, 0), tf.bitwise.left_shift(1, self.bits), colors)
        self.end = 14 + self.num_bytes

    def find_pixels(self) -> tf.Tensor:
        """Returns where the pixels begin. Some files name the place of their palette, or none."""
        palette_bytes = tf.where(self.bits > 8, 0, 4 * self.num_colors)
        is_behind = tf.equal(self._pixels, 0) | tf.equal(self._pixels, self.end)
        return tf.where(is_behind, self.end + palette_bytes, self._pixels)
