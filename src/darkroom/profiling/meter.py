"""Measures how long a training waits for its input, where it takes the batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf


@dataclass(frozen=True)
class InputTiming:
    """Measurements of a training's input.

    Attributes:
        seconds: Time from the first batch to the last one.
        waited_seconds: The part of this time in which the training waited for a batch.
        num_batches: Number of batches in this time. The first batch is not counted, because the
            pipeline has to start for it.
        num_images: Number of images in these batches.
    """

    seconds: float = 0.0
    waited_seconds: float = 0.0
    num_batches: int = 0
    num_images: int = 0

    @property
    def waiting_share(self) -> float:
        """Share of the time in which the training waited for input, 0 to 1."""
        return min(1.0, self.waited_seconds / self.seconds) if self.seconds else 0.0

    @property
    def images_per_second(self) -> float:
        """Images per second that the training took."""
        return self.num_images / self.seconds if self.seconds else 0.0

    def __add__(self, other: InputTiming) -> InputTiming:
        return InputTiming(
            self.seconds + other.seconds,
            self.waited_seconds + other.waited_seconds,
            self.num_batches + other.num_batches,
            self.num_images + other.num_images,
        )


class InputMeter:
    """Measures the time spent waiting for batches, in `fit`, in a loop or in a graph.

    Graph operations read the clock before and after each batch, which takes half a millisecond a
    batch on a slow core. If something takes batches ahead of the training, as MirroredStrategy does
    for its devices, its waiting is measured instead.

    Args:
        clock: Returns seconds, float64 [], by a graph operation.
    """

    def __init__(self, clock: Callable[[], tf.Tensor] = tf.timestamp) -> None:
        self._clock = clock
        with tf.device("/CPU:0"):
            # First and last moment, seconds waited, batches, images.
            self._state = tf.Variable(tf.zeros(5, tf.float64), trainable=False)

    def watch(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        """Returns the same batches, and measures while they are taken.

        Args:
            batches: (images, labels).
        """

        def ask(_: tf.Tensor) -> tf.Tensor:
            return self._clock()

        def note(asked: tf.Tensor, batch: tuple[Any, ...]) -> tuple[Any, ...]:
            """Returns the batch once the state has counted it; `asked` is when it was asked for."""
            now, state = self._clock(), self._state.read_value()
            is_first = tf.equal(state[0], 0)
            more = tf.stack((now - asked, 1.0, tf.cast(tf.shape(batch[0])[0], tf.float64)))
            first = tf.where(is_first, now, state[0])
            counts = tf.where(is_first, tf.zeros(3, tf.float64), state[2:] + more)
            with tf.control_dependencies(
                [self._state.assign(tf.concat(([first, now], counts), 0))]
            ):
                same: tuple[Any, ...] = tf.nest.map_structure(tf.identity, batch)
            return same

        plain = tf.autograph.experimental.do_not_convert
        # A zip asks its parts in order, so the clock is read before a batch is requested.
        asked = tf.data.Dataset.counter().map(plain(ask))
        watched = tf.data.Dataset.zip((asked, batches)).map(plain(note))
        settings = tf.data.Options()
        # Otherwise a thread would take batches ahead, and its waiting would be measured.
        settings.experimental_optimization.inject_prefetch = False
        return watched.with_options(settings)

    def take(self) -> InputTiming:
        """Returns the measurements since the last call, and starts again."""
        first, last, waited, batches, images = self._state.numpy().tolist()
        self._state.assign(tf.zeros(5, tf.float64))
        return InputTiming(last - first, waited, int(batches), int(images))
