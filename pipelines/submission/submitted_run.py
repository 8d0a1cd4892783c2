"""A run on a service: where it is seen, how it goes, and how it ended."""

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
    """How a run goes.

    Attributes:
        state: `PENDING`, `RUNNING`, `SUCCEEDED`, `FAILED`, ... as the service says.
        errors: What the service says of each failed task, by name.
    """

    state: str
    errors: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_final(self) -> bool:
        """Whether the run is at its end."""
        return self.state in _FINAL


class SubmittedRun(Protocol):
    """A run that a service has taken."""

    @property
    def id(self) -> str:
        """The service's name for it."""

    @property
    def url(self) -> str:
        """Page that shows it."""

    def read_status(self) -> RunStatus:
        """Asks how it goes.

        Raises:
            TransientStorageError: The service does not answer for now.
            DarkroomError: It refuses to.
        """


def wait_for_end(run: SubmittedRun, poll_seconds: float = _POLL_SECONDS) -> RunStatus:
    """Waits until a run is at its end.

    Raises:
        TransientStorageError: The service has not answered for 30 times in a row.
        DarkroomError: It refuses to.
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
