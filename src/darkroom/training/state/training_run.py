"""The run of a phase on disk: checkpoints, best weights, history, TensorBoard's files."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from darkroom import storage
from darkroom.errors import DataError, OutputError, UsageError
from darkroom.runtime import progress
from darkroom.training.state.checkpoints import TrainingState
from darkroom.training.state.folder import CHECKPOINTS_FOLDER
from darkroom.training.state.history import (
    BEST_FOLDER,
    MONITOR,
    PHASE,
    WHOLE,
    History,
    find_best_epoch,
    write_best_epoch,
    write_history,
)
from darkroom.training.state.plan import Phase, choose_patience, count_epochs, is_head
from darkroom.training.state.scalars import EpochScalars

# Of the whole model, and of its head alone.
_BEST_WEIGHTS, _BEST_HEAD = "weights", "head"


class TrainingRun:
    """A run that resumes with the next batch after it stopped, and keeps its best weights.

    A training with several phases has a run for each, in turn, in one folder with one history.

    Attributes:
        model: The model that is trained.
        state: The state of the training, which its runs share.
        phase: The name of the phase.
        epochs: Number of all epochs of the phase, with those that are done.
    """

    def __init__(
        self, model: Any, state: TrainingState, phase: Phase, *, is_chief: bool = True
    ) -> None:
        """Restores the checkpoint that `state` was loaded from, if it is of this phase.

        Args:
            model: A compiled Keras model with all variables of its weights, optimizer and metrics.
            state: The state of the training.
            phase: The phase.
            is_chief: Whether this process writes into the folder. Other processes save elsewhere,
                because all must take part to read values that devices share.

        Raises:
            OutputError: The best weights are missing.
            UsageError: The checkpoint does not fit the model.
        """
        self.model = model
        self.state = state
        self.phase, self.epochs = phase
        self._patience = choose_patience(state.options, self.phase)
        self._is_chief = is_chief
        self._scalars = EpochScalars(state.folder)
        self._own = None if is_chief else tempfile.TemporaryDirectory()
        weights = _list_variables(model)
        # State and weights are in one checkpoint, so they always fit each other.
        with tf.device("/CPU:0"):
            self._saved = tf.Variable("{}", dtype=tf.string)
        # Lists of all variables: tf.train.Checkpoint does not find the seeds of random layers in a
        # Keras model, and a dropout must resume with the same random numbers.
        self._checkpoint = tf.train.Checkpoint(
            model=weights,
            # The learning rate is an option, not a learned value.
            optimizer=_list_variables(model.optimizer, without="learning_rate"),
            metrics=[variable.value for variable in model.metrics_variables],
            state=self._saved,
        )
        self._best = tf.train.Checkpoint(model=weights)
        self._manager = tf.train.CheckpointManager(
            self._checkpoint, self._path(CHECKPOINTS_FOLDER), max_to_keep=1
        )
        if state.checkpoint and state.phase == self.phase:
            self._restore()

    @property
    def history(self) -> History:
        """The entries of all epochs of the training."""
        return self.state.history

    @property
    def step(self) -> int:
        """Number of batches done in the current epoch."""
        return self.state.step

    @property
    def is_finished(self) -> bool:
        """Whether all epochs of the phase are done or early stopping applies."""
        return count_epochs(self.history, self.phase) >= self.epochs or self.is_stalled

    @property
    def is_stalled(self) -> bool:
        """Whether early stopping applies."""
        done, in_phase = len(self.history), count_epochs(self.history, self.phase)
        return 0 < self._patience <= done - max(self.best_epoch, done - in_phase)

    @property
    def best_epoch(self) -> int:
        """The epoch, from 1, with the lowest loss on the eval split; 0 before the first."""
        return find_best_epoch(self.history)

    @property
    def _is_at_best(self) -> bool:
        """Whether the best epoch has just ended, so that the model has its weights."""
        return self.step == 0 and 0 < self.best_epoch == len(self.history)

    @property
    def step_hook(self) -> Callable[[int], None] | None:
        """A function that takes the number of batches done in the epoch; None if not needed."""
        return self._end_step if self.state.options.checkpoint_steps else None

    def _end_step(self, step: int) -> None:
        every = self.state.options.checkpoint_steps
        is_due = step // every > self.step // every
        self.state.step = step
        if is_due:
            self._save()

    def end_epoch(
        self, logs: Mapping[str, float], measured: Mapping[str, float] | None = None
    ) -> None:
        """Saves the end of an epoch.

        Args:
            logs: Losses and metrics, which are the same in every run.
            measured: Other values for TensorBoard, which differ from run to run.
        """
        entry = {name: float(value) for name, value in sorted(logs.items())}
        phase = {PHASE: self.phase} if self.phase else {}
        self.history.append({"epoch": len(self.history) + 1, **phase, **entry})
        self.state.step = 0
        # The checkpoint comes first. Otherwise a run that stops here could have best weights of an
        # epoch that is not in the history.
        self._save()
        if self._is_at_best:
            self._write_best()
        if self._is_chief:
            write_history(self.state.folder, self.history)
            self._scalars.write(len(self.history) - 1, {**entry, **(measured or {})})

    @property
    def has_best(self) -> bool:
        """Whether the best epoch trained the same weights as this phase: the whole, or the head."""
        if not self.best_epoch:
            return False
        phase = self.history[self.best_epoch - 1].get(PHASE, WHOLE)
        return is_head(phase) == is_head(self.phase)

    def restore_best(self) -> None:
        """Gives the model the weights of the best epoch.

        Raises:
            DataError: No epoch has a finite loss on the eval split.
        """
        if not self.best_epoch:
            raise DataError(
                f"No model: {MONITOR} is not a finite number in any of {len(self.history)} epochs.",
                "Try a lower --learning-rate in another folder.",
            )
        self._best.read(self._find_best_weights()).assert_consumed()

    def end(self, exported: int) -> None:
        """Writes the history, and which epoch is exported.

        A run that stopped after its last checkpoint has not written these files.
        """
        if self._is_chief:
            write_history(self.state.folder, self.history)
            write_best_epoch(self.state.folder, self.history, exported)

    def _write_best(self) -> None:
        self._best.write(self._path(BEST_FOLDER, self._best_name))
        if self._is_chief:
            write_best_epoch(self.state.folder, self.history)

    @property
    def _best_name(self) -> str:
        return _BEST_HEAD if is_head(self.phase) else _BEST_WEIGHTS

    def _find_best_weights(self) -> str:
        """Returns the path of the best weights: of this process, else of the chief."""
        own = self._path(BEST_FOLDER, self._best_name)
        if storage.exists(f"{own}.index"):
            return own
        return storage.join(self.state.folder, BEST_FOLDER, self._best_name)

    def _path(self, *parts: str) -> str:
        return storage.join(self._own.name if self._own else self.state.folder, *parts)

    def _save(self) -> None:
        self._saved.assign(self.state.to_json())
        self._manager.save()

    def _restore(self) -> None:
        state = self.state
        try:
            self._checkpoint.restore(state.checkpoint).assert_consumed()
        except (AssertionError, ValueError, tf.errors.InvalidArgumentError) as error:
            raise UsageError(
                f"The checkpoint {state.checkpoint} is of another model or number of labels.",
                state.way_out,
            ) from error
        if self._is_at_best:
            # A run that stopped after its checkpoint may have left none, or incomplete ones.
            self._write_best()
        elif self.has_best and not storage.exists(f"{self._find_best_weights()}.index"):
            raise OutputError(
                f"The weights of epoch {self.best_epoch}, the best so far, are missing: "
                f"{storage.join(state.folder, BEST_FOLDER)}.",
                state.way_out,
            )
        if self.is_finished:
            return
        done = len(self.history)
        place = f"batch {self.step} of epoch {done + 1}" if self.step else f"epoch {done}"
        changed = f" with other options: {state.changes}" if state.changes else ""
        progress.note(f"Resumes after {place}{changed}.")


def _list_variables(owner: Any, without: str = "") -> list[Any]:
    return [variable.value for variable in owner.variables if variable.name != without]
