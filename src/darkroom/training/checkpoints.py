"""A training run on disk: checkpoints, best weights, history, TensorBoard's files."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from darkroom import storage
from darkroom.errors import DataError, OutputError, UsageError
from darkroom.options.input import NO_CACHE
from darkroom.options.training import TrainingOptions
from darkroom.runtime import progress
from darkroom.training.course.budget import Budget
from darkroom.training.course.identity import Identity, describe_way_out
from darkroom.training.course.phases import count_epochs, is_head
from darkroom.training.course.scalars import EpochScalars
from darkroom.training.folder import CHECKPOINTS_FOLDER, read_checkpoint
from darkroom.training.history import (
    BEST_FOLDER,
    MONITOR,
    PHASE,
    WHOLE,
    History,
    find_best_epoch,
    write_best_epoch,
    write_history,
)

# Options that must not change when a training resumes: they decide the model and its input.
_FIXED = ("model", "weights", "image_size", "resize")
# Options that may change; the run says so.
_RATE = ("learning_rate", "schedule", "warmup_ratio", "weight_decay", "clip_norm")
_LEARNED = ("augment", "batch_size", "precision", "seed", *_RATE)
# Options that must not change when a training resumes within an epoch.
_ORDER = ("batch_size", "shuffle_records", "shuffle_bytes", "ram_budget_bytes", "seed")

# In the state of a checkpoint.
BUDGET = "budget"
# Of the whole model, and of its head alone.
_BEST_WEIGHTS, _BEST_HEAD = "weights", "head"


class TrainingRun:
    """A run that resumes with the next batch after it stopped, and keeps its best weights.

    A training with several phases has a run for each, in turn, in one folder with one history.

    Attributes:
        model: The model that is trained.
        folder: The folder of checkpoints and `history.json`.
        phase: The name of the phase.
        epochs: Number of all epochs of the phase, with those that are done.
        history: One entry an epoch: `epoch` from 1, and Keras's losses and metrics by name.
        step: Number of batches done in the current epoch.
    """

    def __init__(
        self,
        model: Any,
        folder: str,
        *,
        epochs: int,
        early_stopping_patience: int,
        checkpoint_steps: int = 0,
        data: str = "",
        eval_data: str = "",
        fixed: Mapping[str, Any] | None = None,
        learned: Mapping[str, Any] | None = None,
        order: Mapping[str, Any] | None = None,
        is_chief: bool = True,
        phase: str = WHOLE,
        history: History | None = None,
        budget: Budget | None = None,
    ) -> None:
        """Restores the last checkpoint in `folder` if there is one.

        Args:
            model: A compiled Keras model with all variables of its weights, optimizer and metrics.
            folder: The folder of checkpoints and `history.json`.
            epochs: Number of all epochs of the phase, with those that are done.
            early_stopping_patience: The run is finished after this number of epochs without a lower
                loss on the eval split; 0: never.
            checkpoint_steps: Batches between two checkpoints within an epoch; 0: none within it.
            data: Identifies the training data.
            eval_data: Identifies the evaluation data, whose loss decides which epoch is the best.
            fixed: Values for JSON, by name, that must not change.
            learned: The same, that may change; the run then says so.
            order: The same, that must not change within an epoch.
            is_chief: Whether this process writes into `folder`. Other processes save elsewhere,
                because all must take part to read values that devices share.
            phase: The name of the phase of this run.
            history: That of the phases before, if this one has not begun or is over; then no
                checkpoint is restored.
            budget: Counts the time of the training, which the checkpoints keep.

        Raises:
            OutputError: The checkpoint is not darkroom's, from a training on different data or with
                other fixed values, or the best weights are missing.
            UsageError: The checkpoint does not fit the model, or it is within an epoch with another
                order.
        """
        self.model = model
        self.folder = folder
        self.epochs = epochs
        self.history: History = history or []
        self.step = 0
        self._way_out = describe_way_out(folder)
        self._patience = early_stopping_patience
        self._checkpoint_steps = checkpoint_steps
        self._identity = Identity(data, eval_data, fixed or {}, learned or {}, order or {})
        self._is_chief = is_chief
        self.phase = phase
        self._budget = budget or Budget()
        self._scalars = EpochScalars(folder)
        self._own = None if is_chief else tempfile.TemporaryDirectory()
        weights = _list_variables(model)
        # Position and history are part of the checkpoint, so they always fit the weights.
        with tf.device("/CPU:0"):
            self._state = tf.Variable("{}", dtype=tf.string)
        # Lists of all variables: tf.train.Checkpoint does not find the seeds of random layers in a
        # Keras model, and a dropout must resume with the same random numbers.
        self._checkpoint = tf.train.Checkpoint(
            model=weights,
            # The learning rate is an option, not a learned value.
            optimizer=_list_variables(model.optimizer, without="learning_rate"),
            metrics=[variable.value for variable in model.metrics_variables],
            state=self._state,
        )
        self._best = tf.train.Checkpoint(model=weights)
        self._manager = tf.train.CheckpointManager(
            self._checkpoint, self._path(CHECKPOINTS_FOLDER), max_to_keep=1
        )
        if history is None:
            self._restore()

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
        return self._end_step if self._checkpoint_steps else None

    def _end_step(self, step: int) -> None:
        is_due = step // self._checkpoint_steps > self.step // self._checkpoint_steps
        self.step = step
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
        self.step = 0
        # The checkpoint comes first. Otherwise a run that stops here could have best weights of an
        # epoch that is not in the history.
        self._save()
        if self._is_at_best:
            self._write_best()
        if self._is_chief:
            write_history(self.folder, self.history)
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
            write_history(self.folder, self.history)
            write_best_epoch(self.folder, self.history, exported)

    def _write_best(self) -> None:
        self._best.write(self._path(BEST_FOLDER, self._best_name))
        if self._is_chief:
            write_best_epoch(self.folder, self.history)

    @property
    def _best_name(self) -> str:
        return _BEST_HEAD if is_head(self.phase) else _BEST_WEIGHTS

    def _find_best_weights(self) -> str:
        """Returns the path of the best weights: of this process, else of the chief."""
        own = self._path(BEST_FOLDER, self._best_name)
        if storage.exists(f"{own}.index"):
            return own
        return storage.join(self.folder, BEST_FOLDER, self._best_name)

    def _path(self, *parts: str) -> str:
        return storage.join(self._own.name if self._own else self.folder, *parts)

    def _save(self) -> None:
        state = {
            "history": self.history,
            "step": self.step,
            PHASE: self.phase,
            BUDGET: self._budget.to_dict(),
            **self._identity.to_dict(),
        }
        self._state.assign(json.dumps(state))
        self._manager.save()

    def _restore(self) -> None:
        found = read_checkpoint(self.folder)
        if found is None:
            return
        latest, state = found
        self._identity.check(latest, state, self.folder)
        try:
            self._checkpoint.restore(latest).assert_consumed()
        except (AssertionError, ValueError, tf.errors.InvalidArgumentError) as error:
            raise UsageError(
                f"The checkpoint {latest} belongs to another model or number of labels.",
                self._way_out,
            ) from error
        self.history, self.step = state["history"], state["step"]
        if self._is_at_best:
            # A run that stopped after its checkpoint may have left none, or incomplete ones.
            self._write_best()
        elif self.has_best and not storage.exists(f"{self._find_best_weights()}.index"):
            raise OutputError(
                f"The weights of epoch {self.best_epoch}, the best so far, are missing: "
                f"{storage.join(self.folder, BEST_FOLDER)}.",
                self._way_out,
            )
        if self.is_finished:
            return
        done = len(self.history)
        place = f"batch {self.step} of epoch {done + 1}" if self.step else f"epoch {done}"
        changed = self._identity.describe_changes(state, "learned")
        progress.note(f"Resumes after {place}{changed and f' with other options: {changed}'}.")


def _list_variables(owner: Any, without: str = "") -> list[Any]:
    return [variable.value for variable in owner.variables if variable.name != without]


def group_options(options: TrainingOptions) -> dict[str, dict[str, Any]]:
    """Returns options as values for JSON, in the groups that `TrainingRun` takes."""
    described = {
        part: {name: getattr(options, name) for name in names}
        for part, names in (("fixed", _FIXED), ("learned", _LEARNED), ("order", _ORDER))
    }
    # An older version has no such value in its checkpoints, which counts as None.
    described["fixed"] |= {"frozen": options.is_frozen or None, **options.loss_terms}
    # A cache gives records in the order of the files. It does not matter which cache it is.
    described["order"]["record_cache"] = options.record_cache != NO_CACHE
    return described
