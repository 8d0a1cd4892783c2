"""Beam's runners and options by name, checked before anything starts."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from darkroom.conversion.beam.engine import Engine, list_engines
from darkroom.errors import UsageError
from darkroom.options.targets import DATAFLOW, IMAGE, EngineOptions
from darkroom.runtime.text import find_similar, suggest

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

    from darkroom.options.conversion import ConversionOptions

LOCAL_RUNNER = "FnApiRunner"
DATAFLOW_RUNNER = "DataflowRunner"

# Beam asks a job server with this limit, and some of them it follows no longer than that: after its
# own five minutes the client would give up a job that runs. `Engine.check` looks for an answer.
_JOB_SECONDS = 30 * 24 * 3600
# From this similarity on, a name is a mistyped option of Beam, not an option of an engine.
_SAME_OPTION = 0.85

# DirectRunner, tensorflow-recorder's name for running here, would first try to download a program.
_RUNNERS = {
    "fnapirunner": LOCAL_RUNNER,
    "directrunner": LOCAL_RUNNER,
    "local": LOCAL_RUNNER,
    "dataflowrunner": DATAFLOW_RUNNER,
}


def parse_runner(name: str | None) -> str:
    """Returns Beam's name of a runner, written in any letter case; the local one for None.

    Raises:
        UsageError: There is no such runner.
    """
    if found := _RUNNERS.get(str(name or LOCAL_RUNNER).lower()):
        return found
    if engine := find_engine(name):
        return engine.runner
    known = {*_RUNNERS.values(), *(engine.runner for engine in list_engines())}
    raise UsageError(f"Unknown runner {name!r}.", f"Known: {', '.join(sorted(known))}.")


def choose_runner(
    options: ConversionOptions, runner: str | None, project: str | None, region: str | None
) -> tuple[str, Mapping[str, Any]]:
    """Returns Beam's name of the runner that options ask for, and its options.

    Raises:
        UsageError: `project`, `region` or an option of Beam does not fit the runner.
    """
    given = options.beam_options
    if options.engine is None:
        name = parse_runner(runner)
    elif runner is not None:
        raise UsageError("engine and runner cannot be used together.", "Give engine alone.")
    else:
        name, given = name_runner(options.engine), find_options(options.engine_options, given)
    if (project or region) and name != DATAFLOW_RUNNER:
        raise UsageError("project and region go with runner='DataflowRunner'.")
    return name, given


def is_local(runner: str | None) -> bool:
    """Tells whether a runner is the local one, by any of its names; Beam's own default is."""
    return _RUNNERS.get(str(runner or LOCAL_RUNNER).lower()) == LOCAL_RUNNER


def find_engine(runner: str | None) -> Engine | None:
    """Returns the engine of a runner, written in any letter case; None for all other runners."""
    name = str(runner or LOCAL_RUNNER).lower()
    if name in _RUNNERS:
        return None
    return next((engine for engine in list_engines() if engine.runner.lower() == name), None)


def name_runner(engine: str) -> str:
    """Returns Beam's name of the runner of an engine, which the option `engine` names."""
    if engine == DATAFLOW:
        return DATAFLOW_RUNNER
    return next(each.runner for each in list_engines() if each.name == engine)


def find_options(engine: EngineOptions, given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns Beam's options for an engine: those that are found out, and those given.

    Args:
        engine: An engine, and where it is.
        given: Beam's options by name; they replace options that would be found out.

    Raises:
        UsageError: An option is missing, or does not fit the engine.
        StorageError: The engine does not answer, or cannot run a job.
    """
    if engine.engine != DATAFLOW:
        found = next(each for each in list_engines() if each.name == engine.engine)
        return found.find_options(engine, given)
    if engine.engine_url is not None:
        raise UsageError(
            "engine_url (--engine-url) is not for Dataflow.", "Give project and region instead."
        )
    kind, value = engine.workers or (IMAGE, None)
    if kind != IMAGE:
        raise UsageError(
            f"engine_workers is {kind}={value}: Dataflow takes image=NAME (--engine-workers) only."
        )
    return {"sdk_container_image": value, **given} if value else {**given}


def build_options(runner: str, options: Mapping[str, Any]) -> PipelineOptions:
    """Returns Beam's options for a runner; never reads the process's own arguments.

    Args:
        runner: Beam's name of the runner.
        options: Values by name, as in `num_workers`, of Beam's types. A list gives an option
            several times, a mapping becomes JSON, None leaves it out.

    Raises:
        UsageError: Beam does not know an option, or rejects its value.
    """
    from darkroom.runtime.plain_beam import beam

    if secret := next((name for name in options if name.startswith("s3_")), None):
        raise UsageError(
            f"Beam's option {secret!r} is not used: options are stored and shown with jobs.",
            "Set credentials and endpoint of s3:// in the environment, for example AWS_PROFILE.",
        )
    flags = [f"--runner={runner}"]
    is_engine = find_engine(runner) is not None
    if is_engine:
        options = {"job_server_timeout": _JOB_SECONDS, **options}
    if options:
        actions = _read_actions()
        for name, value in options.items():
            flags += _format_option(name, value, actions, is_engine=is_engine)
    with _logging_kept():
        built = beam.options.pipeline_options.PipelineOptions(flags)
    complaint = io.StringIO()
    try:
        # Beam parses options when they are first read, and a wrong one ends the process then.
        with contextlib.redirect_stderr(complaint):
            built.get_all_options()
    except SystemExit as error:
        if not complaint.getvalue():  # not from the parser: a signal came while it was parsing
            raise
        problem = complaint.getvalue().strip().rpartition("error: ")[2]
        raise UsageError(
            f"Beam rejects an option: {problem}.", "See Beam's documentation."
        ) from error
    return built


def list_choices(name: str) -> list[str]:
    """Returns the values that one of Beam's options may have."""
    return [str(each) for a in _read_actions() if a.dest == name for each in a.choices or ()]


@contextlib.contextmanager
def _logging_kept() -> Iterator[None]:
    """Keeps Beam's options from sending the log of this process to the terminal.

    They do so where nothing receives it. Then all that an engine says would be there, too.
    """
    root, handler = logging.getLogger(), logging.NullHandler()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


def _read_actions() -> list[argparse.Action]:
    from darkroom.runtime.plain_beam import beam

    parsers: list[argparse.ArgumentParser] = []
    with _logging_kept():
        options = beam.options.pipeline_options.PipelineOptions([])
        options.get_all_options(add_extra_args_fn=parsers.append)
    return list(parsers[0]._actions)


def _format_option(
    name: str, value: Any, actions: Sequence[argparse.Action], *, is_engine: bool
) -> list[str]:
    """Returns the flags that give an option a value, by any of its names.

    An engine has more options, which only its job server knows.
    """
    # An option may have two flags, one that switches it on and one off.
    found = [a for a in actions if a.dest == name or f"--{name}" in a.option_strings]
    if not found:
        known = {n for a in actions for n in (a.dest, *(o.lstrip("-") for o in a.option_strings))}
        if is_engine and not find_similar(name, known, _SAME_OPTION):
            return [] if value is None else [f"--{name}={value}"]
        hint = suggest(name, known, "See Beam's documentation.")
        raise UsageError(f"Beam has no option {name!r}.", hint)
    exact = next((a for a in found if f"--{name}" in a.option_strings), found[0])
    if value is None:
        return []
    if isinstance(value, bool) and exact.nargs == 0:
        opposite = (a for a in actions if a.dest == exact.dest and a.const is not exact.const)
        action = exact if value else next(opposite, None)
        return [] if action is None else [action.option_strings[0]]
    flag = f"--{name}" if f"--{name}" in exact.option_strings else exact.option_strings[0]
    values = value if isinstance(value, list | tuple) else [value]
    return [f"{flag}={json.dumps(v) if isinstance(v, dict) else v}" for v in values]
