"""Evaluates an exported model by the answers that a server would give."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from typing import Any

from darkroom import storage
from darkroom.errors import DataError
from darkroom.options.fields import check_fields
from darkroom.options.pipeline import PipelineFields
from darkroom.steps import parts
from darkroom.steps.step import Artifact, Given, Made, Parameter, Paths, Step, take_options


def run(paths: Paths, options: Given) -> Made:
    """Scores a split with a model, or by results, and says whether that is good enough."""
    from darkroom.evaluation.evaluate import evaluate, find_scored_split
    from darkroom.evaluation.report.result import describe_split, find_missed
    from darkroom.evaluation.report.write import PAGE_FILE
    from darkroom.steps.train import list_metrics, list_results
    from darkroom.targets.scoring import find_scoring

    bounds = options["min_accuracy"], options["min_recall"]
    with tempfile.TemporaryDirectory(prefix="darkroom-") as scratch:
        folder = os.path.join(scratch, "report")
        found = evaluate(
            paths.get("model"),
            paths["dataset"],
            options["split"] or find_scored_split(paths["dataset"]).name,
            report_dir=folder,
            judge=lambda found: find_missed(found, *bounds),
            notes=[_describe_bounds(options)],
            results=paths.get("results"),
            annotations=paths.get("annotations"),
        )
        page = storage.read_bytes(storage.join(folder, PAGE_FILE))
    where, error = describe_split(found.split), None
    if found.missed:
        error = DataError(
            f"The model is not good enough on {where}: {'; '.join(found.missed)}.",
            "Train it longer or on more images, or ask for less: min_accuracy, min_recall.",
        )
    return Made(
        found,
        list_metrics(found) | {"passed": float(not found.missed)},
        {"confusion_matrix": find_scoring(found.kind).list_properties(found.metrics, where)},
        {"evaluation_page": page},
        list_results(found),
        error,
    )


def _describe_bounds(asked: Mapping[str, Any]) -> str:
    bounds = [f"{name} {asked[name]:g}" for name in ("min_accuracy", "min_recall") if asked[name]]
    if not bounds:
        return "The model is held to no bound: neither min_accuracy nor min_recall is given."
    return f"The model is held to {' and '.join(bounds)}."


def _check_bounds(min_accuracy: float = 0.0, min_recall: float = 0.0) -> None:
    check_fields(PipelineFields(data="", min_accuracy=min_accuracy, min_recall=min_recall))


STEP = Step(
    "evaluate_classifier",
    "Evaluates an exported model by the answers that a server would give.",
    run,
    (
        parts.DATASET_URI,
        Parameter(
            "split",
            str,
            "Split to score: train, eval, test or all. Test, or without one eval, if empty.",
            "",
        ),
        *take_options(PipelineFields, only=["min_accuracy", "min_recall"]),
        parts.FAIL_PARAMETER,
    ),
    inputs=(parts.MODEL, parts.DATASET),
    outputs=(
        parts.name_metrics("evaluation"),
        Artifact(
            "confusion_matrix",
            "ClassificationMetrics",
            "The confusion matrix, of at most fifty rows, and of two labels the ROC curve of the "
            "second; empty unless images have one label.",
        ),
        parts.name_page("evaluation"),
    ),
    results=(parts.PASSED, *parts.SCORES),
    needs_tensorflow=True,
    checks=(_check_bounds,),
)
