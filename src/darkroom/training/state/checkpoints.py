"""The state of a training: loaded from its last checkpoint, checked, and saved in the next one."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from darkroom import storage
from darkroom.errors import OutputError, UsageError
from darkroom.evaluation.report.facts import HistoryEntry
from darkroom.options.fields import FIXED, LEARNED, ORDER, list_options
from darkroom.options.training import TrainingOptions
from darkroom.runtime.json_values import parse_json
from darkroom.training.state.course import Course, TimeBudget, plan_phases
from darkroom.training.state.folder import CHECKPOINTS_FOLDER

_STATE_KEY = "state/.ATTRIBUTES/VARIABLE_VALUE"


@dataclass(kw_only=True)
class TrainingState(Course):
    """The course of a training, and its identity. `TrainingRun` alone changes and saves it.

    Attributes:
        folder: Its folder.
        data: Identifies the training data.
        eval_data: Identifies the evaluation data, whose loss decides which epoch is the best.
        checkpoint: The path of the checkpoint that it was loaded from; empty for a new training,
            and once the next phase begins.
        changes: Which options have changed since then, as in "seed was 1, now 2".
    """

    folder: str
    data: str
    eval_data: str
    checkpoint: str = ""
    changes: str = ""

    @classmethod
    def load(
        cls,
        folder: str,
        options: TrainingOptions,
        data: str,
        eval_data: str,
        budget: TimeBudget,
        num_images: tuple[int, int],
    ) -> TrainingState:
        """Returns the state in the last checkpoint of a folder; that of a new training without one.

        Args:
            folder: The folder of the training.
            options: The options of the training now.
            data: Identifies the training data.
            eval_data: Identifies the evaluation data.
            budget: Counts the time of the training. It resumes with the checkpoint's count.
            num_images: Number of images of the train and of the eval split.

        Raises:
            OutputError: The checkpoint was not written by darkroom, belongs to a training on other
                data, or an option has changed that must not.
            UsageError: It is within an epoch, and the order of the batches would change.
        """
        state = cls(
            folder=folder,
            options=options,
            data=data,
            eval_data=eval_data,
            budget=budget,
            num_images=num_images,
            has_gpu=bool(tf.config.list_physical_devices("GPU")),
            phase=plan_phases(options)[0].name,
        )
        if path := find_checkpoint(folder):
            try:
                saved = parse_json(tf.train.load_checkpoint(path).get_tensor(_STATE_KEY), _Saved)
            except (ValueError, AttributeError, tf.errors.NotFoundError) as error:
                raise _build_foreign_error(posixpath.dirname(path)) from error
            state._resume(path, saved)
        return state

    @property
    def way_out(self) -> str:
        """What to do with a folder whose training cannot resume."""
        return f"Use another folder for this run, or delete {self.folder}."

    def to_json(self) -> str:
        """Returns the content of a checkpoint."""
        saved = {
            "data": self.data,
            "eval_data": self.eval_data,
            "options": self.options.to_resume(),
            "budget": self.budget.to_dict(),
            "history": self.history,
            "phase": self.phase,
            "step": self.step,
        }
        return json.dumps(saved)

    def _resume(self, path: str, saved: _Saved) -> None:
        """Takes over the content of a checkpoint, after checks."""
        if saved.data != self.data:
            raise OutputError(
                f"The checkpoint {path} belongs to a training on different data.", self.way_out
            )
        if saved.eval_data != self.eval_data:
            raise OutputError(
                f"The checkpoint {path} was evaluated on different data, so its epochs cannot be "
                "compared with further ones.",
                self.way_out,
            )
        if changed := self._describe_changes(saved, FIXED):
            raise OutputError(
                f"The checkpoint {path} belongs to another training: {changed}.", self.way_out
            )
        if saved.step and (changed := self._describe_changes(saved, ORDER)):
            raise UsageError(
                f"The checkpoint {path} is within an epoch, after {saved.step} batches, "
                f"and the order of the rest would change: {changed}.",
                "Resume with the same options, or use another folder.",
            )
        self.budget.resume(saved.budget)
        self.history = [*saved.history]
        self.phase, self.step, self.checkpoint = saved.phase, saved.step, path
        self.changes = self._describe_changes(saved, LEARNED, ORDER)

    def _describe_changes(self, saved: _Saved, *resumes: str) -> str:
        """Says which options differ from those of a checkpoint, of all whose `resume` is given."""
        # As they come back from a checkpoint, where tuples are lists.
        now = json.loads(json.dumps(self.options.to_resume()))
        names = [
            each.name for each in list_options(TrainingOptions) if each.option.resume in resumes
        ]
        return ", ".join(
            f"{name} was {_spell(saved.options.get(name))}, now {_spell(now[name])}"
            for name in names
            if saved.options.get(name) != now[name]
        )


@dataclass(frozen=True)
class _Saved:
    """The content of a checkpoint's state."""

    data: str
    eval_data: str
    options: Mapping[str, Any]
    budget: Mapping[str, Any]
    history: Sequence[HistoryEntry]
    phase: str
    step: int


def find_checkpoint(folder: str) -> str | None:
    """Returns the path of the last checkpoint of a training; None if there is none.

    Raises:
        OutputError: The list of checkpoints names files elsewhere, which the next one would delete.
    """
    inside = storage.join(folder, CHECKPOINTS_FOLDER)
    listed = tf.train.get_checkpoint_state(inside)
    paths = [] if listed is None else [*listed.all_model_checkpoint_paths]
    if any(posixpath.dirname(path) != inside for path in paths):
        raise _build_foreign_error(inside)
    latest: str | None = tf.train.latest_checkpoint(inside)
    return latest


def _build_foreign_error(inside: str) -> OutputError:
    return OutputError(
        f"{inside} has checkpoints that darkroom did not write.",
        "Choose another --checkpoint-dir, which may be new.",
    )


def _spell(value: Any) -> str:
    """Returns a value as the command line spells it."""
    if isinstance(value, list):
        return "x".join(map(str, value))
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
