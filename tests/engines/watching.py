"""What processes take while something runs: memory at its most, and time of the processors."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


class Watch:
    """Looks at processes and all that they start, four times a second.

    Attributes:
        peaks: The most memory of each process in bytes, by its name and its program.
    """

    def __init__(self, processes: Callable[[], Mapping[str, int]]) -> None:
        self.peaks: dict[str, int] = {}
        self._processes, self._ended = processes, threading.Event()
        self._seconds: dict[int, float] = {}
        self._before: dict[int, float] = {}
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Watch:
        self._look()
        self._before, self._seconds = dict(self._seconds), dict(self._seconds)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def processor_seconds(self) -> float:
        """What all processes have used since the start."""
        return sum(each - self._before.get(pid, 0) for pid, each in self._seconds.items())

    def _run(self) -> None:
        while not self._ended.wait(0.25):
            self._look()

    def _look(self) -> None:
        for name, pid in self._processes().items():
            for each in list_processes(pid):
                with suppress(OSError):
                    self._note(name, each)

    def _note(self, name: str, pid: int) -> None:
        status = Path(f"/proc/{pid}/status").read_text()
        program = re.search(r"^Name:\s+(\S+)", status)[1]
        if found := re.search(r"VmHWM:\s+(\d+) kB", status):
            key = f"{name}: {program}"
            self.peaks[key] = max(self.peaks.get(key, 0), int(found[1]) * 1024)
        used = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        self._seconds[pid] = sum(map(int, used)) / _TICK


def list_processes(root: int) -> list[int]:
    """Lists a process and all that it started."""
    found = [root]
    with suppress(OSError):
        for task in Path(f"/proc/{root}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found += list_processes(child)
    return found
