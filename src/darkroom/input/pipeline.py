"""From a source of images to batches: shuffled, decoded in parallel, resized, augmented.

Files of records are shuffled, read in lanes, and their records shuffled again while they are still
encoded and small. Of a list of images, the numbers are shuffled. Then one parallel map decodes and
resizes. Pixels stay uint8. The order of an epoch and everything random in it depend only on the
seed and the number of the epoch, so another process, or the same one after a restart, makes the
same batches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import tensorflow as tf

from darkroom.data.open import list_examples
from darkroom.errors import UsageError
from darkroom.input.graph.augment import (
    augment_batch,
    check_num_classes,
    flip_image,
    locate_changes,
)
from darkroom.input.graph.decode import locate_points, make_decoder
from darkroom.input.records import RecordSource
from darkroom.input.service import distribute
from darkroom.input.source import EpochOrder, ImageSource, LabeledImage
from darkroom.options.checks import check_count
from darkroom.options.input import InputOptions, choose_augmentation
from darkroom.runtime.machine import count_cores
from darkroom.targets.kind import find_kind
from darkroom.targets.learning import find_learning

__all__ = ["make_eval_dataset", "make_train_dataset"]

# Share of the memory budget for records that wait to be shuffled.
_SHUFFLE_SHARE = 0.5
# Share of the budget for decoded images in each of three queues: single images, batches that are
# augmented, finished batches.
_VIEWS_SHARE = 0.125
# Images in the queue of each thread: with so many, a large image does not stop the other threads.
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
        source: Where images come from, or paths of TFRecord files. A source keeps its cache when it
            is used again.
        options: How they become batches.
        epoch: Number of the epoch to make, from 0; `options.repeat` is then not used. None:
            `options.repeat` epochs, and the next ones whenever the dataset is iterated again.
        skip_batches: Batches to leave out at the start of the epoch. They are not decoded.

    Returns:
        Batches (uint8 [B, height, width, 3], int64 [B]): RGB pixels, label numbers; with mixup
        float32 [B, C] instead, shares of the C labels. Of a kind that has other targets, those that
        its `darkroom.targets.learning.Learning` returns.

    Raises:
        DataError: There is no file or no record, or the first record has no image or no label.
        UsageError: `epoch` or `skip_batches` is below 0, or the tf.data service cannot do this.
        StorageError: The tf.data service does not answer.
    """
    if options.service and skip_batches:
        raise UsageError(
            f"skip_batches is {skip_batches}, but a tf.data service has no fixed order.",
            "Leave out the service to resume within an epoch.",
        )
    if epoch is not None:
        check_count("epoch", epoch, 0)
    check_count("skip_batches", skip_batches, 0)
    whole = _open_source(source)
    kind = whole.split.target.kind
    options = _complete(options, whole)
    moves, learning = find_kind(kind).moves, find_learning(kind)
    source = whole.select(options.shard) if options.shard_by == "file" else whole
    order = EpochOrder(options.seed, epoch, by_service=options.service is not None)
    augmentation = options.augmentation

    def decode(number: tf.Tensor, element: tf.Tensor) -> tuple[Any, ...]:
        image, seeds = source.parse(element), order.make_seeds(number)
        pixels, steps = decode_labeled_image(image, options, seeds, located=moves)
        if augmentation.flip:
            mirrored = flip_image(pixels, seeds, augmentation.flip_share)
            pixels = tf.ensure_shape(mirrored, pixels.shape)
        return pixels, image.label, steps, seeds, *_list_columns(image)

    def augment(
        images: tf.Tensor, labels: Any, steps: tf.Tensor | None, seeds: tf.Tensor, *columns: Any
    ) -> tuple[Any, ...]:
        images, labels = augment_batch(images, labels, seeds, augmentation, options.num_classes)
        if steps is not None:
            turned = locate_changes(seeds, augmentation, options.image_size)
            matrix = locate_points(steps, options.image_size).then(turned)
            labels = learning.follow(labels, matrix, options)
        return tf.cast(images, options.dtype), labels, *columns

    elements = list_elements(whole, source, options, order)
    images = map_images(elements.skip(skip_batches * options.batch_size), decode, options)
    drops = options.drop_remainder or options.shard[1] > 1
    batches = images.batch(options.batch_size, drop_remainder=drops)
    batches = batches.map(
        tf.autograph.experimental.do_not_convert(augment),
        # A batch takes the memory of many images, so few are augmented at a time.
        num_parallel_calls=_count_batch_calls(options),
        # Otherwise the last batch of an epoch, which is smaller, might overtake others.
        deterministic=True,
    )
    batches = batches if epoch is not None else batches.repeat(options.repeat)
    batches = _set_options(batches, options)
    if options.service:
        batches = distribute(
            batches,
            options.service,
            sharding=options.service_sharding,
            job_name=options.service_job_name,
        )
    return batches.prefetch(_count_prefetched(options))


def list_elements(
    whole: ImageSource, source: ImageSource, options: InputOptions, order: EpochOrder
) -> tf.data.Dataset:
    """Returns the elements of an epoch in their order, each with a number: (int64 [], element).

    Args:
        whole: The images of all processes.
        source: Those whose files this process reads.
        options: How they become batches.
        order: The order.
    """
    elements = source.make_elements(options, order)
    if buffered := _count_shuffled(source, options):
        elements = order.shuffle(elements, buffered)
    elements = order.number(elements)
    index, count = options.shard
    if count == 1:
        return elements
    # All parts have the same number of full batches.
    images = _count_full_batches(whole, options) * options.batch_size
    if options.shard_by == "file":
        return elements.take(images)
    return elements.take(images * count).shard(count, index)


def make_eval_dataset(
    source: ImageSource | Sequence[str], options: InputOptions, *, sample: int | None = None
) -> tf.data.Dataset:
    """Returns batches of whole images, each image once, always in the same order.

    Args:
        source: Where images come from, or paths of TFRecord files.
        options: How they become batches; options for training are not used.
        sample: Number of images, from all spans; None for all of them.

    Returns:
        Batches (uint8 [B, height, width, 3], int64 [B]): RGB pixels, label numbers; for options
        with mixup float32 [B, C] labels, as in training. Of other targets see there.

    Raises:
        DataError: There is no file or no record, or the first record has no image or no label.
        UsageError: The options have mixup, but no number of classes.
    """
    source = _open_source(source)
    if options.shard_by == "file":
        source = source.select(options.shard)
    kind = source.split.target.kind
    options = _complete(options, source)
    moves, learning = find_kind(kind).moves, find_learning(kind)

    def decode(element: tf.Tensor) -> tuple[Any, ...]:
        image = source.parse(element)
        label = image.label
        if options.augmentation.mixup and label.dtype.is_integer:
            # The loss is the same in training and evaluation.
            label = tf.one_hot(label, check_num_classes(options.num_classes))
        pixels, steps = decode_labeled_image(image, options, located=moves)
        return tf.cast(pixels, options.dtype), label, steps, *_list_columns(image)

    def follow(
        images: tf.Tensor, labels: Any, steps: tf.Tensor | None, *columns: Any
    ) -> tuple[Any, ...]:
        if steps is not None:
            matrix = locate_points(steps, options.image_size)
            labels = learning.follow(labels, matrix, options)
        return images, labels, *columns

    elements = source.make_sample(sample) if sample else source.make_elements(options, None)
    if options.shard_by == "record":
        elements = elements.shard(options.shard[1], options.shard[0])
    batches = map_images(elements, decode, options).batch(options.batch_size)
    batches = batches.map(tf.autograph.experimental.do_not_convert(follow))
    return _set_options(batches, options).prefetch(_count_prefetched(options))


def _complete(options: InputOptions, source: ImageSource) -> InputOptions:
    """Returns options with augmentation and number of labels, where they do not name them."""
    options = choose_augmentation(options, source.split.target.kind)
    num_labels = options.num_classes or len(source.split.labels) or None
    return replace(options, num_classes=num_labels)


def count_batches(source: ImageSource, options: InputOptions, *, training: bool) -> int:
    """Returns the number of batches in an epoch of one process, without a tf.data service.

    Args:
        source: The images of all processes.
        options: How they become batches.
        training: Count the batches of `make_train_dataset`; else of `make_eval_dataset`.
    """
    if training and (options.shard[1] > 1 or options.drop_remainder):
        return _count_full_batches(source, options)
    return math.ceil(_count_part(source, options, options.shard[0]) / options.batch_size)


def _count_full_batches(whole: ImageSource, options: InputOptions) -> int:
    """Returns the number of full batches that each part of `options.shard` has."""
    parts = range(options.shard[1])
    return min(_count_part(whole, options, part) for part in parts) // options.batch_size


def _count_part(whole: ImageSource, options: InputOptions, part: int) -> int:
    """Returns the number of images in one part of `options.shard`."""
    count = options.shard[1]
    if options.shard_by == "file":
        return whole.count_images((part, count))
    return len(range(part, whole.count_images(), count))


def _open_source(source: ImageSource | Sequence[str]) -> ImageSource:
    if not isinstance(source, Sequence):
        return source
    [split] = list_examples({"": source}).values()
    return RecordSource(split)


def _list_columns(image: LabeledImage) -> list[dict[str, tf.Tensor]]:
    """Returns the columns, if batches have some."""
    return [dict(image.columns)] if image.columns else []


def decode_labeled_image(
    image: LabeledImage,
    options: InputOptions,
    seeds: tf.Tensor | None = None,
    *,
    resized: bool = True,
    located: bool = False,
) -> tuple[tf.Tensor, tf.Tensor | None]:
    """Decodes an image to the view that training or evaluation gets.

    Args:
        image: The image as it is stored.
        options: How it becomes a view.
        seeds: int64 [2], the seeds of a random window for training; None for evaluation.
        resized: Resize the pixels; else return them as they were decoded.
        located: Tell what was done to the pixels, for `locate_points`.

    Returns:
        uint8 [height, width, 3], RGB; what `locate_points` takes, or None if that is not asked for.
    """
    crops = seeds is not None and options.augmentation.crop
    decode = make_decoder(
        options.image_size,
        options.resize,
        options.augmentation if crops else None,
        options.scaled_decoding,
        resized,
        located,
    )
    found: tuple[tf.Tensor, tf.Tensor | None] = decode(
        image.encoded, seeds if crops else None, image.shape, image.channels
    )
    return found


def _count_shuffled(source: ImageSource, options: InputOptions) -> int:
    """Returns the number of elements in the buffer that is shuffled."""
    most = min(options.shuffle_bytes, options.ram_budget_bytes * _SHUFFLE_SHARE)
    return min(options.shuffle_records, int(most / source.element_bytes))


def map_images(elements: tf.data.Dataset, function: Any, options: InputOptions) -> tf.data.Dataset:
    """Applies a function to elements in parallel, in the threads that the options allow.

    Each parallel call holds a result. There are several calls for each thread if the memory budget
    allows it.
    """
    threads = _count_threads(options)
    return elements.map(
        # The function has no Python control flow that AutoGraph would have to rewrite.
        tf.autograph.experimental.do_not_convert(function),
        num_parallel_calls=max(threads, min(_CALLS_PER_THREAD * threads, _count_views(options))),
        deterministic=options.deterministic,
    )


def _count_batch_calls(options: InputOptions) -> int:
    return max(1, min(_count_threads(options), _count_views(options) // options.batch_size))


def _count_prefetched(options: InputOptions) -> int:
    fitting = max(1, _count_views(options) // options.batch_size)
    return min(options.prefetch, fitting)


def _count_views(options: InputOptions) -> int:
    """Returns the number of decoded images that fit into one queue."""
    height, width = options.image_size
    view_bytes = height * width * 3 * tf.as_dtype(options.dtype).size
    return int(options.ram_budget_bytes * _VIEWS_SHARE / view_bytes)


def _count_threads(options: InputOptions) -> int:
    return options.num_threads or count_cores()


def _set_options(batches: tf.data.Dataset, options: InputOptions) -> tf.data.Dataset:
    settings = tf.data.Options()
    settings.deterministic = options.deterministic
    settings.threading.private_threadpool_size = _count_threads(options)
    # Images are decoded in parallel, so the kernels need no threads.
    settings.threading.max_intra_op_parallelism = 1
    # There is nothing to tune. In one of four epochs, the end of an iterator waits for its sleeping
    # tuner: until 10 ms times the next power of two since the epoch began.
    settings.autotune.enabled = False
    return batches.with_options(settings)
