"""Reads the state of the files that a submitted run will read, so that its cache notices changes.

Kubeflow and Vertex find a task's cached outputs by its parameters, input artifacts, command and
image. They ignore the files behind a path, so the state of those files is put into a property. A
task runs again when its files cannot be read on this machine.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from typing import Any

from darkroom import storage
from darkroom.components.parameters import MODEL_FINGERPRINT_KEY
from darkroom.errors import LostDatasetError, UsageError, describe_os_error
from darkroom.manifest.chunks import Chunk
from darkroom.manifest.fingerprint import read_source_state
from darkroom.options.manifest import ManifestOptions
from darkroom.options.training import CONFIG_KEY, IMAGENET
from darkroom.pipelines.local.pinning import fingerprint_model
from darkroom.pipelines.submission.runs import PreparedRun
from darkroom.runtime import progress
from darkroom.storage.uris import ENDPOINT_VARIABLES

_SOURCE_TASK, _TRAINING_TASK = "ManifestGen", "Trainer"


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
    for what, task, name, read_state in (
        ("source", _SOURCE_TASK, "source_fingerprint", _read_source_state),
        ("model", _TRAINING_TASK, MODEL_FINGERPRINT_KEY, _read_model_state),
    ):
        properties = run.read_properties(task)
        try:
            # A step that ends with the error is shown as failed.
            with progress.step(f"Reading the {what}"):
                try:
                    states[name] = read_state(run, properties, shared_paths)
                except _UnseenError as unseen:
                    progress.remark(str(unseen))
                    raise
            switches[task] = True
        except _UnseenError as unseen:
            switches[task] = False
            notes.append(f"{task} runs again: {unseen}")
    given = {name: state for name, state in states.items() if name in run.definitions}
    others = {name: state for name, state in states.items() if name not in given}
    run = dataclasses.replace(run, documents=run.cache_tasks(switches), notes=tuple(notes))
    return dataclasses.replace(
        run, documents=run.set_properties(others), parameters={**run.parameters, **given}
    )


def _read_source_state(run: PreparedRun, properties: Mapping[str, Any], shared_paths: bool) -> str:
    # A server of S3 that the tasks know must be known here, too.
    executor = run.spec["deploymentSpec"]["executors"][f"{_SOURCE_TASK}_executor"]
    names = {each["name"] for each in executor["container"].get("env", ())}
    known_here = any(os.environ.get(name) for name in ENDPOINT_VARIABLES)
    if names.intersection(ENDPOINT_VARIABLES) and not known_here:
        raise _UnseenError(
            f"its {ENDPOINT_VARIABLES[1]} is not set here; set it to the address of that server "
            "as seen from this machine."
        )
    options = ManifestOptions.from_json(properties["options"])
    for path in (
        properties["source"],
        options.exclude,
        options.decisions,
        options.groups,
        options.label_map,
        *options.allowed_roots,
    ):
        if path is not None:
            _check_path(path, shared_paths)

    def check(chunk: Chunk) -> None:
        for uri in filter(None, chunk.columns["uri"]):
            _check_path(uri, shared_paths)

    try:
        return read_source_state(properties["source"], options, check)
    except LostDatasetError as error:
        raise _UnseenError(
            f"its decisions cannot be resolved from here: {error.message}"
        ) from error
    except (OSError, UsageError) as error:
        said = describe_os_error(error) if isinstance(error, OSError) else f"{error}"
        raise _UnseenError(f"its source cannot be read from here: {said}") from error


def _check_path(path: str, shared_paths: bool) -> None:
    if not storage.is_remote(path) and not shared_paths:
        raise _UnseenError(
            f"{path} is a path in its container, which may be another file here; "
            "if both are on one volume, add --shared-paths."
        )


def _read_model_state(_: PreparedRun, properties: Mapping[str, Any], shared_paths: bool) -> str:
    options = json.loads(properties["custom_config"])[CONFIG_KEY]
    if options.get("weights") not in (None, "", IMAGENET):
        _check_path(options["weights"], shared_paths)
    try:
        return fingerprint_model(options["model"], options.get("weights"))
    except OSError as error:
        said = describe_os_error(error)
        raise _UnseenError(f"its weights cannot be read from here: {said}") from error
