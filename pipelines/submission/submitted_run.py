"""A submitted run, with its page and its state."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from darkroom.errors import TransientStorageError

SUCCEEDED = "SUCCEEDED"
_FINAL = {SUCCEEDED, "FAILED", "SKIPPED", "CANCELED", "CANCELLED", "ERROR"}
_POLL_SECONDS = 10.0
_MAX_FAILED_POLLS = 30


@dataclass(frozen=True)
class RunStatus:
    """The state of a run.

    Attributes:
        state: `PENDING`, `RUNNING`, `SUCCEEDED`, `FAILED`, ... as the service calls it.
        errors: The service's message about each failed task, by name.
    """

    state: str
    errors: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_final(self) -> bool:
        """Whether the run has ended."""
        return self.state in _FINAL


class SubmittedRun(Protocol):
    """A run that a service accepted."""

    @property
    def id(self) -> str:
        """The service's name for the run."""

    @property
    def url(self) -> str:
        """Page that shows the run."""

    def read_status(self) -> RunStatus:
        """Asks the service for the state of the run.

        Raises:
            TransientStorageError: The service does not answer at the moment.
            DarkroomError: The service refuses to answer.
        """


@dataclass(frozen=True)
class Schedule:
    """Runs that a service will start at certain times; nobody can wait for their end.

    Attributes:
        id: The service's name for the schedule.
        url: Page that shows it.
    """

    id: str
    url: str


def wait_for_end(run: SubmittedRun, poll_seconds: float = _POLL_SECONDS) -> RunStatus:
    """Waits until a run has ended.

    Raises:
        TransientStorageError: The service did not answer 30 times in a row.
        DarkroomError: The service refuses to answer.
    """
    num_failed = 0
    while True:
        try:
            status = run.read_status()
            num_failed = 0
            if status.is_final:
                return status
        except TransientStorageError:
            num_failed += 1
            if num_failed == _MAX_FAILED_POLLS:
                raise
        time.sleep(poll_seconds)
