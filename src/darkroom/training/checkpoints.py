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
from darkroom.training.folder import CHECKPOINTS_FOLDER, TENSORBOARD_FOLDER, read_checkpoint
from darkroom.training.history import (
    BEST_FOLDER,
    MONITOR,
    History,
    find_best_epoch,
    write_best_epoch,
    write_history,
)

# Options that must not change when a training resumes: they decide what the model is and sees.
_FIXED = ("model", "weights", "image_size", "resize")
# Options that may change; the run says so.
_RATE = ("learning_rate", "schedule", "warmup_ratio", "weight_decay", "clip_norm")
_LEARNED = ("augment", "batch_size", "precision", "seed", *_RATE)
# Options that must not change when a training resumes within an epoch.
_ORDER = ("batch_size", "shuffle_records", "shuffle_bytes", "ram_budget_bytes", "seed")

_BEST_WEIGHTS = "weights"
_EVALUATION_PREFIX = "val_"


class TrainingRun:
    """A run that resumes with the next batch after it stopped, and keeps its best weights.

    Attributes:
        folder: The folder of checkpoints and `history.json`.
        epochs: Number of all epochs, with those that are done.
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
    ) -> None:
        """Restores the last checkpoint in `folder` if there is one.

        Args:
            model: A compiled Keras model with all variables of its weights, optimizer and metrics.
            folder: The folder of checkpoints and `history.json`.
            epochs: Number of all epochs, with those that are done.
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

        Raises:
            OutputError: The checkpoint is not of darkroom's, from a training on other data or with
                other fixed values, or the best weights are missing.
            UsageError: The checkpoint does not fit the model, or it is within an epoch with another
                order.
        """
        self._model = model
        self.folder = folder
        self.epochs = epochs
        self.history: History = []
        self.step = 0
        self._way_out = f"Use another folder for this run, or delete {folder}."
        self._patience = early_stopping_patience
        self._checkpoint_steps = checkpoint_steps
        self._identity: dict[str, Any] = {
            "data": data,
            "eval_data": eval_data,
            "fixed": dict(fixed or {}),
            "learned": dict(learned or {}),
            "order": dict(order or {}),
        }
        self._is_chief = is_chief
        self._writers: dict[str, Any] = {}
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
        self._restore()

    @property
    def is_finished(self) -> bool:
        """Whether all epochs are done or early stopping applies."""
        done = len(self.history)
        is_stalled = self._patience > 0 and done - self.best_epoch >= self._patience
        return done >= self.epochs or is_stalled

    @property
    def best_epoch(self) -> int:
        """The epoch, from 1, with the lowest loss on the eval split; 0 if there is none yet."""
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
        self.history.append({"epoch": len(self.history) + 1, **entry})
        self.step = 0
        # The checkpoint comes first. Otherwise a run that stops here could have best weights of an
        # epoch that is not in the history.
        self._save()
        if self._is_at_best:
            self._write_best()
        if self._is_chief:
            write_history(self.folder, self.history)
            self._write_scalars({**entry, **(measured or {})})

    def restore_best(self) -> None:
        """Gives the model the weights of the best epoch, and writes which epoch that is.

        Raises:
            DataError: No epoch has a finite loss on the eval split.
        """
        if not self.best_epoch:
            raise DataError(
                f"No model: {MONITOR} is not a finite number in any of {len(self.history)} epochs.",
                "Try a lower --learning-rate in another folder.",
            )
        self._best.read(self._find_best_weights()).assert_consumed()
        if self._is_chief:
            # A run that stopped after its last checkpoint has not written these files.
            write_history(self.folder, self.history)
            write_best_epoch(self.folder, self.history)

    def _write_best(self) -> None:
        self._best.write(self._path(BEST_FOLDER, _BEST_WEIGHTS))
        if self._is_chief:
            write_best_epoch(self.folder, self.history)

    def _find_best_weights(self) -> str:
        """Returns the path of the best weights: of this process, else of the chief."""
        own = self._path(BEST_FOLDER, _BEST_WEIGHTS)
        if storage.exists(f"{own}.index"):
            return own
        return storage.join(self.folder, BEST_FOLDER, _BEST_WEIGHTS)

    def _path(self, *parts: str) -> str:
        return storage.join(self._own.name if self._own else self.folder, *parts)

    def _save(self) -> None:
        state = {"history": self.history, "step": self.step, **self._identity}
        self._state.assign(json.dumps(state))
        self._manager.save()

    def _restore(self) -> None:
        found = read_checkpoint(self.folder)
        if found is None:
            return
        latest, state = found
        self._check_identity(latest, state)
        try:
            self._checkpoint.restore(latest).assert_consumed()
        except (AssertionError, ValueError, tf.errors.InvalidArgumentError) as error:
            raise UsageError(
                f"The checkpoint {latest} is of another model or number of labels.", self._way_out
            ) from error
        self.history, self.step = state["history"], state["step"]
        if self._is_at_best:
            # A run that stopped after its checkpoint may have left none, or incomplete ones.
            self._write_best()
        elif self.best_epoch and not storage.exists(f"{self._find_best_weights()}.index"):
            raise OutputError(
                f"The weights of epoch {self.best_epoch}, the best so far, are missing: "
                f"{storage.join(self.folder, BEST_FOLDER)}.",
                self._way_out,
            )
        done = len(self.history)
        if self.is_finished:
            progress.note(f"Epoch {done} was the last one: nothing is left to train.")
            return
        place = f"batch {self.step} of epoch {done + 1}" if self.step else f"epoch {done}"
        changed = self._describe_changes(state, "learned")
        progress.note(f"Resumes after {place}{changed and f' with other options: {changed}'}.")

    def _check_identity(self, path: str, state: Mapping[str, Any]) -> None:
        """Checks that the checkpoint is of the same training and order of batches."""
        if state["data"] != self._identity["data"]:
            raise OutputError(
                f"The checkpoint {path} is of a training on other data.", self._way_out
            )
        # Checkpoints of an earlier version do not have it.
        if state.get("eval_data", self._identity["eval_data"]) != self._identity["eval_data"]:
            raise OutputError(
                f"The checkpoint {path} was evaluated on other data, so its epochs cannot be "
                "compared with further ones.",
                self._way_out,
            )
        if changed := self._describe_changes(state, "fixed"):
            raise OutputError(
                f"The checkpoint {path} is of another training: {changed}.", self._way_out
            )
        if state["step"] and (changed := self._describe_changes(state, "order")):
            raise UsageError(
                f"The checkpoint {path} is within an epoch, after {state['step']} batches, "
                f"and the order of the rest would change: {changed}.",
                "Resume with the same options, or use another folder.",
            )

    def _describe_changes(self, state: Mapping[str, Any], part: str) -> str:
        was, now = state[part], json.loads(json.dumps(self._identity[part]))
        return ", ".join(
            f"{name} was {was.get(name)}, now {now[name]}"
            for name in now
            if was.get(name) != now[name]
        )

    def _write_scalars(self, entry: Mapping[str, float]) -> None:
        """Writes values for TensorBoard, with the names that Keras's own callback uses."""
        for name, value in entry.items():
            is_evaluation = name.startswith(_EVALUATION_PREFIX)
            part = "validation" if is_evaluation else "train"
            if part not in self._writers:
                logs = storage.join(self.folder, TENSORBOARD_FOLDER, part)
                self._writers[part] = tf.summary.create_file_writer(logs)
            with self._writers[part].as_default(step=len(self.history) - 1):
                tf.summary.scalar(f"epoch_{name.removeprefix(_EVALUATION_PREFIX)}", value)
        for writer in self._writers.values():
            writer.flush()


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
