"""The processes of an engine on this machine, which end with what they started."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any


def wait_until(is_done: Callable[[], Any], what: str, seconds: float = 120) -> Any:
    """Returns what a function gives once that is true."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := is_done():
            return found
        time.sleep(0.1)
    raise AssertionError(f"Nothing after {seconds} s: {what}.")


def find_free_port() -> int:
    """Returns the number of a port of this machine at which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def is_open(address: str, port: int) -> bool:
    """Whether something listens there."""
    with suppress(OSError):
        socket.create_connection((address, port), 1).close()
        return True
    return False


class Processes:
    """Processes by name, each with a log and a session of its own.

    Args:
        folder: Where they run, and have their logs.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(
        self, name: str, command: Sequence[str], environment: Mapping[str, str] = os.environ
    ) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env=environment,
                start_new_session=True,
            )

    def run(self, command: Sequence[str], variables: Mapping[str, str]) -> str:
        """Runs a command to its end; returns what it prints."""
        environment = {**os.environ, **variables}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def kill(self, name: str) -> None:
        """Ends a process and its children at once, as when their machine goes away."""
        process = self.processes.pop(name)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        for name in [*self.processes]:
            self.kill(name)

    def read_log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")
