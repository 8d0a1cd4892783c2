"""Reads the outputs of a pipeline's latest run from ML Metadata."""

from __future__ import annotations

import os
import re
import sqlite3
import traceback
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from ml_metadata import metadata_store
from ml_metadata.proto import metadata_store_pb2

from darkroom.errors import STORAGE_HINT, DarkroomError, DataError, StorageError
from darkroom.pipelines.pipeline import make_connection_config

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


def read_latest_run(root: str, pipeline_name: str) -> dict[str, NodeRun]:
    """Returns the nodes of a pipeline's latest run; its ML Metadata is in a root."""
    return read_run(make_connection_config(root), pipeline_name)


def read_run(connection: Any, pipeline_name: str) -> dict[str, NodeRun]:
    """Returns the nodes of a pipeline's latest run by id; empty if it never ran.

    Args:
        connection: The pipeline's `metadata_connection_config`.
        pipeline_name: Its name.

    Raises:
        StorageError: The metadata cannot be read.
    """
    with name_metadata(connection):
        return _read_run(metadata_store.MetadataStore(connection), pipeline_name)


def _read_run(store: Any, pipeline_name: str) -> dict[str, NodeRun]:
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
        _find_node(store, execution, pipeline_name): _describe(store, execution)
        for execution in sorted(executions, key=lambda execution: execution.id)
    }


def _find_node(store: Any, execution: Any, pipeline_name: str) -> str:
    for context in store.get_contexts_by_execution(execution.id):
        prefix = f"{pipeline_name}."
        if context.type == "node" and context.name.startswith(prefix):
            return str(context.name[len(prefix) :])
    return str(execution.name)


def _describe(store: Any, execution: Any) -> NodeRun:
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
