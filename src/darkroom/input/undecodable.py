"""Which images TensorFlow cannot decode: its own error names none."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from darkroom.input.graph.decode import view_image
from darkroom.input.source import LabeledImage
from darkroom.runtime.machine import count_cores


def find_undecodable(
    elements: tf.data.Dataset, count: int, parse: Callable[[tf.Tensor], LabeledImage]
) -> list[int]:
    """Decodes images completely, and returns the numbers of those that cannot be decoded.

    Args:
        elements: The elements of a source.
        count: How many they are.
        parse: Returns the image of an element.
    """

    def decode(number: tf.Tensor, element: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        image = parse(element)
        pixels, _ = view_image(
            image.encoded,
            (1, 1),
            shape=image.shape,
            channels=image.channels,
            scaled=False,
            resized=False,
        )
        # TensorFlow leaves out what no result needs.
        return number, tf.reduce_max(pixels)

    decoded = elements.enumerate().map(
        tf.autograph.experimental.do_not_convert(decode),
        num_parallel_calls=count_cores(),
        deterministic=True,
    )
    # An image that cannot be decoded is left out.
    sound = {int(number) for number, _ in decoded.ignore_errors().as_numpy_iterator()}
    return [number for number in range(count) if number not in sound]
