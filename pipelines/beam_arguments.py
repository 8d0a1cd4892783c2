"""Makes Beam's arguments: for a run on this machine, and for a compiled pipeline."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from darkroom.conversion.beam.runners import (
    DATAFLOW_RUNNER,
    LOCAL_RUNNER,
    build_options,
    find_engine,
    find_options,
    name_runner,
    parse_runner,
)
from darkroom.engines.discovery import make_environment
from darkroom.engines.flink import check_url, format_url
from darkroom.errors import UsageError
from darkroom.options.pipeline import LOCAL_BEAM_ARGS
from darkroom.options.targets import FLINK
from darkroom.pipelines.config import PipelineConfig

_PORTABLE_RUNNER = "PortableRunner"
_DATAFLOW_NEEDS = ("project", "region", "temp_location")
# Each task manager has a worker pool beside it; by default Beam would start a container engine.
_WORKER_POOL = {"environment_type": "EXTERNAL", "environment_config": "localhost:50000"}


def find_engine_args(config: PipelineConfig) -> list[str]:
    """Returns the arguments of Beam that the engine of a configuration needs; none without one.

    Raises:
        UsageError: An option is missing, or does not fit the engine.
        StorageError: The engine does not answer, or cannot run a job.
    """
    if config.engine is None:
        return []
    given, options = parse_beam_args(config)
    runner = name_runner(config.engine)
    found = find_options(config.engine_options, options)
    if engine := find_engine(runner):
        engine.check(build_options(runner, found))
    else:
        check_dataflow(found, "sdk_container_image")
    new = {name: value for name, value in found.items() if name not in options}
    texts = {name: json.dumps(v) if isinstance(v, dict) else v for name, v in new.items()}
    # The pipeline names an image for all its components; the last argument of a name counts.
    return [f"--runner={runner}", *(f"--{name}={text}" for name, text in texts.items()), *given]


def list_other_args(config: PipelineConfig) -> list[str]:
    """Returns the arguments of Beam for the other components."""
    return list(config.beam_args if config.engine is None else LOCAL_BEAM_ARGS)


def make_other_beam_args(config: PipelineConfig) -> list[str]:
    """Returns the arguments of all components but ImageToTFRecord: an engine is for that.

    Raises:
        UsageError: As `make_beam_args`.
    """
    if config.engine is None:
        return make_beam_args(config)
    here = dataclasses.replace(
        config, engine=None, engine_url=None, engine_workers=None, beam_args=LOCAL_BEAM_ARGS
    )
    return make_beam_args(here)


def make_beam_args(config: PipelineConfig) -> list[str]:
    """Returns the arguments of Beam for ImageToTFRecord, which are those of all without an engine.

    Every list names our image: without one, TFX would build a source package of itself for each
    component. Dataflow's workers run the image; the in-process runner ignores its name.

    Raises:
        UsageError: The runner is unknown, or an option that it needs is missing or wrong.
    """
    given, options = parse_beam_args(config)
    if config.engine == FLINK:
        url = options.get("flink_master") or config.engine_url
        if url:  # by which an interrupted task cancels its job
            check_url(url)
        _check_job_server("Flink", options)
        more = {"flink_master": format_url(url)} if url else {}
        if workers := config.engine_options.workers:
            for name, value in make_environment(*workers).items():
                more[name] = value if isinstance(value, str) else json.dumps(value)
        return complete_beam_args(given, config.image, _PORTABLE_RUNNER, more)
    if config.engine_url or config.engine_workers:
        name = "engine_url" if config.engine_url else "engine_workers"
        raise UsageError(f"{name} is for runs on this machine.", "Give the options by beam_args.")
    engine = name_runner(config.engine) if config.engine else None
    return complete_beam_args(given, config.image, engine)


def complete_beam_args(
    given: Sequence[str],
    image: str,
    engine: str | None = None,
    more: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """Returns arguments of Beam with those that the tasks of a cluster need besides.

    Args:
        given: Arguments that a user gave, as in `--runner=DataflowRunner`.
        image: The container image of the tasks.
        engine: Beam's name of a runner, where the arguments have none.
        more: Options by name that the arguments leave open.

    Raises:
        UsageError: The runner is unknown, or an option that it needs is missing.
    """
    options = _parse_arguments(given)
    runner = parse_runner(options.pop("runner", engine))
    if any(name.startswith("s3_") for name in options):
        raise UsageError(
            "Beam's options for s3:// are part of the spec, which everyone can read.",
            "Give credentials and endpoint of s3:// by secret_env and env.",
        )
    wanted = {"sdk_container_image": image}
    if runner == DATAFLOW_RUNNER:
        check_dataflow(options)
        # The image contains Beam, so no worker downloads it.
        wanted |= {"sdk_location": "container", "experiments": "use_runner_v2"}
    elif runner == _PORTABLE_RUNNER:
        _check_job_server(runner, options)
        wanted |= {**_WORKER_POOL, **more}
    elif runner != LOCAL_RUNNER:
        raise UsageError(
            f"{runner} starts a Java program beside the task, and the image has no Java.",
            "Run its job server in the cluster, and use --runner=PortableRunner "
            "--job_endpoint=HOST:8099.",
        )
    rest = [argument for argument in given if not argument.startswith("--runner")]
    missing = [f"--{name}={value}" for name, value in wanted.items() if name not in options]
    return [f"--runner={runner}", *rest, *missing]


def _check_job_server(name: str, options: Mapping[str, str]) -> None:
    if ":" not in options.get("job_endpoint", ""):
        raise UsageError(
            f"{name} needs the address of a job server.",
            "Add --job_endpoint=HOST:8099 to beam_args.",
        )


def check_dataflow(options: Mapping[str, str], *more: str) -> None:
    """Checks that Dataflow gets its necessary options.

    Args:
        options: Beam's options by name.
        more: Names of options that are needed besides the usual ones.

    Raises:
        UsageError: An option is missing or wrong.
    """
    if missing := [name for name in (*_DATAFLOW_NEEDS, *more) if not options.get(name)]:
        flags = " ".join(f"--{name}=..." for name in missing)
        raise UsageError(f"Dataflow needs {' and '.join(missing)}.", f"Add {flags} to beam_args.")
    if not options["temp_location"].startswith("gs://"):
        raise UsageError(
            f"Dataflow's temp_location is {options['temp_location']!r}.", "Give a gs:// folder."
        )


def parse_beam_args(config: PipelineConfig) -> tuple[tuple[str, ...], dict[str, str]]:
    """Returns the arguments that a user gave, as they are and as values by name.

    Raises:
        UsageError: One is not like `--name=value`, or names a runner beside an engine.
    """
    given = () if config.beam_args == LOCAL_BEAM_ARGS else config.beam_args
    options = _parse_arguments(given)
    if config.engine is not None and "runner" in options:
        raise UsageError("engine and the runner of beam_args cannot be used together.")
    return given, options


def _parse_arguments(given: Sequence[str]) -> dict[str, str]:
    for argument in given:
        if not argument.startswith("--"):
            raise UsageError(
                f"{argument!r} in beam_args is not an option.",
                "Write each option as one text: --region=europe-west1.",
            )
    pairs = [argument[2:].partition("=") for argument in given]
    return {name: value for name, _, value in pairs}
