"""What became of a task that the emulator ran."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any


@dataclass
class TaskRun:
    """What became of a task.

    Attributes:
        state: SUCCEEDED, CACHED, FAILED or NOT_TRIGGERED.
        codes: Exit codes of its pods: 1, whatever the code of the task's own process.
        outputs: Artifacts by output, as ML Metadata has them, with the types that were asked for.
        parameters: Output parameters by name.
        logs: What each pod printed: the task's own process, and the launcher's last line.
        seconds: Wall time of all attempts.
        execution: Id of its execution in ML Metadata.
    """

    state: str
    codes: list[int] = field(default_factory=list)
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)
    logs: list[str] = field(default_factory=list)
    seconds: float = 0.0
    execution: int = 0

    @property
    def log(self) -> str:
        """What the last pod printed."""
        return self.logs[-1] if self.logs else ""

    @property
    def task_codes(self) -> list[int]:
        """Exit codes of the task's own processes, which only the launcher's last lines tell."""
        pattern = r"failed to execute component: exit status (\d+)\n$"
        found = [re.search(pattern, each) for each in self.logs]
        return [int(each[1]) if each else 0 for each in found]
