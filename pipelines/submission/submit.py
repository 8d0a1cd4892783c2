"""`darkroom submit`: from options to a run on Kubeflow Pipelines or Vertex AI, and its outcome."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from darkroom.components.parameters import PARAMETERS
from darkroom.errors import DataError, UsageError, build_missing_extra_error
from darkroom.options.compiled.containers import check_replaced
from darkroom.options.compiled.credentials import check_credentials
from darkroom.options.fields import list_options
from darkroom.options.targets import VERTEX, KubeflowFields, VertexOptions
from darkroom.pipelines.compilation.check import (
    check_config,
    check_digests,
    check_paths,
    list_warnings,
    merge_checked_options,
)
from darkroom.pipelines.config import make_config
from darkroom.pipelines.submission.cache_states import set_cache
from darkroom.pipelines.submission.runs import (
    SUCCEEDED,
    PreparedRun,
    RunStatus,
    Scalar,
    SubmittedRun,
    read_documents,
    wait_for_end,
)
from darkroom.runtime import progress
from darkroom.runtime.functions import FUNCTION
from darkroom.storage.uris import expand_home

_SUBMITTED = "SUBMITTED"
# Options of the services' clients; the rest are fields of `PipelineConfig`.
_SERVICE_FLAGS = {each.name: each.flag for each in list_options(KubeflowFields, VertexOptions)}


def submit_pipeline(values: Mapping[str, Any], *, as_json: bool) -> int:
    """Submits the pipeline of options by name.

    Args:
        values: `target`, `pipeline` (path of a compiled file, or absent), `wait`, `shared_paths`,
            options of `KubeflowOptions` or `VertexOptions`, and fields of `PipelineConfig`: all of
            them without a compiled file, run-time parameters with one.
        as_json: Whether standard output gets one JSON object and nothing else.

    Returns:
        The exit code: 0, or 1 when the command waited for the run and it did not succeed.

    Raises:
        DarkroomError: The run could not be submitted, or its state could not be read.
    """
    check_credentials(values)  # before a message shows a value
    values = dict(values)
    target, wait = values.pop("target"), values.pop("wait")
    of_service = {name: values.pop(name) for name in _SERVICE_FLAGS if name in values}
    path, shared_paths = values.pop("pipeline", None), values.pop("shared_paths", False)
    merged = merge_checked_options(values)
    arguments = merged.pop("vertex", {}) if path else merged.get("vertex", {})
    # All checks that need no TFX come first: loading it takes seconds.
    if path:
        run = _read_run(expand_home(path), merged, target)
    else:
        if "pipeline" in merged:
            raise UsageError(
                "pipeline in the configuration is your own function.",
                "Compile it, and submit the file: darkroom submit --pipeline FILE.",
            )
        config = make_config(merged, target)
        check_config(config, target)
    submit = _find_service(target, of_service, arguments)
    with progress.use(progress.make_sink(sys.stderr)):
        if not path:
            for warning in list_warnings(config, target):
                progress.note(f"Warning: {warning}")
            with progress.step("Compiling"):
                from darkroom.pipelines.compilation.spec import make_documents

                run = PreparedRun(make_documents(config, target), config.root)
        run = set_cache(run, is_wanted=merged.get("cache", True), shared_paths=shared_paths)
        with progress.step("Submitting"):
            submitted = submit(run)
        status = RunStatus(_SUBMITTED)
        if wait:
            progress.note(submitted.url)
            with progress.step("Waiting for its end"):
                status = wait_for_end(submitted)
    print(_format_json(run, submitted, status) if as_json else _format(run, submitted, status))
    return 0 if _has_succeeded(status) else DataError.exit_code


def _has_succeeded(status: RunStatus) -> bool:
    return status.state in (SUCCEEDED, _SUBMITTED)


def _read_run(path: str, values: Mapping[str, Any], target: str) -> PreparedRun:
    """Reads a compiled file, and checks the values for it as its tasks would."""
    if FUNCTION.fullmatch(path):
        raise UsageError(
            f"--pipeline is {path!r}, expected a compiled file.",
            f"Compile it first: darkroom compile --pipeline {path} -o FILE.",
        )
    values = {name: value for name, value in values.items() if name != "cache"}
    root, pinned = values.pop("root", None), values.pop("require_digest", False)
    run = PreparedRun(read_documents(path), root)
    if pinned:
        check_digests(run.spec)
    if ("pipelineSpec" in run.documents[0]) != (target == VERTEX):
        raise UsageError(f"{path} was not compiled for {target}.", "Compile it for this target.")
    check_replaced({**values, "root": root}, target)
    if run.is_own:
        if values:
            raise UsageError(
                f"{sorted(values)[0]} is not an option of {run.name}, your own pipeline.",
                "Its run-time parameters keep their defaults; for the rest, compile it again.",
            )
        for name, definition in run.definitions.items():
            if "defaultValue" not in definition and not definition.get("isOptional"):
                raise UsageError(
                    f"The run-time parameter {name!r} of {path} has no default, and submit gives "
                    "none.",
                    f'Give it one in your code, as RuntimeParameter("{name}", str, default=...), '
                    "and compile again; or start the run by the UI or the client of the service, "
                    "with a value.",
                )
    else:
        run = dataclasses.replace(run, parameters=_encode_parameters(values, run))
        for task in sorted({parameter.component for parameter in PARAMETERS}):
            if task not in run.tasks:
                raise UsageError(
                    f"The pipeline {run.name} has no task {task}, so darkroom did not compile it.",
                    "Give the file that `darkroom compile -o FILE` wrote.",
                )
            run.read_properties(task)
    # The empty text means none, except for the source.
    paths = {name: value for name, value in run.parameters.items() if value or name == "data"}
    check_paths(paths if root is None else {**paths, "root": str(root)}, target, run.volumes)
    return run


def _encode_parameters(values: Mapping[str, Any], run: PreparedRun) -> dict[str, Scalar]:
    known = {parameter.name: parameter for parameter in PARAMETERS}
    encoded = {}
    for name, value in values.items():
        if name not in known:
            raise UsageError(
                f"{name} is part of the compiled file; submitting cannot change it.",
                f"Compile again, or give one of {', '.join(run.choices)}.",
            )
        # Checked before it is encoded, which would turn 2.5 into 2.
        known[name].parse(known[name].kind() if value is None else value)
        encoded[name] = known[name].encode(value)
    return encoded


def _find_service(
    target: str, given: Mapping[str, Any], arguments: Mapping[str, Any]
) -> Callable[[PreparedRun], SubmittedRun]:
    """Loads the client of a service, and returns the function that submits a run to it.

    Raises:
        UsageError: An option of the service is wrong, or of another service.
        MissingExtraError: The client is not installed.
    """
    try:
        if target == VERTEX:
            from darkroom.pipelines.submission import vertex

            options = _make_options(VertexOptions, target, given)
            vertex.check_arguments(arguments)
            return partial(vertex.submit, options=options, arguments=arguments)
        if arguments:
            raise UsageError("vertex is for Vertex AI Pipelines.", "Leave it out for Kubeflow.")
        from darkroom.pipelines.submission import kubeflow

        return partial(
            kubeflow.submit, options=_make_options(kubeflow.KubeflowOptions, target, given)
        )
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "darkroom":
            raise  # a defect of darkroom, not a missing extra
        raise build_missing_extra_error(f"submit --target {target}", "tfx") from error


def _make_options(kind: type, target: str, given: Mapping[str, Any]) -> Any:
    """Returns the options of a service, after a check that they belong to it."""
    fields = {each.name: each for each in dataclasses.fields(kind)}
    if foreign := sorted(set(given) - set(fields)):
        raise UsageError(
            f"{_SERVICE_FLAGS[foreign[0]]} is not for --target {target}.", "Leave it out."
        )
    missing = [
        f"{_SERVICE_FLAGS[name]}"
        for name, each in fields.items()
        if name not in given and each.default is dataclasses.MISSING
    ]
    if missing:
        raise UsageError(f"--target {target} needs {' and '.join(missing)}.")
    return kind(**given)


def _format(run: PreparedRun, submitted: SubmittedRun, status: RunStatus) -> str:
    lines = [f"Run        {submitted.url}"]
    lines += [f"Cache      {note}" for note in run.notes or ("Unchanged tasks are reused.",)]
    lines.append(f"State      {status.state.lower()}")
    lines += [f"Failed     {task}: {error}".rstrip(": ") for task, error in status.errors.items()]
    return "\n".join(lines)


def _format_json(run: PreparedRun, submitted: SubmittedRun, status: RunStatus) -> str:
    told = {
        "id": submitted.id,
        "url": submitted.url,
        "state": status.state,
        "errors": dict(status.errors),
        "parameters": dict(run.parameters),
        "notes": run.notes,
    }
    if not _has_succeeded(status):
        error = DataError(f"The run ended as {status.state.lower()}.", f"See {submitted.url}")
        told["error"] = error.to_dict()
    return json.dumps(told)
