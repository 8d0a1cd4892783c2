"""Measures the cost of each stage of an input pipeline: reading, parsing, decoding and the rest."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import tensorflow as tf

from darkroom.input.pipeline import decode_labeled_image, make_train_dataset, map_images
from darkroom.input.source import EpochOrder, ImageSource
from darkroom.options.input import InputOptions
from darkroom.profiling.verdict import StageCosts

_SAMPLED_IMAGES = 1024
_ROUNDS = 3

# Takes functions that return seconds, by name. Returns the seconds that count, by name.
Measure = Callable[[Mapping[str, Callable[[], float]]], dict[str, float]]


def time_in_turn(runs: Mapping[str, Callable[[], float]]) -> dict[str, float]:
    """Runs each in turn, so that other work on the machine slows all. Returns the fastest times."""
    fastest = dict.fromkeys(runs, math.inf)
    for _ in range(_ROUNDS):
        for name, run in runs.items():
            fastest[name] = min(fastest[name], run())
    return fastest


def measure_stages(
    source: ImageSource,
    options: InputOptions,
    num_images: int = _SAMPLED_IMAGES,
    measure: Measure = time_in_turn,
) -> StageCosts:
    """Runs pipelines that end after each stage, on the first images of an epoch.

    The cost of a stage is the difference between the pipeline that ends with it and the one that
    ends before it. The fastest of three rounds counts. All threads of `options` work, and nothing
    else runs.

    Args:
        source: Where images come from.
        options: How they become batches.
        num_images: Number of images to measure with, if there are so many.
        measure: Runs the pipelines and returns their seconds.
    """
    options = dataclasses.replace(options, shard=(0, 1), repeat=1)
    count = min(num_images, source.count_images())
    ends = _make_ends(source, options, count)
    fastest = measure({name: partial(_time_all, end) for name, end in ends.items()})
    costs, before = {}, 0.0
    for name, seconds in fastest.items():
        until = seconds / count
        costs[name], before = max(0.0, until - before), max(until, before)
    return StageCosts(costs)


def _time_all(elements: tf.data.Dataset) -> float:
    started = time.perf_counter()
    elements.reduce(tf.constant(0, tf.int64), lambda total, *_: total + 1).numpy()
    return time.perf_counter() - started


def _make_ends(
    source: ImageSource, options: InputOptions, count: int
) -> dict[str, tf.data.Dataset]:
    """Returns pipelines over the same images, by the stage that they end with."""
    order = EpochOrder(options.seed, 0)
    elements = source.make_elements(options, order).take(count)

    def parse(element: tf.Tensor) -> Any:
        return source.parse(element).label

    def decode(number: tf.Tensor, element: tf.Tensor) -> tf.Tensor:
        seeds = order.make_seeds(number)
        return decode_labeled_image(source.parse(element), options, seeds, resized=False)[0]

    def resize(number: tf.Tensor, element: tf.Tensor) -> tf.Tensor:
        return decode_labeled_image(source.parse(element), options, order.make_seeds(number))[0]

    num_batches = math.ceil(count / options.batch_size)
    plain = "crop" if options.augmentation.crop else "none"
    batches, augmented = (
        make_train_dataset(source, dataclasses.replace(options, augment=text), epoch=0)
        for text in (plain, options.augment)
    )
    return {
        "read": elements,
        "parse": map_images(elements, parse, options),
        "decode": map_images(order.number(elements), decode, options),
        "resize": map_images(order.number(elements), resize, options),
        "batch": batches.take(num_batches),
        "augment": augmented.take(num_batches),
    }
