"""The summary of the latest run of a pipeline, from its metadata and its artifacts."""

from __future__ import annotations

from collections.abc import Mapping

from darkroom import storage
from darkroom.components.model_report.evaluation import read_evaluation
from darkroom.pipelines.config import PipelineConfig
from darkroom.pipelines.local.lineage import NodeRun, read_latest_run
from darkroom.pipelines.local.summary import RunSummary, count_changes
from darkroom.training.history import read_best_epoch
from darkroom.validation.dataset_report import DatasetReport
from darkroom.validation.report.write import REPORT_HTML, REPORT_JSON

_ACCURACY_KEY = "sparse_categorical_accuracy"


def read_summary(config: PipelineConfig, log_path: str, seconds: float) -> RunSummary:
    """Reads the result of a configuration's latest run."""
    nodes = read_latest_run(config.root, config.name)
    report_folder = _output(nodes, "ImageValidator", "report")
    model_run = _output(nodes, "Trainer", "model_run")
    report = accuracy = None
    if report_folder is not None:
        text = storage.read_bytes(storage.join(report_folder, REPORT_JSON)).decode()
        report = DatasetReport.from_json(text)
    if evaluation := _output(nodes, "Evaluator", "evaluation"):
        accuracy = read_evaluation(evaluation).metrics.get(_ACCURACY_KEY)
    pushed = nodes["Pusher"].properties.get("pushed_model", {}) if "Pusher" in nodes else {}
    return RunSummary(
        root=config.root,
        report=report,
        report_path=storage.join(report_folder, REPORT_HTML) if report_folder else None,
        epochs=read_best_epoch(model_run) if model_run else None,
        accuracy=accuracy,
        min_accuracy=config.min_accuracy,
        pushed=pushed.get("pushed_destination"),
        examples=_output(nodes, "ImageToTFRecord", "examples"),
        changed=count_changes(_output(nodes, "ImageToTFRecord", "index")),
        reused=tuple(node for node, run in nodes.items() if run.state == "CACHED"),
        log_path=log_path,
        seconds=seconds,
    )


def _output(nodes: Mapping[str, NodeRun], node: str, key: str) -> str | None:
    return nodes[node].outputs.get(key) if node in nodes else None
