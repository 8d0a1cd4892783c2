"""From a source of images to batches: shuffled, decoded side by side, resized, augmented.

Files of records are shuffled, read interleaved and shuffled again as serialised records, which are
small; of a list of images, the places in it. One parallel map then reads what is left to be read,
decodes and resizes. Pixels stay uint8. The order of an epoch and what is random in it are a pure
function of the seed and the epoch's number, so that another process, or the same after a restart,
makes the same batches.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from darkroom.errors import UsageError
from darkroom.input.graph.augment import augment_batch, check_num_classes, flip_image
from darkroom.input.graph.decode import make_decoder
from darkroom.input.records import RecordSource
from darkroom.input.service import distribute
from darkroom.input.source import EpochOrder, ImageSource, LabeledImage
from darkroom.options.checks import check_count
from darkroom.options.input import InputOptions

# Of the memory that reading may take, for records that wait to be shuffled.
_SHUFFLE_SHARE = 0.5
# The same for views that wait: single ones, batches that are being changed, and finished ones.
_VIEWS_SHARE = 0.125
# Images that wait for each thread: enough that a large one does not keep the others waiting.
_CALLS_PER_THREAD = 8


def make_train_dataset(
    source: ImageSource | Sequence[str],
    options: InputOptions,
    *,
    epoch: int | None = None,
    skip_batches: int = 0,
) -> tf.data.Dataset:
    """Returns shuffled, augmented batches, every image exactly once an epoch.

    Args:
        source: Where images come from, or paths of TFRecord files. A source that is used again has
            kept its cache.
        options: How they become batches.
        epoch: Number of the one epoch to make, from 0, whatever `options.repeat` says; None:
            `options.repeat` epochs, others whenever the dataset is iterated again.
        skip_batches: Leaves out the first batches of that epoch, without decoding them.

    Returns:
        Batches (uint8 [B, height, width, 3], int64 [B]): RGB pixels, label numbers; with mixup
        float32 [B, C] instead, shares of the C labels.

    Raises:
        DataError: There is no file or no record, or the first record has no image or no label.
        UsageError: `epoch` or `skip_batches` is below 0, or the tf.data service cannot do this.
        StorageError: The tf.data service does not answer.
    """
    if options.service and skip_batches:
        raise UsageError(
            f"skip_batches is {skip_batches}, but a tf.data service has no fixed order.",
            "Leave out the service to go on within an epoch.",
        )
    if epoch is not None:
        check_count("epoch", epoch, 0)
    check_count("skip_batches", skip_batches, 0)
    whole = _open_source(source)
    source = whole.select(options.shard) if options.shard_by == "file" else whole
    order = EpochOrder(options.seed, epoch, by_service=options.service is not None)
    augmentation = options.augmentation

    def decode(number: tf.Tensor, element: tf.Tensor) -> tuple[tf.Tensor, ...]:
        image, seeds = source.parse(element), order.make_seeds(number)
        pixels = decode_view(image, options, seeds)
        if augmentation.flip:
            pixels = tf.ensure_shape(flip_image(pixels, seeds), pixels.shape)
        return pixels, image.label, seeds

    def augment(images: tf.Tensor, labels: tf.Tensor, seeds: tf.Tensor) -> tuple[tf.Tensor, ...]:
        images, labels = augment_batch(images, labels, seeds, augmentation, options.num_classes)
        return tf.cast(images, options.dtype), labels

    elements = source.make_elements(options, order)
    if waiting := _count_waiting(source, options):
        elements = order.shuffle(elements, waiting)
    elements = _take_part(whole, order.number(elements), options)
    images = map_images(elements.skip(skip_batches * options.batch_size), decode, options)
    drops = options.drop_remainder or options.shard[1] > 1
    batches = images.batch(options.batch_size, drop_remainder=drops)
    batches = _map_batches(batches, augment, options)
    batches = batches if epoch is not None else batches.repeat(options.repeat)
    batches = _set_options(batches, options)
    if options.service:
        batches = distribute(batches, options.service, sharding=options.service_sharding)
    return batches.prefetch(_count_prefetched(options))


def make_eval_dataset(
    source: ImageSource | Sequence[str], options: InputOptions
) -> tf.data.Dataset:
    """Returns batches of whole images, every one once, in the same order every time.

    Args:
        source: Where images come from, or paths of TFRecord files.
        options: How they become batches; what concerns training is not used.

    Returns:
        Batches (uint8 [B, height, width, 3], int64 [B]): RGB pixels, label numbers; float32 [B, C]
        for options with mixup, as training has them.

    Raises:
        DataError: There is no file or no record, or the first record has no image or no label.
        UsageError: There is mixup, but no number of classes.
    """
    source = _open_source(source)
    if options.shard_by == "file":
        source = source.select(options.shard)

    def decode(element: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        image = source.parse(element)
        label = image.label
        if options.augmentation.mixup:
            # One loss serves both.
            label = tf.one_hot(label, check_num_classes(options.num_classes))
        return tf.cast(decode_view(image, options), options.dtype), label

    elements = source.make_elements(options, None)
    if options.shard_by == "record":
        elements = elements.shard(options.shard[1], options.shard[0])
    batches = map_images(elements, decode, options).batch(options.batch_size)
    return _set_options(batches, options).prefetch(_count_prefetched(options))


def count_batches(source: ImageSource, options: InputOptions, *, training: bool) -> int:
    """Returns the number of batches of an epoch of one process, without a tf.data service.

    Args:
        source: The images of all processes.
        options: How they become batches.
        training: Those of `make_train_dataset`; else of `make_eval_dataset`.
    """
    if training and (options.shard[1] > 1 or options.drop_remainder):
        return _count_full_batches(source, options)
    return math.ceil(_count_part(source, options, options.shard[0]) / options.batch_size)


def _count_full_batches(whole: ImageSource, options: InputOptions) -> int:
    """Returns the number of full batches that every one of `options.shard`'s parts has."""
    parts = range(options.shard[1])
    return min(_count_part(whole, options, part) for part in parts) // options.batch_size


def _count_part(whole: ImageSource, options: InputOptions, part: int) -> int:
    """Returns the number of images of one of `options.shard`'s parts."""
    count = options.shard[1]
    if options.shard_by == "file":
        return whole.count_images((part, count))
    return len(range(part, whole.count_images(), count))


def _open_source(source: ImageSource | Sequence[str]) -> ImageSource:
    return RecordSource(source) if isinstance(source, Sequence) else source


def decode_view(
    image: LabeledImage,
    options: InputOptions,
    seeds: tf.Tensor | None = None,
    *,
    resized: bool = True,
) -> tf.Tensor:
    """Returns what training, with an image's seeds, or evaluation sees of an image.

    Args:
        image: The image as it is stored.
        options: How it is seen.
        seeds: int64 [2], from which a random window follows, where options ask for one.
        resized: Else the pixels are given as they were decoded.

    Returns:
        uint8 [height, width, 3], RGB.
    """
    crops = seeds is not None and options.augmentation.crop
    decode = make_decoder(
        options.image_size,
        options.resize,
        options.augmentation if crops else None,
        options.scaled_decoding,
        resized,
    )
    return decode(image.encoded, seeds if crops else None, image.shape, image.channels)


def _count_waiting(source: ImageSource, options: InputOptions) -> int:
    """Returns the number of elements that wait to be shuffled."""
    most = min(options.shuffle_bytes, options.ram_budget_bytes * _SHUFFLE_SHARE)
    return min(options.shuffle_records, int(most / source.element_bytes))


def _take_part(
    whole: ImageSource, elements: tf.data.Dataset, options: InputOptions
) -> tf.data.Dataset:
    """Returns this shard's part, of as many full batches as that of any other shard."""
    index, count = options.shard
    if count == 1:
        return elements
    images = _count_full_batches(whole, options) * options.batch_size
    if options.shard_by == "file":
        return elements.take(images)
    return elements.take(images * count).shard(count, index)


def map_images(elements: tf.data.Dataset, function: Any, options: InputOptions) -> tf.data.Dataset:
    """Applies a function to elements side by side, in the threads that options allow.

    As many results wait as there are calls: some for each thread where the budget allows that.
    """
    threads = _count_threads(options)
    return elements.map(
        # There is no Python control flow for AutoGraph to rewrite.
        tf.autograph.experimental.do_not_convert(function),
        num_parallel_calls=max(threads, min(_CALLS_PER_THREAD * threads, _count_views(options))),
        deterministic=options.deterministic,
    )


def _map_batches(batches: tf.data.Dataset, function: Any, options: InputOptions) -> tf.data.Dataset:
    """Applies a function to batches, each as large as many images, so in few calls at a time."""
    return batches.map(
        tf.autograph.experimental.do_not_convert(function),
        num_parallel_calls=_count_batch_calls(options),
        # Else the last batch of an epoch, a smaller one, might overtake others.
        deterministic=True,
    )


def _count_batch_calls(options: InputOptions) -> int:
    return max(1, min(_count_threads(options), _count_views(options) // options.batch_size))


def _count_prefetched(options: InputOptions) -> int:
    fitting = max(1, _count_views(options) // options.batch_size)
    return min(options.prefetch, fitting)


def _count_views(options: InputOptions) -> int:
    """Returns the number of views that may wait in one place."""
    height, width = options.image_size
    view_bytes = height * width * 3 * tf.as_dtype(options.dtype).size
    return int(options.ram_budget_bytes * _VIEWS_SHARE / view_bytes)


def _count_threads(options: InputOptions) -> int:
    return options.num_threads or len(os.sched_getaffinity(0))


def _set_options(batches: tf.data.Dataset, options: InputOptions) -> tf.data.Dataset:
    settings = tf.data.Options()
    settings.deterministic = options.deterministic
    settings.threading.private_threadpool_size = _count_threads(options)
    # Images are what is decoded side by side.
    settings.threading.max_intra_op_parallelism = 1
    # Nothing is left to tune. When an iterator ends, its tuner may sleep on, and the epoch with it:
    # until 10 ms times the next power of two since the epoch began, in one end of four.
    settings.autotune.enabled = False
    return batches.with_options(settings)
