"""Evaluates the results of a detector, whatever made them."""

from __future__ import annotations

from dataclasses import replace

from darkroom.steps import parts
from darkroom.steps.evaluate import STEP as EVALUATE

STEP = replace(
    EVALUATE,
    name="evaluate_detector",
    help="Evaluates the results of a detector, whatever made them, on a dataset of boxes.",
    inputs=(parts.RESULTS, parts.DETECTOR_ANNOTATIONS, parts.DATASET),
    needs_tensorflow=False,
)
