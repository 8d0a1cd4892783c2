"""The time of a training, and how much of it is left."""

from __future__ import annotations

import json
import math

from darkroom.training.state.course import TimeBudget


class _Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_time_before_a_restart_counts():
    clock = _Clock()
    first = TimeBudget(2, clock)
    clock.now += 50
    first.epoch_seconds["head"] = 40.0
    assert (first.spent, first.left) == (50, 70)
    second = TimeBudget(2, clock)
    second.resume(json.loads(json.dumps(first.to_dict())))
    clock.now += 31
    assert (second.spent, second.left) == (81, 39)
    assert second.epoch_seconds == {"head": 40.0}


def test_without_a_limit_there_is_always_time():
    assert TimeBudget().left == math.inf


def test_epochs_that_were_planned_are_planned_again_for_another_limit():
    budget = TimeBudget(3)
    budget.fine_tune_epochs, budget.view_seconds = 4, 0.01
    for minutes, expected in ((3, 4), (5, None), (None, None)):
        other = TimeBudget(minutes)
        other.resume(budget.to_dict())
        assert (other.fine_tune_epochs, other.view_seconds) == (expected, 0.01)
