"""What a job waits for, in words."""

from __future__ import annotations

from darkroom.conversion.engines.flink import FlinkStatus
from darkroom.runtime.text import format_count

RUNNING = "RUNNING"

_CHECK = (
    "Check that it has free slots, and that its workers start: task managers, worker pools, and "
    "what --engine-workers or environment_config names."
)
_SHOWN_JOBS = 3


def describe_shortage(status: FlinkStatus | None) -> str:
    """Returns what a cluster has too few slots for, whoever has them; empty if it has enough."""
    if status is None or status.slots >= status.needed:
        return ""
    needed = format_count(status.needed, "slot")
    if not status.task_managers:
        return f"The job needs {needed}, and Flink has no task manager. Start one."
    managers = format_count(status.task_managers, "task manager")
    have = "has" if status.task_managers == 1 else "together have"
    return (
        f"The job needs {needed}, and {managers} of Flink {have} {status.slots}. Start another "
        f"one, or run this again with parallelism={status.slots}."
    )


def describe_wait(
    waited: str, state: str, status: FlinkStatus | None = None, *, has_failed: bool = False
) -> str:
    """Returns what a job waits for.

    Args:
        waited: For how long it has waited.
        state: Beam's word for how far the job is; empty if the engine has not taken it.
        status: What Flink says of it, if that was asked.
        has_failed: Whether the engine has already tried.
    """
    if not state:
        return f"For {waited} the engine has not taken the job."
    if state != RUNNING:
        return f"For {waited} the engine has not started the job: it is {state}."
    if shortage := describe_shortage(status):
        return f"For {waited} the job waits for slots. {shortage}"
    if status and not status.running and status.free < status.needed and status.others:
        return f"For {waited} the job waits for slots. {_describe_others(status)}"
    if has_failed and status and status.running:
        return f"For {waited} the tasks run again, and no worker has begun a shard."
    if has_failed:
        now = f": it is {status.state}" if status and status.state != RUNNING else ""
        return f"For {waited} the engine has not started the job again{now}."
    return f"For {waited} no worker of the engine has begun. {_CHECK}"


def _describe_others(status: FlinkStatus) -> str:
    names = ", ".join(status.others[:_SHOWN_JOBS])
    more = len(status.others) - _SHOWN_JOBS
    return (
        f"It needs {status.needed}, and {status.free} of the {format_count(status.slots, 'slot')} "
        f"of Flink are free. Other jobs run there: {names}{f' and {more} more' * (more > 0)}."
    )
