"""The summary of the latest run of a pipeline, from its metadata and its artifacts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any

from tfx.types import standard_artifacts

from darkroom import storage
from darkroom.components.model_report.evaluation import (
    ACCURACY_KEY,
    read_evaluation,
    read_failures,
)
from darkroom.evaluation.report.write import PAGE_FILE
from darkroom.pipelines.local.lineage import NodeRun
from darkroom.pipelines.local.summary import (
    EXAMPLES,
    INDEX,
    MODEL,
    PAGE,
    PUSHED,
    REPORT,
    RunSummary,
    count_changes,
)
from darkroom.training.state.history import read_exported
from darkroom.validation.report.dataset_report import DatasetReport
from darkroom.validation.report.write import REPORT_HTML, REPORT_JSON


def read_summary(
    nodes: Mapping[str, NodeRun],
    root: str,
    log_path: str,
    seconds: float,
    *,
    min_accuracy: float | None = None,
    makes: Set[str] | None = None,
) -> RunSummary:
    """Reads the result of a run from the artifacts of its nodes.

    Args:
        nodes: The nodes of the run, as `lineage.read_run` returns them.
        root: Folder of the run.
        log_path: File with the output of TFX and TensorFlow.
        seconds: Wall time of the run.
        min_accuracy: Accuracy below which a model is not pushed, where it is known.
        makes: Types of the artifacts that a custom pipeline makes; None for that of darkroom.
    """
    report_folder = _find_output(nodes, REPORT)
    model_run = _find_output(nodes, standard_artifacts.ModelRun.TYPE_NAME)
    page = _find_output(nodes, PAGE)
    report = accuracy = None
    failures: tuple[str, ...] = ()
    if report_folder is not None:
        text = storage.read_bytes(storage.join(report_folder, REPORT_JSON)).decode()
        report = DatasetReport.from_json(text)
    if evaluation := _find_output(nodes, standard_artifacts.ModelEvaluation.TYPE_NAME):
        accuracy = read_evaluation(evaluation).metrics.get(ACCURACY_KEY)
        failures = read_failures(evaluation)
    pushes = [each for _, each in _list_outputs(nodes, PUSHED) if each.get("pushed_destination")]
    return RunSummary(
        root=root,
        report=report,
        report_path=storage.join(report_folder, REPORT_HTML) if report_folder else None,
        epochs=read_exported(model_run) if model_run else None,
        accuracy=accuracy,
        min_accuracy=min_accuracy,
        pushed=pushes[0]["pushed_destination"] if pushes else None,
        was_there=bool(pushes and pushes[0].get("was_there")),
        examples=_find_output(nodes, EXAMPLES),
        changed=count_changes(_find_output(nodes, INDEX)),
        reused=tuple(node for node, run in nodes.items() if run.state == "CACHED"),
        log_path=log_path,
        seconds=seconds,
        model=_find_output(nodes, MODEL),
        page=storage.join(page, PAGE_FILE) if page else None,
        failures=failures,
        makes=RunSummary.makes if makes is None else makes,
        is_command=makes is None,
    )


def _find_output(nodes: Mapping[str, NodeRun], kind: str) -> str | None:
    """Returns where the first artifact of a type is; None when no node made one."""
    return next((each for each, _ in _list_outputs(nodes, kind)), None)


def _list_outputs(
    nodes: Mapping[str, NodeRun], kind: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields URI and properties of the artifacts of a type."""
    for run in nodes.values():
        for key, found in run.types.items():
            if found == kind:
                yield run.outputs[key], run.properties[key]
