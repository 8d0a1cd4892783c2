"""Reads a pipeline's latest run from ML Metadata, and its summary from the artifacts."""

from __future__ import annotations

import os
import re
import sqlite3
import time
import traceback
from collections.abc import Iterator, Mapping, Set
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from ml_metadata import metadata_store
from ml_metadata.proto import metadata_store_pb2
from tfx.orchestration.pipeline import Pipeline
from tfx.types import standard_artifacts

from darkroom import storage
from darkroom.components.model_report.evaluation import (
    find_score,
    read_failures,
    read_split_metrics,
)
from darkroom.components.pusher.executor import WAS_THERE_PROPERTY
from darkroom.errors import STORAGE_HINT, DarkroomError, DataError, StorageError
from darkroom.evaluation.report.write import PAGE_FILE
from darkroom.pipelines.local.summary import (
    EXAMPLES_ARTIFACT,
    INDEX_ARTIFACT,
    MODEL_ARTIFACT,
    PAGE_ARTIFACT,
    PUSHED_ARTIFACT,
    REPORT_ARTIFACT,
    RunSummary,
    count_changes,
)
from darkroom.training.state.history import read_exported
from darkroom.validation.report.dataset_report import DatasetReport
from darkroom.validation.report.write import REPORT_HTML, REPORT_JSON

# ML Metadata has no class of error for each of them, only sqlite's words.
_SQLITE_FAULTS = (
    "database or disk is full|disk I/O error|unable to open database file|"
    "attempt to write a readonly database"
)
# Where they are raised; a user's own code may have the same words of another database.
_ORIGINS = ("ml_metadata.", "tfx.orchestration.metadata")


def check_metadata(connection: Any) -> None:
    """Checks that an sqlite file of ML Metadata is whole, if there is one.

    ML Metadata would speak of tables and queries, and of some damage only in the middle of a run.

    Args:
        connection: The pipeline's `metadata_connection_config`.

    Raises:
        DataError: The file is damaged.
    """
    path = connection.sqlite.filename_uri
    if not path or not os.path.isfile(path):
        return
    try:
        with closing(sqlite3.connect(path)) as database:
            found = [text for (text,) in database.execute("PRAGMA quick_check(1)")]
    except sqlite3.OperationalError:
        return  # locked, or not readable: ML Metadata says which
    except sqlite3.DatabaseError as error:
        found = [str(error)]
    if found != ["ok"]:
        raise DataError(
            f"{path} is damaged: {' '.join(' '.join(found).split())}.",
            "Restore it from a copy, or choose another root: without it, no earlier result can be "
            "used.",
        )


@contextmanager
def name_metadata(connection: Any) -> Iterator[None]:
    """Names the file of ML Metadata where it cannot be written, as on a full disk.

    Args:
        connection: The pipeline's `metadata_connection_config`.

    Raises:
        StorageError: It cannot be written.
    """
    try:
        yield
    except DarkroomError:
        raise
    except Exception as error:
        found = re.search(_SQLITE_FAULTS, str(error))
        *_, (frame, _) = traceback.walk_tb(error.__traceback__)
        if not found or not frame.f_globals.get("__name__", "").startswith(_ORIGINS):
            raise
        path = connection.sqlite.filename_uri
        message = f"{path} cannot be read or written: {found[0]}."
        raise StorageError(message, STORAGE_HINT) from error


@dataclass(frozen=True)
class NodeRun:
    """The outcome of a node in a run.

    Attributes:
        state: Name of its state: `COMPLETE`, `CACHED`, `FAILED`, ...
        outputs: URI of the first artifact of each output, by key.
        types: Type name of that artifact, by key.
        properties: Custom properties of that artifact, by key and name.
    """

    state: str
    outputs: Mapping[str, str]
    types: Mapping[str, str]
    properties: Mapping[str, Mapping[str, Any]]


def read_run(connection: Any, pipeline_name: str) -> dict[str, NodeRun]:
    """Returns the nodes of a pipeline's latest run by id; empty if it never ran.

    Args:
        connection: The pipeline's `metadata_connection_config`.
        pipeline_name: Its name.

    Raises:
        StorageError: The metadata cannot be read.
    """
    with name_metadata(connection):
        store = metadata_store.MetadataStore(connection)
        runs = [
            context
            for context in store.get_contexts_by_type("pipeline_run")
            if context.properties["pipeline_name"].string_value in ("", pipeline_name)
        ]
        if not runs:
            return {}
        latest = max(runs, key=lambda context: context.id)
        executions = store.get_executions_by_context(latest.id)
        # The order of executions depends on the TFX line; the newest execution of a node counts.
        return {
            _find_node(store, execution, pipeline_name): _read_outcome(store, execution)
            for execution in sorted(executions, key=lambda execution: execution.id)
        }


def _find_node(store: Any, execution: Any, pipeline_name: str) -> str:
    for context in store.get_contexts_by_execution(execution.id):
        prefix = f"{pipeline_name}."
        if context.type == "node" and context.name.startswith(prefix):
            return str(context.name[len(prefix) :])
    return str(execution.name)


def _read_outcome(store: Any, execution: Any) -> NodeRun:
    """Reads the state of an execution and the artifacts that it made, or took from the cache."""
    events = store.get_events_by_execution_ids([execution.id])
    keys = {
        event.artifact_id: event.path.steps[0].key
        for event in events
        if event.type == metadata_store_pb2.Event.OUTPUT and event.path.steps
    }
    artifacts = store.get_artifacts_by_id(list(keys))
    return NodeRun(
        state=metadata_store_pb2.Execution.State.Name(execution.last_known_state),
        outputs={keys[artifact.id]: artifact.uri for artifact in artifacts},
        types={keys[artifact.id]: artifact.type for artifact in artifacts},
        properties={
            keys[artifact.id]: {
                name: getattr(value, value.WhichOneof("value"))
                for name, value in artifact.custom_properties.items()
                if value.WhichOneof("value")
            }
            for artifact in artifacts
        },
    )


def read_summary(
    pipeline: Pipeline,
    root: str,
    log_path: str,
    started: float,
    *,
    min_accuracy: float | None = None,
    makes: Set[str] | None = None,
) -> RunSummary:
    """Reads the result of a pipeline's latest run from the artifacts of its nodes.

    Args:
        pipeline: The pipeline, which has just run.
        root: Folder of the run.
        log_path: File with the output of TFX and TensorFlow.
        started: When the run began, by `time.monotonic`.
        min_accuracy: Accuracy below which a model is not pushed, where it is known.
        makes: Types of the artifacts that a custom pipeline makes; None for that of darkroom.
    """
    name = pipeline.pipeline_info.pipeline_name
    nodes = read_run(pipeline.metadata_connection_config, name)
    report_folder = _find_output(nodes, REPORT_ARTIFACT)
    model_run = _find_output(nodes, standard_artifacts.ModelRun.TYPE_NAME)
    page = _find_output(nodes, PAGE_ARTIFACT)
    galleries = [
        run.outputs["gallery_html"] for run in nodes.values() if "gallery_html" in run.outputs
    ]
    report = score = None
    score_name = RunSummary.score_name
    failures: tuple[str, ...] = ()
    if report_folder is not None:
        text = storage.read_bytes(storage.join(report_folder, REPORT_JSON)).decode()
        report = DatasetReport.from_json(text)
    if evaluation := _find_output(nodes, standard_artifacts.ModelEvaluation.TYPE_NAME):
        name, score = find_score(read_split_metrics(evaluation).metrics)
        score_name = name or score_name
        failures = read_failures(evaluation)
    pushes = [
        each for _, each in _list_outputs(nodes, PUSHED_ARTIFACT) if each.get("pushed_destination")
    ]
    return RunSummary(
        root=root,
        report=report,
        report_path=storage.join(report_folder, REPORT_HTML) if report_folder else None,
        epochs=read_exported(model_run) if model_run else None,
        score=score,
        score_name=score_name,
        min_accuracy=min_accuracy,
        pushed=pushes[0]["pushed_destination"] if pushes else None,
        was_there=bool(pushes and pushes[0].get(WAS_THERE_PROPERTY)),
        examples=_find_output(nodes, EXAMPLES_ARTIFACT),
        changed=count_changes(_find_output(nodes, INDEX_ARTIFACT)),
        reused=tuple(node for node, run in nodes.items() if run.state == "CACHED"),
        log_path=log_path,
        seconds=time.monotonic() - started,
        model=_find_output(nodes, MODEL_ARTIFACT),
        page=storage.join(page, PAGE_FILE) if page else None,
        gallery=next(iter(galleries), None),
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
