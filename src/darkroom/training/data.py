"""The batches of a training, and the folder of their cache."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import tensorflow as tf

from darkroom.input.damage import check_not_replaced, name_batches
from darkroom.input.pipeline import count_batches, make_eval_dataset, make_train_dataset
from darkroom.input.records import make_cache_folder
from darkroom.input.source import ImageSource
from darkroom.options.input import MEMORY_CACHE, NO_CACHE, InputOptions
from darkroom.profiling.meter import InputMeter
from darkroom.training.devices.placement import Placement
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

    placement: Placement
    options: InputOptions
    training: ImageSource
    evaluation: ImageSource
    meter: InputMeter
    balance: Balance | None = None

    def make_training(self, epoch: int, step: int) -> Any:
        """Returns the batches of an epoch from a step on."""
        source = self.balance.sample(self.training) if self.balance else self.training
        # Without the length that `input_fn` sets: with it, Keras opens another iterator at the end
        # of each epoch, which takes 50 ms.
        batches = make_train_dataset(source, self.options, epoch=epoch, skip_batches=step)
        batches = self.balance.weigh_training(batches) if self.balance else batches
        batches = self.meter.watch(batches)
        return self.placement.distribute(batches, self.options.batch_size)

    def name_images(self, epoch: int, batches: range) -> list[str]:
        """Returns the names of the images that this process has in some batches of an epoch."""
        source = self.balance.sample(self.training) if self.balance else self.training
        return name_batches(source, self.options, epoch, batches)

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
