"""The state of a training run on disk: checkpoints, best weights, history, TensorBoard's files."""

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
from darkroom.training.history import (
    BEST_FOLDER,
    MONITOR,
    History,
    find_best_epoch,
    write_best_epoch,
    write_history,
)

# What the model is, and what it sees: with another one the weights would be those of two models.
_FIXED = ("model", "weights", "image_size", "resize")
_LEARNED = ("augment", "batch_size", "learning_rate", "precision", "seed")
_ORDER = ("batch_size", "shuffle_records", "shuffle_bytes", "ram_budget_bytes", "seed")

CHECKPOINTS_FOLDER = "checkpoints"
TENSORBOARD_FOLDER = "tensorboard"
_BEST_WEIGHTS = "weights"
_EVALUATION_PREFIX = "val_"
_STATE_KEY = "state/.ATTRIBUTES/VARIABLE_VALUE"
_OTHER_FOLDER = "Use another folder for this run, or delete that one."


class TrainingRun:
    """A run that goes on with the next batch where it stopped, and keeps its best weights.

    Attributes:
        folder: Where checkpoints and `history.json` are kept.
        epochs: Epochs in all, those already done included.
        history: One entry an epoch: `epoch` from 1, and Keras's losses and metrics by name.
        step: Batches done in the epoch that runs.
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
            model: A compiled Keras model whose weights, optimizer and metrics are built.
            folder: Where checkpoints and `history.json` are kept.
            epochs: Epochs in all, those already done included.
            early_stopping_patience: Epochs without a lower loss on the eval split after which the
                run is finished; 0: never.
            checkpoint_steps: Batches between two checkpoints within an epoch; 0: none.
            data: Identifies the training data.
            eval_data: Identifies the data whose losses tell which epoch is the best.
            fixed: What must not change, as the size of the images; like the next two, values that
                JSON knows, by name.
            learned: What the weights follow from besides; a run that goes on with another value
                says so.
            order: What the order of the batches depends on besides the data.
            is_chief: Whether this process writes into `folder`. The others restore from it and
                save, too, as the values that devices share can only be read by all together.

        Raises:
            OutputError: The checkpoint is of a training on other data, or with something else that
                is fixed, or the best weights are missing.
            UsageError: The checkpoint does not fit the model, or lies within an epoch of another
                order.
        """
        self._model = model
        self.folder = folder
        self.epochs = epochs
        self.history: History = []
        self.step = 0
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
        # Position and history are part of the checkpoint, so that weights and they always agree.
        with tf.device("/CPU:0"):
            self._state = tf.Variable("{}", dtype=tf.string)
        # Lists of all variables: what tf.train.Checkpoint finds in a Keras model has no seeds of
        # random layers, and a dropout that starts anew would not go on as without a stop.
        self._checkpoint = tf.train.Checkpoint(
            model=weights,
            # The learning rate is an option, not what was learned.
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
        return len(self.history) >= self.epochs or self._is_stalled

    @property
    def _is_stalled(self) -> bool:
        return bool(self._patience) and len(self.history) - self.best_epoch >= self._patience

    @property
    def best_epoch(self) -> int:
        """The epoch, from 1, with the lowest loss on the eval split; 0 while there is none."""
        return find_best_epoch(self.history)

    @property
    def _is_at_best(self) -> bool:
        """Whether the model has the weights of the best epoch: that one has just ended."""
        return self.step == 0 and 0 < self.best_epoch == len(self.history)

    @property
    def step_hook(self) -> Callable[[int], None] | None:
        """What to call with the batches done in the epoch; None without checkpoints within it."""
        return self._end_step if self._checkpoint_steps else None

    def _end_step(self, step: int) -> None:
        is_due = step // self._checkpoint_steps > self.step // self._checkpoint_steps
        self.step = step
        if is_due:
            self._save()

    def end_epoch(
        self, logs: Mapping[str, float], measured: Mapping[str, float] | None = None
    ) -> None:
        """Writes down the end of an epoch.

        Args:
            logs: Losses and metrics, which are the same in every run.
            measured: What is shown in TensorBoard, too, and is not.
        """
        entry = {name: float(value) for name, value in sorted(logs.items())}
        self.history.append({"epoch": len(self.history) + 1, **entry})
        self.step = 0
        # In this order: were the best weights written first, those of an epoch that is not in the
        # history could be all that is left.
        self._save()
        if self._is_at_best:
            self._write_best()
        if self._is_chief:
            write_history(self.folder, self.history)
            self._write_scalars({**entry, **(measured or {})})
        progress.advance(len(self.history), self.epochs, "epochs")

    def restore_best(self) -> None:
        """Gives the model the weights of the best epoch, and writes down which one that is.

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
            # A run that was ended after its last checkpoint has not written them.
            write_history(self.folder, self.history)
            write_best_epoch(self.folder, self.history)

    def _write_best(self) -> None:
        self._best.write(self._path(BEST_FOLDER, _BEST_WEIGHTS))
        if self._is_chief:
            write_best_epoch(self.folder, self.history)

    def _find_best_weights(self) -> str:
        """Returns where the weights are: those that this process wrote, else the chief's.

        Only what was there when the run began is read of the chief's: that is complete.
        """
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
        latest = tf.train.latest_checkpoint(storage.join(self.folder, CHECKPOINTS_FOLDER))
        if latest is None:
            return
        state = json.loads(tf.train.load_checkpoint(latest).get_tensor(_STATE_KEY))
        self._check_identity(latest, state)
        try:
            self._checkpoint.restore(latest).assert_consumed()
        except (AssertionError, ValueError, tf.errors.InvalidArgumentError) as error:
            raise UsageError(
                f"The checkpoint {latest} is of another model or number of labels.", _OTHER_FOLDER
            ) from error
        self.history, self.step = state["history"], state["step"]
        self._restore_best_weights()
        self._tell_where_it_goes_on(state)

    def _restore_best_weights(self) -> None:
        """Makes sure of the best weights before any epoch is trained."""
        if self._is_at_best:
            # A run that was ended after its checkpoint may have left none, or half of them.
            self._write_best()
        elif self.best_epoch and not storage.exists(f"{self._find_best_weights()}.index"):
            raise OutputError(
                f"The weights of epoch {self.best_epoch}, the best so far, are missing: "
                f"{storage.join(self.folder, BEST_FOLDER)}.",
                _OTHER_FOLDER,
            )

    def _check_identity(self, path: str, state: Mapping[str, Any]) -> None:
        """Checks that the position in the epoch that was saved means the same batch here."""
        if state["data"] != self._identity["data"]:
            raise OutputError(
                f"The checkpoint {path} is of a training on other data.", _OTHER_FOLDER
            )
        # The version before this one did not note it.
        if state.get("eval_data", self._identity["eval_data"]) != self._identity["eval_data"]:
            raise OutputError(
                f"The checkpoint {path} was evaluated on other data, so its epochs cannot be "
                "compared with further ones.",
                _OTHER_FOLDER,
            )
        if changed := self._describe_changes(state, "fixed"):
            raise OutputError(
                f"The checkpoint {path} is of another training: {changed}.", _OTHER_FOLDER
            )
        if state["step"] and (changed := self._describe_changes(state, "order")):
            raise UsageError(
                f"The checkpoint {path} lies within an epoch, after {state['step']} batches, "
                f"and the order of the rest would change: {changed}.",
                "Go on with the same options, or use another folder.",
            )

    def _tell_where_it_goes_on(self, state: Mapping[str, Any]) -> None:
        done = len(self.history)
        if self.is_finished:
            progress.note(f"Epoch {done} was the last one: nothing is left to train.")
            return
        place = f"batch {self.step} of epoch {done + 1}" if self.step else f"epoch {done}"
        changed = self._describe_changes(state, "learned")
        progress.note(f"Goes on after {place}{changed and f' with other options: {changed}'}.")

    def _describe_changes(self, state: Mapping[str, Any], part: str) -> str:
        was, now = state[part], json.loads(json.dumps(self._identity[part]))
        return ", ".join(
            f"{name} was {was.get(name)}, now {now[name]}"
            for name in now
            if was.get(name) != now[name]
        )

    def _write_scalars(self, entry: Mapping[str, float]) -> None:
        """Writes what TensorBoard shows, under the names of Keras's own callback."""
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


def describe_options(options: TrainingOptions) -> dict[str, dict[str, Any]]:
    """Returns options as values that JSON knows, by `TrainingRun`'s names for what they decide."""
    described = {
        part: {name: getattr(options, name) for name in names}
        for part, names in (("fixed", _FIXED), ("learned", _LEARNED), ("order", _ORDER))
    }
    # What comes out of a cache comes in the order of the files; which cache it is plays no part.
    described["order"]["cache"] = options.cache != NO_CACHE
    return described
