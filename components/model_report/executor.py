"""Executor of ModelReport."""

from __future__ import annotations

import json
import math
from typing import Any

from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils

from darkroom import storage
from darkroom.components.model_report.evaluation import encode_confusion_matrix, read_evaluation
from darkroom.validation.dataset_report import DatasetReport
from darkroom.validation.report.write import REPORT_JSON

EVALUATION_KEY = "evaluation"
REPORT_KEY = "report"
METRICS_KEY = "metrics"
CLASSIFICATION_KEY = "classification_metrics"
METRICS_FILE = "metrics.json"
MATRIX_FILE = "confusion_matrix.json"
# The name that KFP's UI looks for.
MATRIX_PROPERTY = "confusionMatrix"


class Executor(base_executor.BaseExecutor):
    """Turns an evaluation into properties that a UI shows."""

    def Do(
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Writes metrics and confusion matrix, into files and properties.

        Args:
            input_dict: `evaluation`: a ModelEvaluation; `report`: a ValidationReport.
            output_dict: `metrics`: Metrics; `classification_metrics`: ClassificationMetrics.
            exec_properties: Empty.

        Raises:
            DataError: Evaluation and report are not of the same data.
        """
        evaluation = read_evaluation(artifact_utils.get_single_uri(input_dict[EVALUATION_KEY]))
        report_path = storage.join(
            artifact_utils.get_single_uri(input_dict[REPORT_KEY]), REPORT_JSON
        )
        report = DatasetReport.from_json(storage.read_bytes(report_path).decode())
        records = {f"{split}_records": float(count) for split, count in report.splits.items()}
        metrics = artifact_utils.get_single_instance(output_dict[METRICS_KEY])
        # JSON has no NaN, and a backend would fail the task because of one.
        numbers = {
            name: value
            for name, value in {**evaluation.metrics, **records}.items()
            if math.isfinite(value)
        }
        for name, value in numbers.items():
            metrics.set_float_custom_property(name, value)
        _write_json(numbers, metrics.uri, METRICS_FILE)
        if evaluation.confusions:
            matrix = encode_confusion_matrix(evaluation.confusions, report.labels)
            classification = artifact_utils.get_single_instance(output_dict[CLASSIFICATION_KEY])
            classification.set_json_value_custom_property(MATRIX_PROPERTY, matrix)
            _write_json(matrix, classification.uri, MATRIX_FILE)


def _write_json(value: Any, folder: str, name: str) -> None:
    storage.write_bytes(storage.join(folder, name), (json.dumps(value, indent=2) + "\n").encode())
