"""Values of each epoch for TensorBoard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from darkroom import storage
from darkroom.evaluation.report.tensorboard import TENSORBOARD_FOLDER

_EVALUATION_PREFIX = "val_"


class EpochScalars:
    """Writes values with the names that Keras's own callback uses.

    Args:
        folder: The folder of a training.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._writers: dict[str, Any] = {}

    def write(self, epoch: int, values: Mapping[str, float]) -> None:
        """Writes the values of an epoch.

        Args:
            epoch: Its number, from 0.
            values: By Keras's names; those of the eval split begin with `val_`.
        """
        for name, value in values.items():
            part = "validation" if name.startswith(_EVALUATION_PREFIX) else "train"
            if part not in self._writers:
                logs = storage.join(self._folder, TENSORBOARD_FOLDER, part)
                self._writers[part] = tf.summary.create_file_writer(logs)
            with self._writers[part].as_default(step=epoch):
                tf.summary.scalar(f"epoch_{name.removeprefix(_EVALUATION_PREFIX)}", value)
        for writer in self._writers.values():
            writer.flush()
