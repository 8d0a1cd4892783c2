"""An accelerator that is a wait: how much of the time it is busy."""

from __future__ import annotations

import time

import keras
import numpy as np
import tensorflow as tf

_STEPS = 500


def run_loop(batches: tf.data.Dataset, step: float) -> float:
    """Returns the share of the time in which a step was running, the first one left out."""
    iterator, busy, started = iter(batches), 0.0, 0.0
    for number in range(_STEPS + 1):
        next(iterator)
        if number == 1:
            busy, started = 0.0, time.perf_counter()
        begun = time.perf_counter()
        time.sleep(step)
        busy += time.perf_counter() - begun
    return busy / (time.perf_counter() - started)


class _Sleeper(keras.Model):
    """A model whose step is a wait, as for an accelerator."""

    def __init__(self, step: float) -> None:
        super().__init__()
        self._step = step
        self.times: list[tuple[float, float]] = []

    def train_step(self, data: tuple[tf.Tensor, tf.Tensor]) -> dict[str, tf.Tensor]:
        def wait(_: tf.Tensor) -> np.float32:
            begun = time.perf_counter()
            time.sleep(self._step)
            self.times.append((begun, time.perf_counter()))
            return np.float32(0)

        return {"loss": tf.numpy_function(wait, [data[1]], tf.float32)}


def run_fit(batches: tf.data.Dataset, step: float) -> float:
    """Returns the same share when `fit` takes the batches."""
    model = _Sleeper(step)
    model.compile()
    model.fit(batches, steps_per_epoch=_STEPS + 1, verbose=0)
    times = model.times[1:]
    return sum(end - begun for begun, end in times) / (times[-1][1] - times[0][0])
