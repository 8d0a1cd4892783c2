"""Executor of DatasetDiff."""

from __future__ import annotations

from darkroom.components.step_executor import StepExecutor
from darkroom.steps import diff


class Executor(StepExecutor):
    """Compares a dataset with the one that it updates."""

    STEP = diff.STEP
    NAMES = {"report": "diff_report", "diff_html": "diff_page"}
