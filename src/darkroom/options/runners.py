"""The runners of Beam by name: where a conversion runs."""

from __future__ import annotations

from darkroom.errors import UsageError
from darkroom.runtime.text import suggest

LOCAL_RUNNER = "FnApiRunner"
DATAFLOW_RUNNER = "DataflowRunner"
FLINK_RUNNER, SPARK_RUNNER = "FlinkRunner", "SparkRunner"
PORTABLE_RUNNER, PRISM_RUNNER = "PortableRunner", "PrismRunner"
# They give the job to a job server, which has more options than Beam's Python knows.
JOB_SERVER_RUNNERS = (FLINK_RUNNER, SPARK_RUNNER, PORTABLE_RUNNER, PRISM_RUNNER)

# DirectRunner, tensorflow-recorder's name for running here, would first try to download a program.
_RUNNERS = {
    "fnapirunner": LOCAL_RUNNER,
    "directrunner": LOCAL_RUNNER,
    "local": LOCAL_RUNNER,
    **{name.lower(): name for name in (DATAFLOW_RUNNER, *JOB_SERVER_RUNNERS)},
}


def parse_runner(name: str | None) -> str:
    """Returns Beam's name of a runner, written in any letter case; the local one for None.

    Raises:
        UsageError: There is no such runner.
    """
    if found := _RUNNERS.get(str(name or LOCAL_RUNNER).lower()):
        return found
    known = sorted({*_RUNNERS.values()})
    hint = suggest(str(name), known, f"Known: {', '.join(known)}.")
    raise UsageError(f"Unknown runner {name!r}.", hint)


def is_local(runner: str | None) -> bool:
    """Tells whether a runner is the local one, by any of its names; Beam's own default is."""
    return _RUNNERS.get(str(runner or LOCAL_RUNNER).lower()) == LOCAL_RUNNER
