"""All steps by name. What loads it loads their descriptions, and nothing that they need."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from darkroom.errors import UsageError
from darkroom.steps.step import Step

# The module of each, in the order of the reference.
_NAMES = (
    "convert",
    "validate",
    "diff",
    "gate",
    "webhook",
    "statistics",
    "verify",
    "duplicates",
    "inspect",
    "train",
    "train_function",
    "evaluate",
    "evaluate_detector",
    "predict",
    "register",
)
STEPS: Mapping[str, Step] = {
    step.name: step for name in _NAMES for step in [import_module(f"darkroom.steps.{name}").STEP]
}


def find_step(name: str) -> Step:
    """Returns a step by the name of its component.

    Raises:
        UsageError: There is no such component.
    """
    if name not in STEPS:
        raise UsageError(
            f"There is no component {name!r}.", f"There are {', '.join(sorted(STEPS))}."
        )
    return STEPS[name]
