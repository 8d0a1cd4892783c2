"""A simulated accelerator that only waits: how much of the time it is busy.

It consumes a share of what the pipeline can deliver. Other work on the machine comes and goes
within seconds, so the pipeline's rate is measured again before every block of steps.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

# Blocks of steps. The first steps of each block take no time, so that they empty the pipeline's
# buffers; one more step does not count.
_BLOCKS, _EMPTYING, _STEPS = 10, 15, 50
_BLOCK_STEPS = _EMPTYING + 1 + _STEPS


class Accelerator:
    """Does steps one after the other; each step is a sleep.

    Args:
        measure_step: Returns the seconds that a step takes in the block that begins.
        ahead: Whether `give` returns at once, as with a GPU that queues work: one step runs and the
            next one waits. Otherwise it returns when the step is done, as when every loss is read.
    """

    def __init__(self, measure_step: Callable[[], float], ahead: bool) -> None:
        self._measure_step = measure_step
        self._ahead = ahead
        self._step = 0.0
        self._given: queue.Queue[bool] = queue.Queue(1)
        self._times: list[tuple[float, float]] = []
        self._counted: list[tuple[float, float]] = []
        threading.Thread(target=self._run, daemon=True).start()

    def begin(self) -> None:
        """Begins a block of steps."""
        self._times.clear()
        self._step = self._measure_step()

    def give(self, _: Any) -> np.float32:
        """Starts the step on a batch; returns a loss."""
        if self._ahead:
            self._given.put(True)
        else:
            self._do_step()
        return np.float32(0)

    def end(self) -> None:
        """Ends the block once its steps are done."""
        self._given.join()
        counted = self._times[_EMPTYING + 1 : _BLOCK_STEPS]
        busy = sum(end - begun for begun, end in counted)
        self._counted.append((busy, counted[-1][1] - counted[0][0]))

    def stop(self) -> float:
        """Returns the share of the blocks' time in which a step ran."""
        self._given.put(False)
        busy, whole = np.sum(self._counted, axis=0)
        return float(busy / whole)

    def _run(self) -> None:
        while self._given.get():
            self._do_step()
            self._given.task_done()

    def _do_step(self) -> None:
        begun = time.perf_counter()
        if len(self._times) >= _EMPTYING:
            time.sleep(self._step)
        self._times.append((begun, time.perf_counter()))


def run_loop(batches: tf.data.Dataset, accelerator: Accelerator) -> float:
    """Returns how busy it is when a Python loop gives it batches from an endless dataset."""
    iterator = iter(batches)
    for _ in range(_BLOCKS):
        accelerator.begin()
        for _ in range(_BLOCK_STEPS):
            accelerator.give(next(iterator)[1])
        accelerator.end()
    return accelerator.stop()


def run_fit(
    batches: tf.data.Dataset, accelerator: Accelerator, steps_per_execution: int = 1
) -> float:
    """Returns how busy it is with `fit`, which runs some steps in each call of TensorFlow."""
    model = _Model(accelerator)
    model.compile(steps_per_execution=steps_per_execution)
    model.fit(
        batches,
        epochs=_BLOCKS,
        steps_per_epoch=math.ceil(_BLOCK_STEPS / steps_per_execution) * steps_per_execution,
        callbacks=[
            keras.callbacks.LambdaCallback(
                on_epoch_begin=lambda epoch, logs: accelerator.begin(),
                on_epoch_end=lambda epoch, logs: accelerator.end(),
            )
        ],
        verbose=0,
    )
    return accelerator.stop()


class _Model(keras.Model):
    """A model that leaves its training step to an accelerator."""

    def __init__(self, accelerator: Accelerator) -> None:
        super().__init__()
        self._accelerator = accelerator

    def train_step(self, data: tuple[tf.Tensor, tf.Tensor]) -> dict[str, tf.Tensor]:
        return {"loss": tf.numpy_function(self._accelerator.give, [data[1]], tf.float32)}
