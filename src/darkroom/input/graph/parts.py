"""Parts of the bytes of a file, by graph operations."""

from __future__ import annotations

import functools

import tensorflow as tf

# Tracing takes most of the time that opens images without a conversion, so parts that several
# graphs need are traced once.
trace_once = functools.partial(
    tf.function, input_signature=[tf.TensorSpec([], tf.string)], autograph=False
)


def cut_string(data: tf.Tensor, position: tf.Tensor | int, count: tf.Tensor | int) -> tf.Tensor:
    """Returns the part of a string that exists. tf.strings.substr fails beyond the end."""
    return tf.strings.substr(data, tf.minimum(position, tf.strings.length(data)), count)


def overwrite(data: tf.Tensor, position: tf.Tensor, text: tf.Tensor) -> tf.Tensor:
    """Returns a string with other bytes from a position on."""
    size = tf.strings.length(data)
    behind = cut_string(data, position + tf.strings.length(text), size)
    return tf.strings.join((cut_string(data, 0, position), text, behind))


def split(data: tf.Tensor, name: bytes, most: int = -1) -> tf.Tensor:
    """Returns what is before, between and behind the places where a name is, string [N].

    Args:
        data: string [].
        name: The bytes that are looked for.
        most: How many places count; -1: all.
    """
    # tf.strings.split takes half as long again, because it makes a ragged tensor.
    return tf.raw_ops.StringSplitV2(input=data[tf.newaxis], sep=name, maxsplit=most).values


def contains(data: tf.Tensor, name: bytes) -> tf.Tensor:
    """Tells whether a name is anywhere in a string."""
    return tf.size(split(data, name, 1)) > 1


def find_last(parts: tf.Tensor, pattern: str) -> tf.Tensor:
    """Returns the number of the last part that a pattern fits, but the first part; 0: none."""
    fits = tf.strings.regex_full_match(parts[1:], pattern)
    return tf.reduce_max(tf.concat(((0,), tf.where(fits, tf.range(1, tf.size(parts)), 0)), 0))


def to_numbers(data: tf.Tensor, count: int | None = None) -> tf.Tensor:
    """Returns the bytes of a string as int32. A count cuts them, or adds zeros at the end."""
    return tf.cast(tf.io.decode_raw(data, tf.uint8, fixed_length=count), tf.int32)


def to_integers(data: tf.Tensor, count: int, *, little_endian: bool) -> tf.Tensor:
    """Returns the first numbers of 4 bytes, int32 [count]; zeros where the string has ended."""
    return tf.io.decode_raw(data, tf.int32, little_endian, fixed_length=4 * count)
