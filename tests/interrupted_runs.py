"""Runs `darkroom` in processes that end at a chosen step.

As a program, it takes a request as JSON: the arguments, the kind of step, the step to end at, and a
file that gets the number of steps of a run that came to its end.
"""

from __future__ import annotations

import errno
import functools
import importlib
import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.warm_python import WarmPython

# Every place where a run changes something on disk. A run ends just before the chosen one.
STEPS = (
    "darkroom.storage.locks._acquire",
    "darkroom.conversion.output.exchange._exchange",
    "darkroom.conversion.output.exchange.remove_beside",
    "darkroom.dataset.journal.write_journal",
    "darkroom.dataset.rejects.write_rejects",
    "darkroom.storage.delete_file",
    "darkroom.storage.remove_empty_folders",
    "darkroom.storage.make_folder",
    "darkroom.storage.open_write",
    "darkroom.storage.rename",
    "darkroom.storage.sync_file",
    "darkroom.storage.sync_folder",
    "darkroom.storage.write_bytes",
    "darkroom.dataset.tfrecord._write_vector",
)
# The calls of the system by which any command changes a folder.
SYSTEM = ("os.fsync", "os.link", "os.mkdir", "os.rename", "os.replace", "os.rmdir", "os.unlink")
FULL = (
    "darkroom.storage.open_write",
    "darkroom.storage.sync_file",
    "darkroom.storage.write_bytes",
    "darkroom.dataset.tfrecord._write_vector",
)


class Counter:
    """Counts steps; at the chosen one it kills the process group, or the disk is full."""

    def __init__(self, chosen: int, fault: str) -> None:
        self.steps = 0
        self._chosen = chosen
        self._fault = fault

    def watch(self, name: str) -> None:
        module_name, _, function_name = name.rpartition(".")
        module = importlib.import_module(module_name)
        original = getattr(module, function_name)

        @functools.wraps(original)
        def counted(*args, **options):
            self.steps += 1
            if self.steps == self._chosen and self._fault != "full":
                os.killpg(0, signal.SIGKILL)
            # Once full, a disk stays full.
            if 0 < self._chosen <= self.steps and self._fault == "full":
                raise OSError(errno.ENOSPC, "No space left on device", str(args[0]))
            return original(*args, **options)

        setattr(module, function_name, counted)


class Runner:
    """Runs commands in processes of their own, which may end early.

    A step is by its `fault`: "convert", a place where a conversion changes something; "system", a
    call of the system that changes a folder, from any thread; "full", a write at which the disk is
    full.

    Attributes:
        output: What the last command printed.
    """

    def __init__(self, warm_python: WarmPython, folder: Path) -> None:
        self._warm_python, self._folder = warm_python, folder
        self.output = ""

    def run(
        self, *argv: object, fault: str = "convert", step: int = 0, kill_after: float | None = None
    ) -> int:
        """Returns the exit code; -9 when the process was killed, at a step or after seconds."""
        request = {"argv": [*map(str, argv)], "fault": fault, "step": step}
        with (self._folder / "output").open("w") as log:
            process = self._warm_python.start(
                *(__file__, json.dumps({**request, "steps": str(self._folder / "steps")})),
                cwd=self._folder,
                stdout=log.fileno(),
                stderr=log.fileno(),
            )
        if kill_after is not None:
            time.sleep(kill_after)
            # It may not have made its group yet, or have ended.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
        self.output = (self._folder / "output").read_text()
        return code

    def count_steps(self, *argv: object, fault: str = "convert") -> int:
        """Runs a command to its end; returns how often it could have ended before."""
        assert self.run(*argv, fault=fault) == 0, self.output
        return int((self._folder / "steps").read_text())


def main(text: str) -> int:
    """Does what a request says."""
    from darkroom import cli

    request = json.loads(text)
    counter = Counter(request["step"], request["fault"])
    for name in {"convert": STEPS, "full": FULL, "system": SYSTEM}[request["fault"]]:
        counter.watch(name)
    code = cli.main(request["argv"])
    Path(request["steps"]).write_text(str(counter.steps))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
