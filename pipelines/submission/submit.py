"""`darkroom submit`: a run on Kubeflow Pipelines or Vertex AI, from options to outcome."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from darkroom.errors import DataError, UsageError, build_missing_extra_error
from darkroom.options.targets import VERTEX
from darkroom.pipelines.compilation.checks import check_config
from darkroom.pipelines.compilation.places import check_paths
from darkroom.pipelines.config import PipelineConfig, make_config, merge_options
from darkroom.pipelines.credentials import check_credentials
from darkroom.pipelines.submission.prepared_run import (
    PreparedRun,
    Scalar,
    parse_documents,
    read_documents,
)
from darkroom.pipelines.submission.submitted_run import (
    SUCCEEDED,
    RunStatus,
    SubmittedRun,
    wait_for_end,
)
from darkroom.runtime import progress

_SUBMITTED = "SUBMITTED"
# Options of the services' clients; the rest are fields of `PipelineConfig`.
_SERVICE_OPTIONS = (
    *("host", "namespace", "experiment", "run_name", "service_account", "ca_file"),
    *("project", "region", "network", "labels"),
)


def submit_pipeline(values: Mapping[str, Any], *, as_json: bool) -> int:
    """Submits the pipeline of options by name.

    Args:
        values: `target`, `pipeline` (path of a compiled file, or absent), `wait`, `shared_paths`,
            options of `KubeflowOptions` or `VertexOptions`, and fields of `PipelineConfig`: all of
            them without a compiled file, run-time parameters with one.
        as_json: Whether standard output gets one JSON object and nothing else.

    Returns:
        The exit code: 0, or 1 when the run was waited for and did not succeed.

    Raises:
        DarkroomError: It could not be submitted, or not be followed.
    """
    check_credentials(values)  # before a message shows a value
    values = dict(values)
    target, wait = values.pop("target"), values.pop("wait")
    of_service = {name: values.pop(name) for name in _SERVICE_OPTIONS if name in values}
    plan = _make_plan(values, target)
    service = _load_service(target)
    options = _make_options(service.OPTIONS, target, of_service)
    with progress.use(progress.make_sink(sys.stderr)):
        run = _finish_plan(plan, target)
        with progress.step("Submitting"):
            submitted: SubmittedRun = service.submit(run, options)
        status = RunStatus(_SUBMITTED)
        if wait:
            progress.note(submitted.url)
            with progress.step("Waiting for its end"):
                status = wait_for_end(submitted)
    print(_format_json(run, submitted, status) if as_json else _format(run, submitted, status))
    return 0 if status.state in (SUCCEEDED, _SUBMITTED) else DataError.exit_code


def prepare_run(values: Mapping[str, Any], target: str) -> PreparedRun:
    """Returns what to submit: a pipeline, its parameters, the state of what it will read.

    Args:
        values: As for `submit_pipeline`, without the options of the services.
        target: `kubeflow` or `vertex`.

    Raises:
        DataError: The source as a whole cannot be used.
        UsageError: A value is wrong.
        OSError: The compiled file cannot be read.
    """
    return _finish_plan(_make_plan(values, target), target)


@dataclass(frozen=True)
class _Plan:
    """What is asked for, checked as far as it can be before TFX is loaded, which takes seconds.

    Attributes:
        work: A compiled pipeline with its parameters, or what is to be compiled.
        is_cached: Whether anything may be taken from earlier runs.
        shared_paths: Whether a local path names the same file here and in the containers.
    """

    work: PreparedRun | PipelineConfig
    is_cached: bool
    shared_paths: bool


def _make_plan(values: Mapping[str, Any], target: str) -> _Plan:
    values = dict(values)
    path, shared_paths = values.pop("pipeline", None), values.pop("shared_paths", False)
    merged = merge_options(values)
    check_credentials(merged)  # with what the file of options says
    work: PreparedRun | PipelineConfig
    if path:
        work = _read_run(path, merged, target)
    else:
        work = make_config(merged)
        check_config(work, target)
    return _Plan(work, merged.get("cache", True), shared_paths)


def _finish_plan(plan: _Plan, target: str) -> PreparedRun:
    from darkroom.pipelines.submission import cache_states

    run = plan.work
    if isinstance(run, PipelineConfig):
        with progress.step("Compiling"):
            run = _compile_run(run, target)
    if not plan.is_cached or not run.is_cached:
        return cache_states.switch_cache_off(run)
    with progress.step("Reading the source"):
        return cache_states.pin_states(run, shared_paths=plan.shared_paths)


def _compile_run(config: PipelineConfig, target: str) -> PreparedRun:
    from darkroom.pipelines.compilation.files import format_compiled

    return PreparedRun(parse_documents(format_compiled(config, target)), config.root)


def _read_run(path: str, values: Mapping[str, Any], target: str) -> PreparedRun:
    values = {name: value for name, value in values.items() if name != "cache"}
    root = values.pop("root", None)
    run = PreparedRun(read_documents(path), root, _encode_parameters(values))
    if ("pipelineSpec" in run.documents[0]) != (target == VERTEX):
        raise UsageError(f"{path} was not compiled for {target}.", "Compile it for this target.")
    _check_given(run, target)
    return run


def _check_given(run: PreparedRun, target: str) -> None:
    """Checks what a compiled pipeline is told as its tasks would, before anybody is asked."""
    from darkroom.components.parameters import PARAMETERS
    from darkroom.pipelines.submission.cache_states import read_properties

    # The empty text stands for none, but for the source.
    paths = {name: value for name, value in run.parameters.items() if value or name == "data"}
    root = {} if run.root is None else {"root": str(run.root)}
    check_paths({**paths, **root}, target, run.volumes)
    for task in sorted({parameter.component for parameter in PARAMETERS}):
        if task not in run.tasks:
            raise UsageError(
                f"The pipeline {run.name} has no task {task}, so it is none of darkroom's.",
                "Give what `darkroom compile -o FILE` wrote.",
            )
        read_properties(run, task)


def _encode_parameters(values: Mapping[str, Any]) -> dict[str, Scalar]:
    from darkroom.components.parameters import PARAMETERS, encode_value, parse_value

    known = {parameter.name: parameter for parameter in PARAMETERS}
    encoded = {}
    for name, value in values.items():
        if name not in known:
            raise UsageError(
                f"{name} is part of the compiled file; submitting cannot change it.",
                f"Compile anew, or give one of {', '.join(sorted(known))}.",
            )
        # Before it is encoded, which would make 2 of 2.5.
        parse_value(known[name], known[name].kind() if value is None else value)
        encoded[name] = encode_value(known[name], value)
    return encoded


def _load_service(target: str) -> Any:
    try:
        return import_module(f"darkroom.pipelines.submission.{target}")
    except ImportError as error:
        raise build_missing_extra_error(f"submit --target {target}", "tfx") from error


def _make_options(kind: Any, target: str, given: Mapping[str, Any]) -> Any:
    """Returns the options of a service, once it is sure that they are its own."""
    fields = {each.name: each for each in dataclasses.fields(kind)}
    if foreign := sorted(set(given) - set(fields)):
        raise UsageError(f"{_spell(foreign[0])} is not for --target {target}.", "Leave it out.")
    missing = [
        _spell(name)
        for name, each in fields.items()
        if name not in given
        and each.default is dataclasses.MISSING
        and each.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise UsageError(f"--target {target} needs {' and '.join(missing)}.")
    return kind(**given)


def _spell(name: str) -> str:
    return "--label" if name == "labels" else f"--{name.replace('_', '-')}"


def _format(run: PreparedRun, submitted: SubmittedRun, status: RunStatus) -> str:
    lines = [f"Run        {submitted.url}"]
    lines += [f"Cache      {note}" for note in run.notes or ("What is unchanged is reused.",)]
    lines.append(f"State      {status.state.lower()}")
    lines += [f"Failed     {task}: {error}".rstrip(": ") for task, error in status.errors.items()]
    return "\n".join(lines)


def _format_json(run: PreparedRun, submitted: SubmittedRun, status: RunStatus) -> str:
    return json.dumps(
        {
            "id": submitted.id,
            "url": submitted.url,
            "state": status.state,
            "errors": dict(status.errors),
            "parameters": dict(run.parameters),
            "notes": run.notes,
        }
    )
