"""The state of a training run on disk: checkpoints, best weights and history."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from darkroom import progress, storage
from darkroom.errors import UsageError

HISTORY_FILE = "history.json"
CHECKPOINTS_FOLDER = "checkpoints"
_MONITOR = "val_loss"

History = list[dict[str, float]]


class TrainingRun:
    """A run that goes on where it stopped: the epochs done, and when to stop early.

    Attributes:
        folder: Where checkpoints and `history.json` are kept.
        epochs: Epochs in all, those already done included.
        history: One entry an epoch: `epoch` from 1, and Keras's losses and metrics by name.
    """

    def __init__(
        self, model: Any, folder: str, *, epochs: int, early_stopping_patience: int
    ) -> None:
        """Restores the last checkpoint in `folder` if there is one.

        Args:
            model: A compiled Keras model whose weights and optimizer are built.
            folder: Where checkpoints and `history.json` are kept.
            epochs: Epochs in all, those already done included.
            early_stopping_patience: Epochs without a lower loss on the eval split after which the
                run is finished and its best weights are taken; 0: never.

        Raises:
            UsageError: The checkpoint is of another model.
        """
        self._model = model
        self.folder = folder
        self.epochs = epochs
        self._patience = early_stopping_patience
        # The history is part of the checkpoint, so that weights and epoch can never disagree.
        with tf.device("/CPU:0"):
            self._saved_history = tf.Variable("[]", dtype=tf.string)
        self._checkpoint = tf.train.Checkpoint(
            model=model, optimizer=model.optimizer, history=self._saved_history
        )
        self._manager = tf.train.CheckpointManager(
            self._checkpoint, storage.join(folder, CHECKPOINTS_FOLDER), max_to_keep=1
        )
        self._best = tf.train.Checkpoint(model=model)
        self._best_path = storage.join(folder, "best", "weights")
        self.history: History = self._restore()

    @property
    def is_finished(self) -> bool:
        """Whether all epochs are done or early stopping applies."""
        return len(self.history) >= self.epochs or self._is_stalled

    @property
    def _is_stalled(self) -> bool:
        return bool(self._patience) and len(self.history) - self._best_epoch >= self._patience

    @property
    def _best_epoch(self) -> int:
        """The epoch, from 1, with the lowest loss on the eval split; 0 before the first."""
        # A loss that is not a number is no best one.
        losses = [entry[_MONITOR] for entry in self.history]
        losses = [loss if math.isfinite(loss) else math.inf for loss in losses]
        return losses.index(min(losses)) + 1 if losses else 0

    def end_epoch(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Writes down the end of an epoch; Keras counts them from 0."""
        entry = {name: float(value) for name, value in sorted(logs.items())}
        self.history.append({"epoch": epoch + 1, **entry})
        if self._best_epoch == len(self.history):
            self._best.write(self._best_path)
        self._saved_history.assign(json.dumps(self.history))
        self._manager.save()
        self._write_history()
        self._model.stop_training = self._is_stalled
        progress.advance(epoch + 1, self.epochs, "epochs")

    def restore_best(self) -> None:
        """Takes the best weights when early stopping is on."""
        if self._patience:
            self._best.read(self._best_path).expect_partial()

    def _restore(self) -> History:
        latest = self._manager.latest_checkpoint
        if latest is None:
            return []
        try:
            self._checkpoint.restore(latest).assert_existing_objects_matched()
        except (AssertionError, ValueError) as error:
            raise UsageError(
                f"The checkpoint {latest} is of another model, image size or number of labels.",
                "Use another folder for this run, or delete that one.",
            ) from error
        history: History = json.loads(self._saved_history.numpy())
        return history

    def _write_history(self) -> None:
        text = json.dumps(self.history, indent=1) + "\n"
        storage.write_bytes(storage.join(self.folder, HISTORY_FILE), text.encode())
