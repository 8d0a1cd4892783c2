"""Ways to read images for training, from a loop in Python to darkroom's own.

Each reads a sample of images and gives batches of random windows: uint8 [B, height, width, 3],
int64 [B]. The pipelines made by hand show what each step of tf.data brings, so TensorFlow must not
add steps to them.
"""

from __future__ import annotations

import functools
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import tensorflow as tf

from darkroom.dataset.example import IMAGE_ENCODED, LABEL_NUMBER
from darkroom.input.pipeline import make_train_dataset
from darkroom.input.records import IMAGE_FEATURES, RecordSource
from darkroom.input.service import distribute, run_dispatcher, run_worker
from darkroom.options.input import MEMORY_CACHE, InputOptions
from darkroom.profiling.benchmark.pillow import (
    PillowImages,
    PreloadedBatches,
    measure_free_memory,
)
from darkroom.profiling.benchmark.sample import (
    GZIP,
    ONE_FILE,
    RAW,
    RESIZED,
    SHARDS,
    InputSample,
)

Batches = Iterable[tuple[Any, Any]]
# From a way's elements to the bytes of an image file and its label.
_Parse = Callable[..., tuple[tf.Tensor, tf.Tensor]]

_CYCLE_LENGTH = 16
_MAX_ATTEMPTS = 10
# Share of the free memory for decoded images.
_MEMORY_SHARE = 0.25


@dataclass(frozen=True)
class Way:
    """A way to read.

    Attributes:
        name: Its name. {short_side} stands for the short side of images that are stored smaller.
        open: Returns its batches for a sample. Each iteration is another epoch.
        advice: How to read in this way; empty if it is of no use on one machine.
        is_stored: Whether it needs a dataset that was converted with other options.
    """

    name: str
    open: Callable[[InputSample], Batches]
    advice: str = ""
    is_stored: bool = False

    def find_obstacle(self, sample: InputSample) -> str:
        """Returns why the way does not work with a sample, or the empty text."""
        if self.open is open_preloaded:
            free_bytes = measure_free_memory()
            if sample.memory_bytes > free_bytes * _MEMORY_SHARE:
                return (
                    f"{sample.memory_bytes >> 20:,} MiB of pixels, "
                    f"more than a quarter of {free_bytes >> 20:,} MiB of free memory"
                )
        if self.open is open_fused and not sample.is_jpeg:
            return "only JPEGs can be decoded in part"
        return ""


def open_python_feed(sample: InputSample) -> tf.data.Dataset:
    """Reads and decodes files with Pillow, one by one."""
    signature = (
        tf.TensorSpec((*sample.options.image_size, 3), tf.uint8),
        tf.TensorSpec((), tf.int64),
    )
    images = tf.data.Dataset.from_generator(PillowImages(sample), output_signature=signature)
    return _as_written(images.batch(sample.options.batch_size))


def open_preloaded(sample: InputSample) -> Batches:
    """Decodes all images into memory first, then cuts windows with Pillow."""
    return PreloadedBatches(sample)


def open_files(sample: InputSample) -> tf.data.Dataset:
    """Reads a list of files with graph operations, one by one."""
    entries = (list(sample.paths) * sample.passes, list(sample.labels) * sample.passes)
    elements = tf.data.Dataset.from_tensor_slices(entries)
    return _make_batches(sample, elements, lambda path, label: (tf.io.read_file(path), label))


def open_one_record_file(sample: InputSample) -> tf.data.Dataset:
    """Reads one TFRecord file in sequence."""
    return _make_batches(sample, tf.data.TFRecordDataset(sample.records[ONE_FILE] * sample.passes))


def open_interleaved(sample: InputSample) -> tf.data.Dataset:
    """Reads several TFRecord files at the same time."""
    return _make_batches(sample, _interleave(sample))


def open_parallel(sample: InputSample) -> tf.data.Dataset:
    """Does the same, and decodes in parallel."""
    return _make_batches(sample, _interleave(sample), parallel=True)


def open_prefetched(sample: InputSample) -> tf.data.Dataset:
    """Does the same, and makes batches ahead."""
    return _make_batches(sample, _interleave(sample), parallel=True, prefetch=True)


def open_fused(sample: InputSample) -> tf.data.Dataset:
    """Does the same, and decodes only the window of a JPEG."""
    return _make_batches(sample, _interleave(sample), parallel=True, prefetch=True, fused=True)


def open_darkroom(sample: InputSample, form: str = SHARDS) -> tf.data.Dataset:
    """Reads as darkroom does by default."""
    return make_train_dataset(sample.records[form] * sample.passes, sample.options)


def open_cached(sample: InputSample) -> tf.data.Dataset:
    """Does the same with records in memory, which a first pass puts there."""
    source = RecordSource(sample.records[SHARDS])
    options = replace(sample.options, record_cache=MEMORY_CACHE)
    for _ in make_train_dataset(source, options):
        pass
    return make_train_dataset(source, replace(options, repeat=sample.passes))


def open_service(sample: InputSample) -> tf.data.Dataset:
    """Does the same with a tf.data service: a dispatcher and a worker on this machine."""
    with socket.create_server(("localhost", 0)) as server:
        port = server.getsockname()[1]
    address = sample.resources.enter_context(run_dispatcher(0))
    sample.resources.enter_context(run_worker(address, port))
    return distribute(open_darkroom(sample), address, sharding="off")


WAYS = (
    Way("Python feed", open_python_feed, "files, by Pillow"),
    Way("preloaded", open_preloaded, "all images decoded in memory"),
    Way("files", open_files, "a list of files"),
    Way("one TFRecord", open_one_record_file, "tf.data by hand"),
    Way("interleaved", open_interleaved, "tf.data by hand"),
    Way("+ parallel map", open_parallel, "tf.data by hand"),
    Way("+ prefetch", open_prefetched, "tf.data by hand"),
    Way("+ fused crop", open_fused, "tf.data by hand"),
    Way("darkroom", open_darkroom, "darkroom.load with its defaults"),
    Way(
        "darkroom, short side {short_side}",
        functools.partial(open_darkroom, form=RESIZED),
        "--resize-short-side {short_side}",
        is_stored=True,
    ),
    Way(
        "darkroom, raw, {short_side}",
        functools.partial(open_darkroom, form=RAW),
        "--resize-short-side {short_side} --encoding raw",
        is_stored=True,
    ),
    Way(
        "darkroom, gzip",
        functools.partial(open_darkroom, form=GZIP),
        "--compression gzip",
        is_stored=True,
    ),
    Way("darkroom, cached in memory", open_cached, 'InputOptions(record_cache="memory")'),
    Way("tf.data service, loopback", open_service),
)


def _interleave(sample: InputSample) -> tf.data.Dataset:
    paths = tf.data.Dataset.from_tensor_slices(sample.records[SHARDS] * sample.passes)
    return paths.interleave(
        tf.data.TFRecordDataset, cycle_length=_CYCLE_LENGTH, num_parallel_calls=tf.data.AUTOTUNE
    )


def _parse_record(record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    parsed = tf.io.parse_single_example(record, IMAGE_FEATURES)
    return parsed[IMAGE_ENCODED], parsed[LABEL_NUMBER]


def _make_batches(
    sample: InputSample,
    elements: tf.data.Dataset,
    parse: _Parse = _parse_record,
    *,
    parallel: bool = False,
    prefetch: bool = False,
    fused: bool = False,
) -> tf.data.Dataset:
    """Makes a pipeline by hand: a random window of each image, cut while or after decoding."""
    options = sample.options

    def decode(encoded: tf.Tensor) -> tf.Tensor:
        if fused:
            begin, size = _sample_window(tf.io.extract_jpeg_shape(encoded), options)
            window = tf.concat((begin[:2], size[:2]), axis=0)
            return tf.io.decode_and_crop_jpeg(encoded, window, channels=3)
        pixels = tf.io.decode_image(encoded, channels=3, expand_animations=False)
        pixels = tf.ensure_shape(pixels, (None, None, 3))
        return tf.slice(pixels, *_sample_window(tf.shape(pixels), options))

    def make_view(*element: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        encoded, label = parse(*element)
        resized = tf.image.resize(decode(encoded), options.image_size)
        pixels = tf.cast(resized + 0.5, tf.uint8)
        return tf.ensure_shape(pixels, (*options.image_size, 3)), tf.cast(label, tf.int64)

    images = elements.shuffle(options.shuffle_records).map(
        tf.autograph.experimental.do_not_convert(make_view),
        num_parallel_calls=tf.data.AUTOTUNE if parallel else None,
    )
    batches = images.batch(options.batch_size)
    return _as_written(batches.prefetch(tf.data.AUTOTUNE) if prefetch else batches)


def _sample_window(shape: tf.Tensor, options: InputOptions) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns begin and size, int32 [3] each, of a random window. -1 means all channels."""
    begin, size, _ = tf.image.stateless_sample_distorted_bounding_box(
        shape,
        tf.zeros((1, 0, 4)),
        tf.random.uniform((2,), maxval=tf.int32.max, dtype=tf.int32),
        min_object_covered=0.0,
        aspect_ratio_range=options.augmentation.crop_ratio,
        area_range=options.augmentation.crop_area,
        max_attempts=_MAX_ATTEMPTS,
        use_image_if_no_bounding_boxes=True,
    )
    return begin, size


def _as_written(batches: tf.data.Dataset) -> tf.data.Dataset:
    """Keeps TensorFlow from adding threads to a map, and from adding a prefetch."""
    settings = tf.data.Options()
    settings.experimental_optimization.apply_default_optimizations = False
    return batches.with_options(settings)
