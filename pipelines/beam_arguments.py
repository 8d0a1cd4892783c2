"""Makes the arguments of Beam for a compiled pipeline."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from darkroom.errors import UsageError
from darkroom.options.pipeline import LOCAL_BEAM_ARGS
from darkroom.options.runners import (
    DATAFLOW_RUNNER,
    LOCAL_RUNNER,
    PORTABLE_RUNNER,
    parse_runner,
)
from darkroom.pipelines.config import PipelineConfig

_DATAFLOW_NEEDS = ("project", "region", "temp_location")
# Each task manager has a worker pool beside it; by default Beam would start a container engine.
_WORKER_POOL = {"environment_type": "EXTERNAL", "environment_config": "localhost:50000"}


def make_beam_args(config: PipelineConfig) -> list[str]:
    """Returns the arguments of Beam for all components.

    Every list names our image: without one, TFX would build a source package of itself for each
    component. Dataflow's workers run the image; the in-process runner ignores its name.

    Raises:
        UsageError: The runner is unknown, or an option that it needs is missing or wrong.
    """
    given = () if config.beam_args == LOCAL_BEAM_ARGS else config.beam_args
    return complete_beam_args(given, config.image)


def complete_beam_args(given: Sequence[str], image: str) -> list[str]:
    """Returns arguments of Beam with those that the tasks of a cluster need besides.

    Args:
        given: Arguments that a user gave, as in `--runner=DataflowRunner`.
        image: The container image of the tasks.

    Raises:
        UsageError: The runner is unknown, or an option that it needs is missing.
    """
    options = _parse_arguments(given)
    runner = parse_runner(options.pop("runner", None))
    if any(name.startswith("s3_") for name in options):
        raise UsageError(
            "Beam's options for s3:// are part of the spec, which everyone can read.",
            "Give credentials and endpoint of s3:// by secret_env and env.",
        )
    wanted = {"sdk_container_image": image}
    if runner == DATAFLOW_RUNNER:
        _check_dataflow(options)
        # The image contains Beam, so no worker downloads it.
        wanted |= {"sdk_location": "container", "experiments": "use_runner_v2"}
    elif runner == PORTABLE_RUNNER:
        if ":" not in options.get("job_endpoint", ""):
            raise UsageError(
                f"{runner} needs the address of a job server.",
                "Add --job_endpoint=HOST:8099 to beam_args.",
            )
        wanted |= _WORKER_POOL
    elif runner != LOCAL_RUNNER:
        raise UsageError(
            f"{runner} starts a Java program beside the task, and the image has no Java.",
            "Run its job server in the cluster, and use --runner=PortableRunner "
            "--job_endpoint=HOST:8099.",
        )
    rest = [argument for argument in given if argument.partition("=")[0] != "--runner"]
    missing = [f"--{name}={value}" for name, value in wanted.items() if name not in options]
    return [f"--runner={runner}", *rest, *missing]


def _check_dataflow(options: Mapping[str, str]) -> None:
    """Checks that Dataflow gets its necessary options.

    Raises:
        UsageError: An option is missing or wrong.
    """
    if missing := [name for name in _DATAFLOW_NEEDS if not options.get(name)]:
        flags = " ".join(f"--{name}=..." for name in missing)
        raise UsageError(f"Dataflow needs {' and '.join(missing)}.", f"Add {flags} to beam_args.")
    if not options["temp_location"].startswith("gs://"):
        raise UsageError(
            f"Dataflow's temp_location is {options['temp_location']!r}.", "Give a gs:// folder."
        )


def _parse_arguments(given: Sequence[str]) -> dict[str, str]:
    """Returns the values of options by name, "" of a switch; of one given twice, the last value.

    Raises:
        UsageError: One is not in the form `--NAME=VALUE` or `--NAME`.
    """
    for argument in given:
        if not re.match(r"--[^\s=]+(=|$)", argument):
            raise UsageError(
                f"{argument!r} in beam_args is not an option.",
                "Write each option as one text: --region=europe-west1.",
            )
    pairs = [argument[2:].partition("=") for argument in given]
    return {name: value for name, _, value in pairs}
