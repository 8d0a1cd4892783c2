"""Compares trainings, and ends one early."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from darkroom.training.state.training_run import TrainingRun


class EndedError(Exception):
    """Ends a training, as a kill would."""


def end_at(monkeypatch: pytest.MonkeyPatch, epoch: int, step: int) -> None:
    """Makes a training end after a batch of an epoch, both counted from 0."""
    inner = TrainingRun._end_step

    def end_step(run, done):
        inner(run, done)
        if (len(run.history), done) == (epoch, step):
            raise EndedError

    monkeypatch.setattr(TrainingRun, "_end_step", end_step)


def assert_near(
    found: list[dict[str, Any]], expected: list[dict[str, Any]], rel: float = 1e-4
) -> None:
    """Checks that two histories have the same epochs, phases, and nearly the same numbers."""
    numbers = [[dict(entry) for entry in history] for history in (found, expected)]
    phases = [[entry.pop("phase", None) for entry in history] for history in numbers]
    assert phases[0] == phases[1]
    for one, two in zip(*numbers, strict=True):
        assert one == pytest.approx(two, rel=rel)


def assert_same(one: Any, two: Any, rel: float = 1e-5) -> None:
    """Checks that two trainings have the same weights and history, up to rounding."""
    assert_near(one.history, two.history, rel)
    for left, right in zip(one.model.get_weights(), two.model.get_weights(), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-6)
