"""The identity of a training in its checkpoint, and whether another training may resume it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from darkroom.errors import OutputError, UsageError

# Options that are kept under another name, or as yes or no.
_NAMES = {"frozen": "freeze"}
_TRUE = {"frozen": "base", "record_cache": "a cache"}
_SMOOTHING = "label_smoothing"


@dataclass(frozen=True)
class Identity:
    """The identity of a training.

    Attributes:
        data: Identifies the training data.
        eval_data: Identifies the evaluation data, whose loss decides which epoch is the best.
        fixed: Values for JSON, by name, that must not change.
        learned: The same, that may change; the run then says so.
        order: The same, that must not change within an epoch.
    """

    data: str = ""
    eval_data: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    learned: Mapping[str, Any] = field(default_factory=dict)
    order: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Returns the identity as values that JSON knows."""
        return dataclasses.asdict(self)

    def check(self, path: str, state: Mapping[str, Any], folder: str) -> None:
        """Checks that a checkpoint belongs to the same training and order of batches.

        Args:
            path: The checkpoint.
            state: Its state.
            folder: The folder of the training.

        Raises:
            OutputError: It belongs to another training, or to one on different data.
            UsageError: It is within an epoch with another order.
        """
        way_out = describe_way_out(folder)
        if state["data"] != self.data:
            raise OutputError(
                f"The checkpoint {path} belongs to a training on different data.", way_out
            )
        if state["eval_data"] != self.eval_data:
            raise OutputError(
                f"The checkpoint {path} was evaluated on different data, so its epochs cannot be "
                "compared with further ones.",
                way_out,
            )
        if changed := self.describe_changes(state, "fixed"):
            raise OutputError(
                f"The checkpoint {path} belongs to another training: {changed}.", way_out
            )
        if state["step"] and (changed := self.describe_changes(state, "order")):
            raise UsageError(
                f"The checkpoint {path} is within an epoch, after {state['step']} batches, "
                f"and the order of the rest would change: {changed}.",
                "Resume with the same options, or use another folder.",
            )

    def describe_changes(self, state: Mapping[str, Any], part: str) -> str:
        """Returns which values of a group differ, as in "seed was 1, now 2"; or nothing."""
        was, now = state[part], json.loads(json.dumps(getattr(self, part)))
        return ", ".join(
            f"{_NAMES.get(name, name)} was {_spell(name, was.get(name))}, "
            f"now {_spell(name, now[name])}"
            for name in now
            if was.get(name) != now[name]
        )


def _spell(name: str, value: Any) -> str:
    """Returns a value as the command line spells it."""
    if isinstance(value, bool):
        return _TRUE.get(name, "yes") if value else "none"
    if isinstance(value, list):
        return "x".join(map(str, value))
    if value is None:
        return "0" if name == _SMOOTHING else "none"
    return str(value)


def describe_way_out(folder: str) -> str:
    """Returns what to do with a folder whose training cannot resume."""
    return f"Use another folder for this run, or delete {folder}."
