"""Reads the state of the files that a submitted run will read, so that its cache notices changes.

Kubeflow and Vertex find a task's cached outputs by its parameters, input artifacts, command and
image. They ignore the files behind a path, so the state of those files is put into a property. A
task runs again when its files cannot be read on this machine.
"""

from __future__ import annotations

import dataclasses
import os

from darkroom import storage
from darkroom.components.file_state import SOURCE_STATE, FileState
from darkroom.errors import LostDatasetError, UsageError, describe_os_error
from darkroom.pipelines.model_state import MODEL_STATE
from darkroom.pipelines.submission.runs import PreparedRun
from darkroom.runtime import progress
from darkroom.storage.uris import ENDPOINT_VARIABLES


class _UnseenError(Exception):
    """A file that the run will read cannot be read on this machine."""


def set_cache(run: PreparedRun, *, is_wanted: bool, shared_paths: bool) -> PreparedRun:
    """Returns the run with its cache off, or with the state of the files that it will read.

    Args:
        run: The run to submit.
        is_wanted: Whether results may be reused.
        shared_paths: See `pin_states`.

    Raises:
        DataError: The source as a whole cannot be used.
        UsageError: A parameter is wrong.
    """
    cached = run.list_cached()
    if not is_wanted or not cached:
        documents = run.cache_tasks(dict.fromkeys(run.tasks, False))
        return dataclasses.replace(run, documents=documents, notes=("All tasks run again.",))
    if run.is_own:
        # It takes no state: nodes that read a path were compiled without a cache.
        uncached = ", ".join(sorted(run.tasks.keys() - cached))
        note = (
            f"Compiled without a cache: {uncached}. These tasks and all that follows them run each "
            "time."
        )
        return dataclasses.replace(run, notes=(note,) if uncached else ())
    return pin_states(run, shared_paths=shared_paths)


def pin_states(run: PreparedRun, *, shared_paths: bool) -> PreparedRun:
    """Returns a run with the state of the files that it reads, and its cache on where possible.

    Args:
        run: The run to submit.
        shared_paths: Whether a local path names the same file here and in the run's containers.

    Raises:
        DataError: The source as a whole cannot be used.
        UsageError: A parameter is wrong.
    """
    states: dict[str, str] = {}
    switches, notes = {}, []
    for state in (SOURCE_STATE, MODEL_STATE):
        try:
            # A step that ends with the error is shown as failed.
            with progress.step(f"Reading the {state.reads}"):
                try:
                    states[state.key] = _read_state(run, state, shared_paths)
                except _UnseenError as unseen:
                    progress.remark(str(unseen))
                    raise
        except _UnseenError as unseen:
            notes.append(f"{state.node} runs again: {unseen}")
        switches[state.node] = state.key in states
    given = {name: state for name, state in states.items() if name in run.definitions}
    others = {name: state for name, state in states.items() if name not in given}
    run = dataclasses.replace(run, documents=run.cache_tasks(switches), notes=tuple(notes))
    return dataclasses.replace(
        run, documents=run.set_properties(others), parameters={**run.parameters, **given}
    )


def _read_state(run: PreparedRun, state: FileState, shared_paths: bool) -> str:
    """Returns the state of the files of a task.

    Raises:
        _UnseenError: One of them cannot be read here.
    """
    if state is SOURCE_STATE:
        _check_endpoint(run)

    def check(path: str) -> None:
        if not storage.is_remote(path) and not shared_paths:
            raise _UnseenError(
                f"{path} is a path in its container, which may be another file here; "
                "if both are on one volume, add --shared-paths."
            )

    properties = run.read_properties(state.node)
    try:
        return state.read(properties, check)
    except LostDatasetError as error:
        raise _UnseenError(
            f"its decisions cannot be resolved from here: {error.message}"
        ) from error
    except (OSError, UsageError) as error:
        said = describe_os_error(error) if isinstance(error, OSError) else f"{error}"
        raise _UnseenError(f"its {state.reads} cannot be read from here: {said}") from error


def _check_endpoint(run: PreparedRun) -> None:
    """Checks that a server of S3 that the tasks know is known here, too."""
    executor = run.spec["deploymentSpec"]["executors"][f"{SOURCE_STATE.node}_executor"]
    names = {each["name"] for each in executor["container"].get("env", ())}
    known_here = any(os.environ.get(name) for name in ENDPOINT_VARIABLES)
    if names.intersection(ENDPOINT_VARIABLES) and not known_here:
        raise _UnseenError(
            f"its {ENDPOINT_VARIABLES[1]} is not set here; set it to the address of that server "
            "as seen from this machine."
        )
