"""The batches of a training: of images, or of the features that a frozen base computed of them."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tensorflow as tf

from darkroom.features.cache import choose_folder
from darkroom.features.networks.network import name_base
from darkroom.input.damage import check_not_replaced, name_batches, name_images
from darkroom.input.pipeline import count_batches, make_eval_dataset, make_train_dataset
from darkroom.input.records import make_cache_folder
from darkroom.input.source import ImageSource
from darkroom.options.input import MEMORY_CACHE, NO_CACHE, InputOptions
from darkroom.options.training import TrainingOptions
from darkroom.profiling.meter import InputMeter
from darkroom.runtime.arrays import Array
from darkroom.training.devices.placement import DevicePlacement
from darkroom.training.features.compute import Computer, SplitFeatures, list_views
from darkroom.training.recipe.balance import Balance


@contextmanager
def use_cache_folder(options: InputOptions) -> Iterator[InputOptions]:
    """Makes a folder for the files of a cache below `options.cache`, and removes it at the end.

    TensorFlow cannot use the files of a process that was killed or that runs at the same time.

    Yields:
        Options with that folder; the same options if the cache has no files.
    """
    if options.record_cache in (NO_CACHE, MEMORY_CACHE):
        yield options
        return
    make_cache_folder(options.record_cache)
    with tempfile.TemporaryDirectory(
        prefix="darkroom-", dir=options.record_cache, ignore_cleanup_errors=True
    ) as folder:
        yield replace(options, record_cache=folder)


def make_evaluation_part(source: ImageSource, options: InputOptions) -> tf.data.Dataset:
    """Returns the batches that one process evaluates. All processes have the same number.

    Args:
        source: The images of all processes.
        options: How they become batches. `shard` is the number of this process, and of all.

    Returns:
        Batches (uint8 [B, height, width, 3], int64 [B]): together, the processes have every image
        once. The last batch may be smaller, or empty if another process has one more.
    """
    batches = make_eval_dataset(source, options)
    index, count = options.shard
    if count == 1:
        return batches
    parts = (replace(options, shard=(part, count)) for part in range(count))
    lengths = [count_batches(source, part, training=False) for part in parts]
    if lengths[index] < max(lengths):
        empty = (tf.zeros((0, *spec.shape[1:]), spec.dtype) for spec in batches.element_spec)
        batches = batches.concatenate(tf.data.Dataset.from_tensors(tuple(empty)))
    return batches


@dataclass(frozen=True)
class ImageBatches:
    """Makes batches of images for the devices of this process.

    Attributes:
        placement: The devices.
        options: How images become batches; `shard` is the part of this process.
        training: The images of the train split.
        evaluation: The images of the eval split.
        meter: Measures the time that the training waits for batches.
        balance: The class weights; None: each label counts as many images as it has.
    """

    placement: DevicePlacement
    options: InputOptions
    training: ImageSource
    evaluation: ImageSource
    meter: InputMeter
    balance: Balance | None = None

    def make_training(self, epoch: int, step: int) -> Any:
        """Returns the batches of an epoch from a step on."""
        # Without the length that `input_fn` sets: with it, Keras opens another iterator at the end
        # of each epoch, which takes 50 ms.
        batches = make_train_dataset(self._sampled, self.options, epoch=epoch, skip_batches=step)
        batches = self.balance.weigh_training(batches) if self.balance else batches
        batches = self.meter.watch(batches)
        return self.placement.distribute(batches, self.options.batch_size)

    def name_images(self, epoch: int, batches: range) -> list[str]:
        """Returns the names of the images that this process has in some batches of an epoch."""
        return name_batches(self._sampled, self.options, epoch, batches)

    def make_evaluation(self) -> Any:
        """Returns the batches of the eval split; all processes have the same number."""
        batches = make_evaluation_part(self.evaluation, self.options)
        batches = self.balance.weigh_evaluation(batches) if self.balance else batches
        return self.placement.distribute(batches, self.options.batch_size)

    def check_not_replaced(self) -> None:
        """Checks that the datasets are still those that were opened.

        Raises:
            DataError: One was replaced, or is gone.
        """
        check_not_replaced(self.training, self.evaluation)

    @property
    def _sampled(self) -> ImageSource:
        """The images of an epoch of training, of which a balance may repeat some."""
        return self.balance.sample(self.training) if self.balance else self.training


def make_features(data: ImageBatches, base: Any, options: TrainingOptions) -> FeatureBatches:
    """Computes the features of all images for a training of the head alone.

    Args:
        data: The images that a training of the whole model would read.
        base: A Keras model from images to features.
        options: The options of the training.

    Returns:
        Batches of features.

    Raises:
        StorageError: The folder for temporary files is full.
    """
    views = list_views(data.options)
    name = name_base(options.model, options.precision, scaled=data.options.scaled_decoding)
    computer = Computer(base, name, data.options, choose_folder(options.feature_cache))
    training = computer.compute(data.training, "train", views)
    # Evaluation sees images as the exported model will.
    evaluation = computer.compute(data.evaluation, "eval", views[:1])
    data.check_not_replaced()
    seconds = computer.measure_view(must_run=options.fit_minutes is not None)
    return FeatureBatches(data, training, evaluation, seconds)


@dataclass(frozen=True)
class FeatureBatches:
    """Batches of features. An epoch has each view of each image once.

    Attributes:
        images: The images that a training of the whole model would read.
        train_features: Features of the train split, in all views.
        eval_features: Those of the eval split, in the view of serving.
        view_seconds: How long the base takes for a view; 0 if that was not measured.
    """

    images: ImageBatches
    train_features: SplitFeatures
    eval_features: SplitFeatures
    view_seconds: float = 0.0

    @property
    def meter(self) -> InputMeter:
        """Measures the time that the training waits for batches."""
        return self.images.meter

    @property
    def placement(self) -> DevicePlacement:
        """Where it is trained."""
        return self.images.placement

    def make_training(self, epoch: int, step: int) -> Any:
        """Returns the batches of an epoch from a step on."""
        options, order = self.images.options, self._order(epoch)
        batches = self._batch(self.train_features, order, step, self._count_batches(len(order)))
        if balance := self.images.balance:
            batches = balance.weigh_training(batches)
        batches = self.meter.watch(batches.prefetch(2))
        return self.images.placement.distribute(batches, options.batch_size)

    def name_images(self, epoch: int, batches: range) -> list[str]:
        """Returns the names of the images that this process has in some batches of an epoch."""
        options = replace(self.images.options, record_cache=NO_CACHE, service=None)
        size, views = options.batch_size, self.train_features.values.shape[1]
        chosen = self._order(epoch)[batches.start * size : batches.stop * size]
        return name_images(self.images.training, options, set((chosen // views).tolist()))

    def make_evaluation(self) -> Any:
        """Returns the batches of the eval split; all processes have the same number."""
        index, count = self.images.options.shard
        images = len(self.eval_features.labels)
        steps = self._count_batches(math.ceil(images / count))
        batches = self._batch(self.eval_features, np.arange(index, images, count), 0, steps)
        if balance := self.images.balance:
            batches = balance.weigh_evaluation(batches)
        return self.images.placement.distribute(batches, self.images.options.batch_size)

    def check_not_replaced(self) -> None:
        """Does nothing: the images are not read again."""

    def _order(self, epoch: int) -> Array:
        """Returns the rows of the training features that this process has in an epoch, in turn."""
        options, balance = self.images.options, self.images.balance
        generator = np.random.default_rng((options.seed, epoch))
        images, views, _ = self.train_features.values.shape
        if balance:
            labels = np.repeat(self.train_features.labels, views)
            order = balance.sample_rows(labels, generator)
        else:
            order = generator.permutation(images * views)
        index, count = options.shard
        if options.drop_remainder:
            whole = options.batch_size * count
            order = order[: len(order) // whole * whole]
        return order[index::count]

    def _count_batches(self, rows: int) -> int:
        return math.ceil(rows / self.images.options.batch_size)

    def _batch(
        self, features: SplitFeatures, order: Array, step: int, steps: int
    ) -> tf.data.Dataset:
        """Returns batches (float32 [B, D], targets [B, ...]) of the rows in `order`."""
        values, labels = features
        _, views, width = values.shape
        size = self.images.options.batch_size

        def read() -> Iterator[tuple[Array, Array]]:
            for start in range(step * size, steps * size, size):
                image, view = np.divmod(order[start : start + size], views)
                yield values[image, view], labels[image]

        return tf.data.Dataset.from_generator(
            read,
            output_signature=(
                tf.TensorSpec((None, width), tf.float32),
                tf.TensorSpec((None, *labels.shape[1:]), labels.dtype),
            ),
        )
