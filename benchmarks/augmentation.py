"""What augmentation costs, one image at a time and in batches.

    python benchmarks/augmentation.py [--images 512] [--rounds 5]

Runs tf.data pipelines with two threads over images of 224 x 224 pixels in memory, in turn: without
a step, with a step before images are batched, and with the same step after batching. It prints
medians of the processor time (of both threads together) that an image takes beyond the time without
a step. On a shared machine this is steadier than the clock; two free cores take half as long.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from darkroom.input.graph.augment import augment_batch, flip_image
from darkroom.options.augmentation import parse_augmentation

_SIZE = 224
_BATCH = 64
_ORIGINALS = 256
_THREADS = 2
_Step = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]


def make_augment(text: str) -> _Step:
    """Returns a step on batches: from images and seeds to images."""
    augmentation = parse_augmentation(text)

    def augment(images: tf.Tensor, seeds: tf.Tensor) -> tf.Tensor:
        labels = tf.zeros(tf.shape(images)[:1], tf.int64)
        return augment_batch(images, labels, seeds, augmentation, num_classes=2)[0]

    return augment


def make_single(step: _Step) -> _Step:
    """Returns a step on images that calls one on batches with batches of one."""
    return lambda image, seed: step(image[None], seed[None])[0]


def flip_batch(images: tf.Tensor, seeds: tf.Tensor) -> tf.Tensor:
    """Mirrors half of a batch, in the fastest way found: only that half is moved."""
    places = tf.where(tf.bitwise.bitwise_and(seeds[:, 1], 1) > 0)
    rows = tf.reshape(tf.gather(images, places[:, 0]), (-1, _SIZE, 3))
    mirrored = tf.reshape(tf.reverse(rows, (1,)), (-1, _SIZE, _SIZE, 3))
    return tf.tensor_scatter_nd_update(images, places, mirrored)


def make_pipeline(count: int, single: _Step | None, batched: _Step | None) -> tf.data.Dataset:
    """Returns batches of `count` images in all, passed through a step before or after batching."""
    rng = np.random.default_rng(0)
    shape = (_ORIGINALS, _SIZE, _SIZE, 3)
    originals = tf.constant(rng.integers(0, 256, shape, dtype=np.uint8))
    seeds = tf.constant(rng.integers(-(1 << 63), 1 << 63, (_ORIGINALS, 2), dtype=np.int64))

    def take(number: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        image, seed = originals[number % _ORIGINALS], seeds[number % _ORIGINALS]
        return (image if single is None else single(image, seed)), seed

    def change(images: tf.Tensor, seeds: tf.Tensor) -> tf.Tensor:
        return images if batched is None else batched(images, seeds)

    plain = tf.autograph.experimental.do_not_convert
    images = tf.data.Dataset.range(count).map(plain(take), num_parallel_calls=_THREADS)
    batches = images.batch(_BATCH).map(plain(change), num_parallel_calls=_THREADS).prefetch(2)
    options = tf.data.Options()
    options.threading.private_threadpool_size = _THREADS
    return batches.with_options(options)


def measure_cost(pipeline: tf.data.Dataset, count: int) -> float:
    """Returns microseconds of processor time an image."""
    started = time.process_time()
    for _ in pipeline:
        pass
    return (time.process_time() - started) / count * 1e6


def compare(count: int, rounds: int) -> None:
    """Prints one row for each step."""
    steps = {text: make_augment(text) for text in ("color", "rotate", "cutout", "mixup")}
    pipelines = {("nothing", ""): make_pipeline(count, None, None)}
    pipelines["flip", "single"] = make_pipeline(count, flip_image, None)
    pipelines["flip", "batched"] = make_pipeline(count, None, flip_batch)
    for name, step in steps.items():
        pipelines[name, "batched"] = make_pipeline(count, None, step)
        if name != "mixup":  # It takes two images.
            pipelines[name, "single"] = make_pipeline(count, make_single(step), None)
    times: dict[tuple[str, str], list[float]] = {key: [] for key in pipelines}
    for _ in range(rounds + 1):
        for key, pipeline in pipelines.items():
            times[key].append(measure_cost(pipeline, count))
    # The first round warms up.
    costs = {key: statistics.median(each[1:]) for key, each in times.items()}
    nothing = costs.pop(("nothing", ""))
    print(f"nothing: {nothing:.0f} us an image\n{'':8}{'single':>10}{'batched':>10}")
    for name in ("flip", *steps):
        row = [costs.get((name, way)) for way in ("single", "batched")]
        cells = [f"{'' if cost is None else round(cost - nothing):>10}" for cost in row]
        print(f"{name:8}{''.join(cells)}")


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=512, help="images a round (512)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds that count (5)")
    arguments = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(_THREADS)
    tf.config.threading.set_inter_op_parallelism_threads(_THREADS)
    compare(arguments.images, arguments.rounds)


if __name__ == "__main__":
    main()
