"""Why a job failed: the one line of what Beam says that is a reason, and no place in its code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from darkroom.conversion.beam.job_server import find_pool
from darkroom.runtime.text import make_visible

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

_TRACEBACK = "Traceback (most recent call last):"
# Places in code of Java, with and without `at`, and of Python; and what a list of them is of.
_FRAME = re.compile(
    r"\s+\S|at |\.\.\. \d+ more|\S+\((Native Method|Unknown Source|\w+\.\w+:\d+)\)$|.*:\s*$"
)
_CAUSE = "Caused by: "
_MAX_CHARACTERS = 1_000


def find_failure_reason(error: Exception) -> str:
    """Returns one line that says why a job failed.

    Args:
        error: An error of Beam's client. Its text may have traces of Java, of Python, and of Python
            in Java.
    """
    import grpc

    if isinstance(error, grpc.Call):
        return make_visible(f"{error.code().name}: {error.details()}", _MAX_CHARACTERS)
    _, traced, text = str(error).rpartition(_TRACEBACK)
    lines = [line for line in text.splitlines() if line.strip() and not _FRAME.match(line)]
    if not traced:  # Java names the first cause last
        causes = [line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE)]
        lines = causes[-1:] or lines
    return make_visible(lines[0] if lines else type(error).__name__, _MAX_CHARACTERS)


def find_remedy(reason: str, options: PipelineOptions) -> str:
    """Returns what may help against a reason.

    Args:
        reason: A result of `find_failure_reason`.
        options: Those of the job.
    """
    from apache_beam.options.pipeline_options import PortableOptions

    portable = options.view_as(PortableOptions)
    if reason.startswith("DEADLINE_EXCEEDED"):
        return (
            f"Beam's client follows a job for {portable.job_server_timeout} seconds: give more, as "
            "--beam-option job_server_timeout=86400."
        )
    if "Connection refused" in reason and portable.environment_type == "EXTERNAL":
        return (
            f"Is there a pool of workers at {find_pool(portable)} beside each task manager or "
            "executor?"
        )
    return "The lines above and the runner's own log say more."
