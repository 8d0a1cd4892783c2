"""Evaluates the results of a detector, whatever made them."""

from __future__ import annotations

from dataclasses import replace

from darkroom.steps import parts
from darkroom.steps.evaluate import STEP as EVALUATE
from darkroom.steps.step import Artifact

STEP = replace(
    EVALUATE,
    name="evaluate_detector",
    help="Evaluates the results of a detector, whatever made them, on a dataset of boxes.",
    inputs=(
        Artifact(
            "results",
            "Artifact",
            "Results as a file of JSON, as pycocotools takes it, or a folder of label files of "
            "ultralytics with scores.",
        ),
        Artifact(
            "annotations",
            "Artifact",
            "The JSON of COCO that the detector had, by whose ids the results name images and "
            "classes. Without it, images have the ids of the list, or else the names of their "
            "files, and class n is the nth label.",
            optional=True,
        ),
        parts.DATASET,
    ),
    needs_tensorflow=False,
)
