"""Executor of ModelReport."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils
from tfx.utils import path_utils

from darkroom import storage
from darkroom.components.evaluator.executor import SPLIT_PROPERTY
from darkroom.components.model_report.evaluation import (
    ACCURACY_KEY,
    COUNT_KEY,
    RECALL_KEY,
    list_scores,
    read_failures,
    read_split_metrics,
)
from darkroom.evaluation.evaluate import evaluate_training, find_scored_split
from darkroom.evaluation.report.facts import EVALUATION_FILE, FACTS_FILE, Facts, read_facts
from darkroom.evaluation.report.result import Evaluation, Slice, describe_split
from darkroom.evaluation.report.write import PAGE_FILE
from darkroom.steps.places import name_uris
from darkroom.targets.label.confusion import MATRIX_PROPERTY, make_matrix
from darkroom.targets.scoring import find_scoring
from darkroom.validation.report.dataset_report import DatasetReport
from darkroom.validation.report.write import REPORT_JSON

METRICS_FILE = "metrics.json"
MATRIX_FILE = "confusion_matrix.json"
# TFMA's names. A reader of numbers of two splits must see of which each is.
_NAMES = {ACCURACY_KEY: "accuracy", COUNT_KEY: "records"}


class Executor(base_executor.BaseExecutor):
    """Turns an evaluation into properties that a UI shows, and a model into its page."""

    def Do(
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Writes metrics and confusion matrix, into files and properties; then the page.

        Args:
            input_dict: `evaluation`: a ModelEvaluation; `report`: a ValidationReport; and for the
                page `model`: a Model; `examples`: Examples; `model_run`: a ModelRun.
            output_dict: `metrics`: Metrics; `classification_metrics`: ClassificationMetrics; and
                for the page `page`: a ModelPage; `model_html`: HTML.
            exec_properties: Empty.

        Raises:
            DataError: Evaluation and report are not of the same data, or an image of the scored
                split is damaged.
        """
        scored = artifact_utils.get_single_instance(input_dict["evaluation"])
        folder = scored.uri
        evaluation = read_split_metrics(folder)
        report_path = storage.join(artifact_utils.get_single_uri(input_dict["report"]), REPORT_JSON)
        report = DatasetReport.from_json(storage.read_bytes(report_path).decode())
        missed = read_failures(folder)
        split = scored.get_string_custom_property(SPLIT_PROPERTY)
        known = {**{key: key for key in (*list_scores(), RECALL_KEY)}, **_NAMES}
        names = {key: f"{split}_{name}" for key, name in known.items()} if split else {}
        numbers = {names.get(name, name): each for name, each in evaluation.metrics.items()}
        numbers |= {f"{split}_records": float(count) for split, count in report.splits.items()}
        numbers["passed"] = float(not missed)
        shown: Mapping[str, Any] = {}
        if input_dict.get("model"):
            # The page may be of another split than the bounds.
            where = f"on the {split} split, " if split else ""
            bounds = [f"{where}{each}" for each in missed]
            found = _write_page(input_dict, output_dict, bounds, evaluation.slices)
            numbers |= found.list_scalars()
            # Of the same scoring as the page.
            where = describe_split(found.split)
            shown = find_scoring(found.kind).list_properties(found.metrics, where)
        elif evaluation.confusions:
            matrix = make_matrix(evaluation.confusions, report.labels)
            shown = {MATRIX_PROPERTY: matrix.encode()}
        # JSON has no NaN, and a backend would fail the task because of one.
        finite = {name: value for name, value in numbers.items() if math.isfinite(value)}
        metrics = artifact_utils.get_single_instance(output_dict["metrics"])
        for name, value in finite.items():
            metrics.set_float_custom_property(name, value)
        _write_json(finite, metrics.uri, METRICS_FILE)
        if shown:
            drawn = artifact_utils.get_single_instance(output_dict["classification_metrics"])
            for name, value in shown.items():
                drawn.set_json_value_custom_property(name, value)
            _write_json(shown[MATRIX_PROPERTY], drawn.uri, MATRIX_FILE)


def _write_page(
    input_dict: dict[str, list[Any]],
    output_dict: dict[str, list[Any]],
    missed: Sequence[str],
    slices: Sequence[Slice],
) -> Evaluation:
    """Scores the model, and writes its page."""
    model = artifact_utils.get_single_instance(input_dict["model"])
    folder = path_utils.serving_model_path(model.uri, path_utils.is_old_model_artifact(model))
    runs = input_dict.get("model_run")
    facts = read_facts(artifact_utils.get_single_uri(runs), FACTS_FILE) if runs else Facts()
    split = find_scored_split(artifact_utils.get_single_uri(input_dict["examples"]))
    page = artifact_utils.get_single_instance(output_dict["page"])
    found = evaluate_training(folder, split, facts, page.uri, missed=missed, slices=slices)
    # The launcher's folder is gone when the task has ended.
    path = storage.join(page.uri, EVALUATION_FILE)
    storage.write_bytes(path, name_uris(storage.read_bytes(path).decode()).encode())
    page.set_string_custom_property("split", found.split)
    page.set_float_custom_property("score", found.score)
    if "accuracy" in find_scoring(found.kind).scalars:
        page.set_float_custom_property("accuracy", found.accuracy)
    shown = artifact_utils.get_single_instance(output_dict["model_html"])
    shown.uri = storage.join(shown.uri, PAGE_FILE)
    storage.copy_file(storage.join(page.uri, PAGE_FILE), shown.uri)
    return found


def _write_json(value: Any, folder: str, name: str) -> None:
    storage.write_bytes(storage.join(folder, name), (json.dumps(value, indent=2) + "\n").encode())
