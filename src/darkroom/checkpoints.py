"""The state of a training run on disk: checkpoints, best weights, history, TensorBoard's files."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from darkroom import progress, storage
from darkroom.errors import OutputError, UsageError

HISTORY_FILE = "history.json"
CHECKPOINTS_FOLDER = "checkpoints"
TENSORBOARD_FOLDER = "tensorboard"
_MONITOR = "val_loss"
_EVALUATION_PREFIX = "val_"
_STATE_KEY = "state/.ATTRIBUTES/VARIABLE_VALUE"
_OTHER_FOLDER = "Use another folder for this run, or delete that one."

History = list[dict[str, float]]


class TrainingRun:
    """A run that goes on with the next batch where it stopped, and knows when to stop early.

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
                run is finished and its best weights are taken; 0: never.
            checkpoint_steps: Batches between two checkpoints within an epoch; 0: none.
            data: Identifies the training data.
            fixed: What must not change, as the size of the images; like the next two, values that
                JSON knows, by name.
            learned: What the weights follow from besides; a run that goes on with another value
                says so.
            order: What the order of the batches depends on besides the data.
            is_chief: Whether this process writes into `folder`. The others restore from it and
                save, too, as the values that devices share can only be read by all together.

        Raises:
            OutputError: The checkpoint is of a training on other data, or with something else that
                is fixed.
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
        return bool(self._patience) and len(self.history) - self._best_epoch >= self._patience

    @property
    def _best_epoch(self) -> int:
        """The epoch, from 1, with the lowest loss on the eval split; 0 before the first."""
        # A loss that is not a number is no best one.
        losses = [entry[_MONITOR] for entry in self.history]
        losses = [loss if math.isfinite(loss) else math.inf for loss in losses]
        return losses.index(min(losses)) + 1 if losses else 0

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
        if self._best_epoch == len(self.history):
            self._best.write(self._path("best", "weights"))
        self._save()
        if self._is_chief:
            self._write_history()
            self._write_scalars({**entry, **(measured or {})})
        progress.advance(len(self.history), self.epochs, "epochs")

    def restore_best(self) -> None:
        """Takes the best weights when early stopping is on; for the chief, who wrote them."""
        if self._patience and self._is_chief:
            self._best.read(self._path("best", "weights")).expect_partial()

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
        self._tell_where_it_goes_on(state)

    def _check_identity(self, path: str, state: Mapping[str, Any]) -> None:
        """Checks that the position in the epoch that was saved means the same batch here."""
        if state["data"] != self._identity["data"]:
            raise OutputError(
                f"The checkpoint {path} is of a training on other data.", _OTHER_FOLDER
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

    def _write_history(self) -> None:
        text = json.dumps(self.history, indent=1) + "\n"
        storage.write_bytes(storage.join(self.folder, HISTORY_FILE), text.encode())

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
