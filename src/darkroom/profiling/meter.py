"""How long a training waits for its input, measured where batches are handed over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf


@dataclass(frozen=True)
class InputTiming:
    """What was measured of a training's input.

    Attributes:
        seconds: From the first batch to the request that found no more, or to the last batch.
        waited_seconds: Of these, in which the training waited for a batch.
        num_batches: Batches in this time; the first one, for which a pipeline has to start, is not
            counted.
        num_images: Images in them.
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
        """Images trained on in a second."""
        return self.num_images / self.seconds if self.seconds else 0.0

    def __add__(self, other: InputTiming) -> InputTiming:
        return InputTiming(
            self.seconds + other.seconds,
            self.waited_seconds + other.waited_seconds,
            self.num_batches + other.num_batches,
            self.num_images + other.num_images,
        )


class InputMeter:
    """Measures the waiting for batches, whoever takes them: `fit`, a loop, a graph.

    The clock is read by graph operations, before a batch is asked for and when it is there, which
    takes half a millisecond of a slow core a batch. Where somebody else takes batches ahead of the
    training, as MirroredStrategy does for its devices, that one's waiting is measured.

    Args:
        clock: Returns seconds, float64 [], by a graph operation.
    """

    def __init__(self, clock: Callable[[], tf.Tensor] = tf.timestamp) -> None:
        self._clock = clock
        with tf.device("/CPU:0"):
            # First and last moment, seconds waited, batches, images.
            self._state = tf.Variable(tf.zeros(5, tf.float64), trainable=False)

    def watch(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        """Returns the same batches, measured while they are taken.

        Args:
            batches: (images, labels), prepared ahead of whoever takes them.
        """

        def ask(_: tf.Tensor) -> tf.Tensor:
            return self._clock()

        def note(asked: tf.Tensor, batch: tuple[Any, ...]) -> tuple[Any, ...]:
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
        # A zip asks its parts in their order, so the clock is read before a batch is waited for.
        asked = tf.data.Dataset.counter().map(plain(ask))
        watched = tf.data.Dataset.zip((asked, batches)).map(plain(note))
        settings = tf.data.Options()
        # Else a thread would take batches ahead, and its waiting would be measured.
        settings.experimental_optimization.inject_prefetch = False
        return watched.with_options(settings)

    def take(self) -> InputTiming:
        """Returns what was measured since the last call, and begins anew."""
        first, last, waited, batches, images = self._state.numpy().tolist()
        self._state.assign(tf.zeros(5, tf.float64))
        return InputTiming(last - first, waited, int(batches), int(images))
