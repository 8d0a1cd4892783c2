"""Compares the histories of trainings."""

from __future__ import annotations

from typing import Any

import pytest


def assert_near(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    """Checks that two histories have the same epochs, phases, and nearly the same numbers."""
    numbers = [[dict(entry) for entry in history] for history in (found, expected)]
    phases = [[entry.pop("phase", None) for entry in history] for history in numbers]
    assert phases[0] == phases[1]
    for one, two in zip(*numbers, strict=True):
        assert one == pytest.approx(two, rel=1e-4)
