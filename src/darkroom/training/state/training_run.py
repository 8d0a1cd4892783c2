"""Keeps the state of a training: checkpoints, best weights, history, TensorBoard's files."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from darkroom import storage
from darkroom.errors import DataError, OutputError, UsageError
from darkroom.runtime import progress
from darkroom.training.state.checkpoints import TrainingState
from darkroom.training.state.course import Phase, is_head
from darkroom.training.state.folder import CHECKPOINTS_FOLDER
from darkroom.training.state.history import (
    ALL_PHASE,
    BEST_FOLDER,
    MONITOR,
    PHASE,
    TENSORBOARD_FOLDER,
    TOP_PHASE,
    History,
    write_best_epoch,
    write_history,
)

# Of the whole model, and of its head alone.
_BEST_WEIGHTS, _BEST_HEAD = "weights", "head"
_EVALUATION_PREFIX = "val_"


class TrainingRun:
    """The run of a phase: the one place where the state of a training is changed and saved.

    It resumes with the next batch after it stopped, and keeps its best weights. A training with
    several phases has a run for each, in turn, in one folder with one history.

    Attributes:
        model: The model that is trained.
        state: The state of the training, which its runs share.
        phase: The name of the phase.
    """

    def __init__(
        self, model: Any, state: TrainingState, phase: Phase, *, is_chief: bool = True
    ) -> None:
        """Begins a phase, or restores the checkpoint that `state` was loaded from if it is in it.

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
        self.phase = phase.name
        self._is_chief = is_chief
        self._writers: dict[str, Any] = {}
        self._own = None if is_chief else tempfile.TemporaryDirectory()
        # State and weights are in one checkpoint, so they always fit each other.
        with tf.device("/CPU:0"):
            self._saved = tf.Variable("{}", dtype=tf.string)
        self._checkpoint = tf.train.Checkpoint(
            model=_list_variables(model),
            # The learning rate is an option, not a learned value.
            optimizer=_list_variables(model.optimizer, without="learning_rate"),
            metrics=[variable.value for variable in model.metrics_variables],
            state=self._saved,
        )
        self._manager = tf.train.CheckpointManager(
            self._checkpoint, self._path(CHECKPOINTS_FOLDER), max_to_keep=1
        )
        if state.phase != self.phase:
            # The checkpoint is of the phase before.
            state.phase, state.checkpoint = self.phase, ""
        if self.phase in (TOP_PHASE, ALL_PHASE):
            # With the time that is left, it would be another number after each epoch.
            state.budget.fine_tune_epochs = state.choose_fine_tuning()
        if state.checkpoint:
            self._restore(phase)

    @property
    def history(self) -> History:
        """The entries of all epochs of the training."""
        return self.state.history

    @property
    def step(self) -> int:
        """Number of batches done in the current epoch."""
        return self.state.step

    @property
    def best_epoch(self) -> int:
        """The epoch, from 1, with the lowest loss on the eval split; 0 before the first."""
        return self.state.best_epoch

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

    def keep_view_seconds(self, seconds: float) -> None:
        """Keeps how long a frozen base takes for a view of an image; 0 if it was not measured."""
        self.state.budget.view_seconds = seconds or self.state.budget.view_seconds

    def end_epoch(
        self,
        logs: Mapping[str, float],
        measured: Mapping[str, float] | None = None,
        seconds: float | None = None,
    ) -> None:
        """Saves the end of an epoch.

        Args:
            logs: Losses and metrics, which are the same in every run.
            measured: Other values for TensorBoard, which differ from run to run.
            seconds: How long it took; None if it was resumed.
        """
        entry = {name: float(value) for name, value in sorted(logs.items())}
        phase = {PHASE: self.phase} if self.phase else {}
        self.history.append({"epoch": len(self.history) + 1, **phase, **entry})
        self.state.step = 0
        if seconds is not None:
            self.state.budget.epoch_seconds[self.phase] = seconds
        # The checkpoint comes first. Otherwise a run that stops here could have best weights of an
        # epoch that is not in the history.
        self._save()
        if self._is_at_best:
            self._write_best()
        if self._is_chief:
            write_history(self.state.folder, self.history)
            self._write_scalars({**entry, **(measured or {})})

    def restore_best(self, head: Any = None) -> None:
        """Restores the weights of the best epoch.

        Args:
            head: The model of the head, where that epoch trained it alone, before this phase; None
                for the model of this run.

        Raises:
            DataError: No epoch has a finite loss on the eval split.
        """
        if not self.best_epoch:
            raise DataError(
                f"No model: {MONITOR} is not a finite number in any of {len(self.history)} epochs.",
                "Try a lower --learning-rate in another folder.",
            )
        weights = _make_checkpoint(self.model if head is None else head)
        weights.read(self._find_best_weights()).assert_consumed()

    def end(self, exported: int) -> None:
        """Writes the history, and which epoch is exported.

        A run that stopped after its last checkpoint has not written these files.
        """
        if self._is_chief:
            write_history(self.state.folder, self.history)
            write_best_epoch(self.state.folder, self.history, exported)

    def _restore(self, phase: Phase) -> None:
        """Restores model, optimizer and metrics, and makes sure that the best weights are there.

        Raises:
            UsageError: The checkpoint does not fit the model.
            OutputError: The best weights are missing.
        """
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
        elif self.best_epoch and not storage.exists(f"{self._find_best_weights()}.index"):
            raise OutputError(
                f"The weights of epoch {self.best_epoch}, the best so far, are missing: "
                f"{storage.join(state.folder, BEST_FOLDER)}.",
                state.way_out,
            )
        if state.is_finished(phase):
            return
        done = len(self.history)
        place = f"batch {self.step} of epoch {done + 1}" if self.step else f"epoch {done}"
        changed = f" with other options: {state.changes}" if state.changes else ""
        progress.note(f"Resumes after {place}{changed}.")

    @property
    def _is_at_best(self) -> bool:
        """Whether the best epoch has just ended, so that the model has its weights."""
        return self.step == 0 and 0 < self.best_epoch == len(self.history)

    def _find_best_weights(self) -> str:
        """Returns the path of the best weights: of this process, else of the chief."""
        name = _BEST_HEAD if is_head(self.state.best_phase) else _BEST_WEIGHTS
        own = self._path(BEST_FOLDER, name)
        if storage.exists(f"{own}.index"):
            return own
        return storage.join(self.state.folder, BEST_FOLDER, name)

    def _save(self) -> None:
        self._saved.assign(self.state.to_json())
        self._manager.save()

    def _write_best(self) -> None:
        name = _BEST_HEAD if is_head(self.phase) else _BEST_WEIGHTS
        _make_checkpoint(self.model).write(self._path(BEST_FOLDER, name))
        if self._is_chief:
            write_best_epoch(self.state.folder, self.history)

    def _write_scalars(self, values: Mapping[str, float]) -> None:
        """Writes the values of the last epoch for TensorBoard, as Keras's own callback does."""
        for name, value in values.items():
            part = "validation" if name.startswith(_EVALUATION_PREFIX) else "train"
            if part not in self._writers:
                logs = storage.join(self.state.folder, TENSORBOARD_FOLDER, part)
                self._writers[part] = tf.summary.create_file_writer(logs)
            with self._writers[part].as_default(step=len(self.history) - 1):
                tf.summary.scalar(f"epoch_{name.removeprefix(_EVALUATION_PREFIX)}", value)
        for writer in self._writers.values():
            writer.flush()

    def _path(self, *parts: str) -> str:
        return storage.join(self._own.name if self._own else self.state.folder, *parts)


def _make_checkpoint(model: Any) -> Any:
    return tf.train.Checkpoint(model=_list_variables(model))


def _list_variables(owner: Any, without: str = "") -> list[Any]:
    """Returns all variables: tf.train.Checkpoint does not find the seeds of random layers.

    A dropout must resume with the same random numbers.
    """
    return [variable.value for variable in owner.variables if variable.name != without]
