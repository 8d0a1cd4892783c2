"""The time that a training takes, and how much it may take."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any


class Budget:
    """Counts the seconds of a training, also those before a restart.

    Attributes:
        minutes: How many minutes the training may take; None for any number.
        epoch_seconds: How long an epoch takes, by phase, as far as that is known.
        view_seconds: How long a frozen base takes for a view of an image; 0 if not known.
        fine_tune_epochs: The epochs after those of a frozen base, once that is decided.
    """

    def __init__(
        self, minutes: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.minutes = minutes
        self.epoch_seconds: dict[str, float] = {}
        self.view_seconds = 0.0
        self.fine_tune_epochs: int | None = None
        self._clock, self._started, self._before = clock, clock(), 0.0

    @property
    def spent(self) -> float:
        """Seconds until now."""
        return self._before + self._clock() - self._started

    @property
    def left(self) -> float:
        """Seconds that are left; infinite without a limit."""
        return math.inf if self.minutes is None else 60 * self.minutes - self.spent

    def fits(self, phase: str) -> bool:
        """Tells whether there is time for an epoch of a phase."""
        return self.epoch_seconds.get(phase, 0.0) <= self.left

    def to_dict(self) -> dict[str, Any]:
        """Returns the state for a restart, as values for JSON."""
        return {
            "seconds": self.spent,
            "minutes": self.minutes,
            "epoch_seconds": self.epoch_seconds,
            "view_seconds": self.view_seconds,
            "fine_tune_epochs": self.fine_tune_epochs,
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        """Resumes from the `to_dict` of an earlier process."""
        self._before = state["seconds"]
        self.epoch_seconds = dict(state["epoch_seconds"])
        self.view_seconds = state["view_seconds"]
        # With another limit, another number fits.
        if state["minutes"] == self.minutes:
            self.fine_tune_epochs = state["fine_tune_epochs"]
