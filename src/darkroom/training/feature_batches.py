"""The batches of a training on features, in the place of those of images."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tensorflow as tf

from darkroom.input.damage import name_images
from darkroom.options.input import NO_CACHE
from darkroom.options.training import TrainingOptions
from darkroom.profiling.meter import InputMeter
from darkroom.training.data import ImageBatches
from darkroom.training.devices.placement import Placement
from darkroom.training.features.cache import Array, choose_folder
from darkroom.training.features.compute import Computer, Features
from darkroom.training.features.views import list_views


@contextmanager
def use_features(
    data: ImageBatches, base: Any, options: TrainingOptions
) -> Iterator[FeatureBatches]:
    """Computes the features of all images for a training of the head alone.

    Args:
        data: The images that a training of the whole model would read.
        base: A Keras model from images to features.
        options: The options of the training.

    Yields:
        Batches of features.
    """
    views = list_views(data.options)
    name = f"{options.model} {options.precision} {data.options.scaled_decoding}"
    with tempfile.TemporaryDirectory(prefix="darkroom-") as scratch:
        cache = choose_folder(options.feature_cache)
        computer = Computer(base, name, data.options, cache, scratch)
        training = computer.compute(data.training, "train", views)
        # Evaluation sees images as the exported model will.
        evaluation = computer.compute(data.evaluation, "eval", views[:1])
        data.check_not_replaced()
        seconds = computer.measure_view(must_run=options.fit_minutes is not None)
        yield FeatureBatches(data, training, evaluation, seconds)


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
    train_features: Features
    eval_features: Features
    view_seconds: float = 0.0

    @property
    def meter(self) -> InputMeter:
        """Measures the time that the training waits for batches."""
        return self.images.meter

    @property
    def placement(self) -> Placement:
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

    def _batch(self, features: Features, order: Array, step: int, steps: int) -> tf.data.Dataset:
        """Returns batches (float32 [B, D], int64 [B]) of the rows in `order`."""
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
                tf.TensorSpec((None,), tf.int64),
            ),
        )
