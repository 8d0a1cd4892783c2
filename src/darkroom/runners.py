"""Beam's runners and options by name, checked before anything starts."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from darkroom.errors import UsageError

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

LOCAL_RUNNER = "FnApiRunner"
DATAFLOW_RUNNER = "DataflowRunner"

# DirectRunner, tensorflow-recorder's name for running here, would first try to download a program.
_RUNNERS = {
    "fnapirunner": LOCAL_RUNNER,
    "directrunner": LOCAL_RUNNER,
    "local": LOCAL_RUNNER,
    "dataflowrunner": DATAFLOW_RUNNER,
    "flinkrunner": "FlinkRunner",
    "sparkrunner": "SparkRunner",
    "portablerunner": "PortableRunner",
    "prismrunner": "PrismRunner",
}


def parse_runner(name: str | None) -> str:
    """Returns Beam's name of a runner, written in any letter case; the local one for None.

    Raises:
        UsageError: There is no such runner.
    """
    runner = _RUNNERS.get((name or LOCAL_RUNNER).lower())
    if runner is None:
        raise UsageError(
            f"Unknown runner {name!r}.", f"Known: {', '.join(sorted(set(_RUNNERS.values())))}."
        )
    return runner


def format_flags(options: Mapping[str, Any]) -> list[str]:
    """Returns Beam flags for options by name.

    True gives a bare flag, None and False none, a list one flag an element.

    Raises:
        UsageError: Beam has no such option.
    """
    if options:
        _check_names(options)
    flags = []
    for name, value in options.items():
        for item in value if isinstance(value, list | tuple) else [value]:
            if item is True:
                flags.append(f"--{name}")
            elif item is not None and item is not False:
                flags.append(f"--{name}={item}")
    return flags


def _check_names(options: Mapping[str, Any]) -> None:
    from apache_beam.options.pipeline_options import PipelineOptions

    known = PipelineOptions([]).get_all_options().keys()
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=3)
            guess = f"Did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise UsageError(f"Beam has no option {name!r}.", guess or "See Beam's documentation.")


def build_options(runner: str, options: Mapping[str, Any]) -> PipelineOptions:
    """Returns Beam's options for a runner; never reads the process's own arguments.

    Raises:
        UsageError: Beam has no such option.
    """
    from apache_beam.options.pipeline_options import PipelineOptions

    return PipelineOptions([f"--runner={runner}", *format_flags(options)])
