"""Executor of ImageValidator."""

from __future__ import annotations

from darkroom.components.step_executor import StepExecutor
from darkroom.steps import validate


class Executor(StepExecutor):
    """Judges a dataset."""

    STEP = validate.STEP
    NAMES = {
        "report": "validation_report",
        "validation_html": "validation_page",
        "gallery_html": "gallery_page",
    }
