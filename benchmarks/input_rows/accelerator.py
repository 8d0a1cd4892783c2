"""An accelerator that is a wait: how much of the time it is busy."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

_STEPS = 500

Times = list[tuple[float, float]]


def run_loop(batches: tf.data.Dataset, step: float, steps_per_execution: int) -> float:
    """Returns the share of the time in which a step was running, the first one left out.

    Args:
        batches: (images, labels), without end.
        step: Seconds that a step takes.
        steps_per_execution: Steps that one call of TensorFlow does; 1: a loop in Python.
    """
    times: Times = []
    wait = _make_step(step, times)
    iterator = iter(batches)

    @tf.function
    def execute() -> None:
        for _ in tf.range(steps_per_execution):
            _, labels = next(iterator)
            tf.numpy_function(wait, [labels], tf.float32)

    while len(times) <= _STEPS:
        if steps_per_execution > 1:
            execute()
        else:
            wait(next(iterator)[1])
    return _measure(times)


def run_fit(batches: tf.data.Dataset, step: float, steps_per_execution: int) -> float:
    """Returns the same share when `fit` takes the batches."""
    times: Times = []
    model = _Sleeper(_make_step(step, times))
    model.compile(steps_per_execution=steps_per_execution)
    model.fit(batches, steps_per_epoch=_STEPS + steps_per_execution, verbose=0)
    return _measure(times)


class _Sleeper(keras.Model):
    """A model whose step is a wait, as for an accelerator."""

    def __init__(self, wait: Callable[[Any], np.float32]) -> None:
        super().__init__()
        self._wait = wait

    def train_step(self, data: tuple[tf.Tensor, tf.Tensor]) -> dict[str, tf.Tensor]:
        return {"loss": tf.numpy_function(self._wait, [data[1]], tf.float32)}


def _make_step(step: float, times: Times) -> Callable[[Any], np.float32]:
    """Returns what sleeps for a step, and notes when it began and ended."""

    def wait(_: Any) -> np.float32:
        begun = time.perf_counter()
        time.sleep(step)
        times.append((begun, time.perf_counter()))
        return np.float32(0)

    return wait


def _measure(times: Times) -> float:
    counted = times[1 : _STEPS + 1]
    return sum(end - begun for begun, end in counted) / (counted[-1][1] - counted[0][0])
