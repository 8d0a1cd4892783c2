"""The devices that train together: TensorFlow's strategies, and how batches are split."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf

from darkroom.errors import DataError, StorageError, UsageError
from darkroom.options.input import InputOptions
from darkroom.runtime import progress
from darkroom.runtime.gpus import explain_idle_gpu
from darkroom.training.devices.environment import Cluster, read_cluster


@dataclass(frozen=True)
class DevicePlacement:
    """Where a training runs.

    Attributes:
        strategy: TensorFlow's strategy; the default one for one device.
        cluster: This process among those that train together.
    """

    strategy: Any
    cluster: Cluster

    @property
    def is_distributed(self) -> bool:
        """Whether batches are split among devices."""
        return isinstance(
            self.strategy,
            tf.distribute.MirroredStrategy | tf.distribute.MultiWorkerMirroredStrategy,
        )

    @property
    def num_local(self) -> int:
        """Replicas in this process."""
        return int(self.strategy.num_replicas_in_sync) // self.cluster.num_workers

    def share_input(self, options: InputOptions) -> InputOptions:
        """Returns the input options for this process's share of the training data.

        Raises:
            UsageError: Batches cannot be split evenly.
        """
        if not self.is_distributed:
            return options
        replicas = int(self.strategy.num_replicas_in_sync)
        if options.batch_size % replicas:
            raise UsageError(
                f"batch_size is {options.batch_size}, which {replicas} devices cannot share.",
                f"Use a multiple of {replicas}.",
            )
        workers = self.cluster.num_workers
        return dataclasses.replace(
            options,
            batch_size=options.batch_size // workers,
            shard=(self.cluster.worker, workers),
            # Each batch has the same weight, so a smaller last batch would count too much.
            drop_remainder=True,
        )

    def count_steps(self, num_records: int, batch_size: int) -> int:
        """Returns the number of batches in an epoch. Several devices leave out the incomplete one.

        Args:
            num_records: Number of records in the train split.
            batch_size: Number of records in a batch of all devices and processes together.

        Raises:
            DataError: There are several devices and no full batch.
        """
        if not self.is_distributed:
            return math.ceil(num_records / batch_size)
        if num_records < batch_size:
            raise DataError(
                f"The train split has {num_records} records, fewer than a batch of {batch_size}, "
                "and several devices train on full batches only.",
                "Use a smaller batch_size, or the strategy 'one'.",
            )
        return num_records // batch_size

    def distribute(self, batches: tf.data.Dataset, batch_size: int) -> Any:
        """Splits this process's batches among its devices.

        Of an incomplete batch, the last devices get less or nothing. All processes must have the
        same number of batches.

        Args:
            batches: (uint8 [B, height, width, 3], labels [B] or [B, C]), and weights [B] if there
                are some.
            batch_size: B, a multiple of the number of local devices.
        """
        if not self.is_distributed:
            return batches
        size = batch_size // self.num_local

        def split(*batch: tf.Tensor) -> tf.data.Dataset:
            starts = tf.data.Dataset.range(0, batch_size, size)
            return starts.map(lambda at: tuple(each[at : at + size] for each in batch))

        parts = batches.flat_map(split).prefetch(tf.data.AUTOTUNE)
        return self.strategy.distribute_datasets_from_function(lambda _: parts)


def make_placement(strategy: str) -> DevicePlacement:
    """Makes the strategy of a training. With several workers, it waits until all have started.

    TensorFlow must know the other workers before it does anything else in a process.

    Args:
        strategy: As in `TrainingOptions`.

    Raises:
        UsageError: TF_CONFIG is wrong, or missing for "multi_worker".
    """
    cluster = read_cluster()
    num_gpus = len(tf.config.list_physical_devices("GPU"))
    packages = str(Path(tf.__file__).parents[1])
    if not num_gpus and (idle := explain_idle_gpu(tf.__version__, packages)):
        progress.warn(idle)
    if strategy == "auto":
        if cluster.num_workers > 1:
            strategy = "multi_worker"
        else:
            strategy = "mirrored" if num_gpus > 1 else "one"
    if strategy == "multi_worker":
        if cluster.num_workers == 1:
            raise UsageError(
                "strategy is 'multi_worker', but the environment variable TF_CONFIG names no other "
                "worker.",
                "Set it in every process, or use the strategy 'auto'.",
            )
        return DevicePlacement(tf.distribute.MultiWorkerMirroredStrategy(), cluster)
    if strategy == "mirrored":
        return DevicePlacement(tf.distribute.MirroredStrategy(), Cluster())
    return DevicePlacement(tf.distribute.get_strategy(), Cluster())


@contextmanager
def explain_lost_workers(placement: DevicePlacement) -> Iterator[None]:
    """Says what to do if another process is gone. TensorFlow ends the step that waits for it."""
    try:
        yield
    except (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError) as error:
        if placement.cluster.num_workers == 1:
            raise
        raise StorageError(
            f"One of {placement.cluster.num_workers} workers is gone ({type(error).__name__}).",
            "Start all of them again. They resume from the last checkpoint.",
        ) from error
