"""Reads the state of the files that a submitted run will read, so that its cache notices changes.

Kubeflow and Vertex find a task's cached outputs by its parameters, input artifacts, command and
image. They ignore the files behind a path, so the state of those files is passed as a parameter. A
task runs again when its files cannot be read on this machine.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from darkroom import storage
from darkroom.components.parameters import MODEL_FINGERPRINT_KEY, merge_parameters
from darkroom.errors import UsageError, describe_os_error
from darkroom.manifest.chunks import Chunk
from darkroom.manifest.fingerprint import read_source_state
from darkroom.options.manifest import ManifestOptions
from darkroom.options.training import CONFIG_KEY, IMAGENET
from darkroom.pipelines.local.pinning import fingerprint_model
from darkroom.pipelines.submission.prepared_run import PreparedRun
from darkroom.runtime import progress
from darkroom.storage.uris import ENDPOINT_VARIABLES

_SOURCE_TASK, _TRAINING_TASK = "ManifestGen", "Trainer"


class _UnseenError(Exception):
    """A file that the run will read cannot be read on this machine."""


def pin_states(run: PreparedRun, *, shared_paths: bool) -> PreparedRun:
    """Returns a run with the state of the files that it reads, and its cache on where possible.

    Args:
        run: The run to submit.
        shared_paths: Whether a local path names the same file here and in the run's containers.

    Raises:
        DataError: The source as a whole cannot be used.
        UsageError: A parameter is wrong.
    """
    parameters, switches, notes = dict(run.parameters), {}, []
    for what, task, name, read_state in (
        ("source", _SOURCE_TASK, "source_fingerprint", _read_source_state),
        ("model", _TRAINING_TASK, MODEL_FINGERPRINT_KEY, _read_model_state),
    ):
        properties = read_properties(run, task)
        try:
            # A step that ends with the error is shown as failed.
            with progress.step(f"Reading the {what}"), _tell_reason():
                parameters[name] = read_state(run, properties, shared_paths)
            switches[task] = True
        except _UnseenError as unseen:
            switches[task] = False
            notes.append(f"{task} runs again: {unseen}")
    return dataclasses.replace(
        run, documents=run.cache_tasks(switches), parameters=parameters, notes=tuple(notes)
    )


@contextlib.contextmanager
def _tell_reason() -> Iterator[None]:
    """Shows why a step fails at its end."""
    try:
        yield
    except _UnseenError as unseen:
        progress.remark(str(unseen))
        raise


def switch_cache_off(run: PreparedRun) -> PreparedRun:
    """Returns a run that does not use the cache."""
    documents = run.cache_tasks(dict.fromkeys(run.tasks, False))
    return dataclasses.replace(run, documents=documents, notes=("All tasks run again.",))


def note_uncached(run: PreparedRun) -> PreparedRun:
    """Returns a run with a note of the tasks that were compiled without a cache."""
    names = [
        name
        for name, task in run.tasks.items()
        if not task.get("cachingOptions", {}).get("enableCache")
    ]
    if not names:
        return run
    note = (
        f"Compiled without a cache: {', '.join(sorted(names))}. These tasks and all that follows "
        "them run each time."
    )
    return dataclasses.replace(run, notes=(note,))


def read_properties(run: PreparedRun, task: str) -> dict[str, Any]:
    """Returns the execution properties of a task, as its entrypoint will compute them.

    Raises:
        UsageError: A parameter is wrong.
    """
    return merge_parameters(run.read_inputs(task))


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
