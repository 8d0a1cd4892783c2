"""The batches that are measured, and how they are consumed."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable

import tensorflow as tf

from darkroom.options.input import InputOptions

SIZE, SHORT_SIDE, BATCH = 224, 256, 64
AREA, RATIO = (0.08, 1.0), (3 / 4, 4 / 3)
TRAIN = InputOptions((SIZE, SIZE), batch_size=BATCH, augment="crop")
EVAL = dataclasses.replace(TRAIN, resize="center_crop")
_WARM_BATCHES = 10


def consume(batches: Iterable[tuple[tf.Tensor, tf.Tensor]]) -> float:
    """Returns images a second, after the first batches."""
    count, started = 0, 0.0
    for number, (images, _) in enumerate(batches):
        if number >= _WARM_BATCHES:
            count += len(images)
        if number == _WARM_BATCHES - 1:
            started = time.perf_counter()
    return count / (time.perf_counter() - started)


def consume_processor(batches: tf.data.Dataset) -> float:
    """Returns images a second of processor time, which other work on the machine hardly affects."""
    started, count = time.process_time(), 0
    for images, _ in batches:
        count += len(images)
    return count / (time.process_time() - started)


def consume_few(batches: tf.data.Dataset) -> float:
    """Returns images a second, first batches included; for few and large images."""
    started, count = time.perf_counter(), 0
    for images, _ in batches:
        count += len(images)
    return count / (time.perf_counter() - started)
