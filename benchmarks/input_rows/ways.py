"""Ways to read images for training, from a loop in Python to darkroom with its options.

Each gives endless batches of random windows: uint8 [64, 224, 224, 3], int64 [64]. The pipelines
made by hand show what each step of tf.data brings, so TensorFlow must not add steps to them.
"""

from __future__ import annotations

import dataclasses
import math
import random
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from PIL import Image

from darkroom.dataset.example import IMAGE_ENCODED, LABEL_NUMBER
from darkroom.input.opening import open_files
from darkroom.input.pipeline import make_train_dataset
from darkroom.input.service import distribute, run_dispatcher, run_worker
from input_rows.contract import AREA, BATCH, RATIO, SHORT_SIDE, SIZE, TRAIN

Batches = Iterable[tuple[Any, Any]]
# Returns the shards of the images, converted with options into a folder of that name.
Convert = Callable[..., list[str]]
# Makes bytes of an image file and its label of an element.
_Parse = Callable[..., tuple[tf.Tensor, tf.Tensor]]

DEFAULT = "darkroom"
_ENDLESS = dataclasses.replace(TRAIN, repeat=None)
_ATTEMPTS = 10
# Decoded, they take a gigabyte at most where images have 0.3 megapixels.
_PRELOADED = 1000


def list_ways(
    paths: Sequence[Path], convert: Convert, resources: ExitStack
) -> dict[str, Callable[[], Batches]]:
    """Returns a function for each way, which opens it.

    Args:
        paths: The JPEGs.
        convert: `Bench.convert`.
        resources: Closes the servers of the tf.data service.
    """
    files = convert("eight", num_shards=8)
    one = convert("one", num_shards=1)

    def read(shards: list[str]) -> tf.data.Dataset:
        return make_train_dataset(shards, _ENDLESS)

    return {
        "Python feed": lambda: _feed(paths),
        "preloaded": lambda: _preload(paths[:_PRELOADED]),
        "files": lambda: _make_batches(_list_files(paths), _read_file),
        "one TFRecord": lambda: _make_batches(tf.data.TFRecordDataset(one)),
        "interleaved": lambda: _make_batches(_interleave(files)),
        "+ parallel map": lambda: _make_batches(_interleave(files), steps=1),
        "+ prefetch": lambda: _make_batches(_interleave(files), steps=2),
        "+ fused crop": lambda: _make_batches(_interleave(files), steps=3),
        DEFAULT: lambda: read(files),
        f"darkroom, short side {SHORT_SIDE}": lambda: read(
            convert("resized", resize_short_side=SHORT_SIDE)
        ),
        f"darkroom, raw, {SHORT_SIDE}": lambda: read(
            convert("raw", resize_short_side=SHORT_SIDE, encoding="raw")
        ),
        "darkroom, gzip": lambda: read(convert("gzip", compression="gzip")),
        "darkroom, cached in memory": lambda: _cache(files),
        "tf.data service, loopback": lambda: _serve(read(files), resources),
    }


def _feed(paths: Sequence[Path]) -> tf.data.Dataset:
    """Reads and decodes files with Pillow, one by one."""

    def draw() -> Iterator[tuple[np.ndarray, int]]:
        for path in _shuffle(paths):
            yield _cut_view(_decode(path)), _label(path)

    spec = (tf.TensorSpec((SIZE, SIZE, 3), tf.uint8), tf.TensorSpec((), tf.int64))
    return _as_written(tf.data.Dataset.from_generator(draw, output_signature=spec).batch(BATCH))


def _preload(paths: Sequence[Path]) -> Batches:
    """Decodes all images into memory first, then cuts windows with Pillow."""
    images = {path: _decode(path) for path in paths}

    def draw() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        order = _shuffle(paths)
        while True:
            chosen = [next(order) for _ in range(BATCH)]
            views = [_cut_view(images[path]) for path in chosen]
            yield np.stack(views), np.array([*map(_label, chosen)], np.int64)

    return draw()


def _cache(files: list[str]) -> tf.data.Dataset:
    """Reads as darkroom does, with records in memory, which a first pass puts there."""
    source = open_files(files)
    options = dataclasses.replace(TRAIN, record_cache="memory")
    for _ in make_train_dataset(source, options):
        pass
    return make_train_dataset(source, dataclasses.replace(options, repeat=None))


def _serve(batches: tf.data.Dataset, resources: ExitStack) -> tf.data.Dataset:
    """Reads by a tf.data service: a dispatcher and a worker on this machine."""
    with socket.create_server(("localhost", 0)) as server:
        port = server.getsockname()[1]
    address = resources.enter_context(run_dispatcher(0))
    resources.enter_context(run_worker(address, port))
    return distribute(batches, address, sharding="off")


def _label(path: Path) -> int:
    return int(path.parent.name.rpartition("-")[2])


def _shuffle(paths: Sequence[Path]) -> Iterator[Path]:
    while True:
        yield from random.sample(paths, len(paths))


def _decode(path: Path) -> Image.Image:
    with Image.open(path) as image:
        return image.convert("RGB")


def _cut_view(image: Image.Image) -> np.ndarray:
    """Cuts a random window, chosen as TensorFlow does."""
    box = 0.0, 0.0, float(image.width), float(image.height)
    for _ in range(_ATTEMPTS):
        area, ratio = image.width * image.height * random.uniform(*AREA), random.uniform(*RATIO)
        width, height = math.sqrt(area * ratio), math.sqrt(area / ratio)
        if width <= image.width and height <= image.height:
            left = random.uniform(0, image.width - width)
            top = random.uniform(0, image.height - height)
            box = left, top, left + width, top + height
            break
    return np.asarray(image.resize((SIZE, SIZE), Image.Resampling.BILINEAR, box))


def _list_files(paths: Sequence[Path]) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(([*map(str, paths)], [*map(_label, paths)]))


def _interleave(files: list[str]) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(files).interleave(
        tf.data.TFRecordDataset, cycle_length=len(files), num_parallel_calls=tf.data.AUTOTUNE
    )


def _read_file(path: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    return tf.io.read_file(path), label


def _parse_record(record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    features = {
        IMAGE_ENCODED: tf.io.FixedLenFeature([], tf.string),
        LABEL_NUMBER: tf.io.FixedLenFeature([], tf.int64),
    }
    parsed = tf.io.parse_single_example(record, features)
    return parsed[IMAGE_ENCODED], parsed[LABEL_NUMBER]


def _make_batches(
    elements: tf.data.Dataset, parse: _Parse = _parse_record, steps: int = 0
) -> tf.data.Dataset:
    """Makes a pipeline by hand.

    Args:
        elements: Files or records.
        parse: Makes bytes and label of one.
        steps: How many of these it has: a parallel map, a prefetch, decoding only the window.
    """

    def decode(encoded: tf.Tensor) -> tf.Tensor:
        if steps >= 3:
            begin, size = _sample_window(tf.io.extract_jpeg_shape(encoded))
            window = tf.concat((begin[:2], size[:2]), axis=0)
            return tf.io.decode_and_crop_jpeg(encoded, window, channels=3)
        pixels = tf.io.decode_image(encoded, channels=3, expand_animations=False)
        pixels = tf.ensure_shape(pixels, (None, None, 3))
        return tf.slice(pixels, *_sample_window(tf.shape(pixels)))

    def make_view(*element: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        encoded, label = parse(*element)
        resized = tf.image.resize(decode(encoded), (SIZE, SIZE))
        pixels = tf.ensure_shape(tf.cast(resized + 0.5, tf.uint8), (SIZE, SIZE, 3))
        return pixels, tf.cast(label, tf.int64)

    images = elements.repeat().shuffle(TRAIN.shuffle_records)
    views = images.map(
        tf.autograph.experimental.do_not_convert(make_view),
        num_parallel_calls=tf.data.AUTOTUNE if steps >= 1 else None,
    )
    batches = views.batch(BATCH)
    return _as_written(batches.prefetch(tf.data.AUTOTUNE) if steps >= 2 else batches)


def _sample_window(shape: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns begin and size, int32 [3] each, of a random window. -1 means all channels."""
    begin, size, _ = tf.image.stateless_sample_distorted_bounding_box(
        shape,
        tf.zeros((1, 0, 4)),
        tf.random.uniform((2,), maxval=tf.int32.max, dtype=tf.int32),
        min_object_covered=0.0,
        aspect_ratio_range=RATIO,
        area_range=AREA,
        max_attempts=_ATTEMPTS,
        use_image_if_no_bounding_boxes=True,
    )
    return begin, size


def _as_written(batches: tf.data.Dataset) -> tf.data.Dataset:
    """Keeps TensorFlow from adding threads to a map, and from adding a prefetch."""
    settings = tf.data.Options()
    settings.experimental_optimization.apply_default_optimizations = False
    return batches.with_options(settings)
