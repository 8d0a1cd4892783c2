"""Starts another Python process with this very package, waits for it, and says how it ended."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from darkroom.version import PACKAGE_FOLDER

TICK_SECONDS = 1.0
# After so many ticks in which it does nothing, a child never answers.
IDLE_TICKS = 30
# The same where the system does not tell what a process does.
_BLIND_TICKS = 600
# States of a process that works or is kept from it: it runs or could, waits for a disk, is stopped.
_BUSY = frozenset("RDTt")

# The parent decides when the process ends. It imports the package that its parent has imported,
# wherever that came from.
PROGRAM = """
import importlib, json, os, signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
settings = json.loads(sys.argv[1])
sys.path[:] = settings["path"]
import darkroom
folder = os.path.dirname(os.path.realpath(darkroom.__file__ or ""))
if folder != settings["folder"]:
    sys.exit(f"it imports darkroom from {folder} instead of {settings['folder']}")
importlib.import_module(settings["module"]).serve(*settings["arguments"])
"""


def start_child(
    module: str, arguments: Sequence[Any], **options: Any
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Starts a process that calls `serve` of a module; its standard output goes nowhere.

    Args:
        module: Its name.
        arguments: The arguments of `serve`, as values that JSON knows.
        **options: As of `subprocess.Popen`.

    Returns:
        The process, and the socket whose other end is its standard input.

    Raises:
        OSError: There is no interpreter, or the system starts no process.
    """
    if not sys.executable:
        raise FileNotFoundError("sys.executable is empty")
    settings = {
        "path": [each for each in sys.path if isinstance(each, str)],
        "folder": PACKAGE_FOLDER,
        "module": module,
        "arguments": arguments,
    }
    command = [sys.executable, "-I", "-B", "-c", PROGRAM, json.dumps(settings)]
    ours, theirs = socket.socketpair()
    options |= {"stdin": theirs.fileno(), "stdout": subprocess.DEVNULL}
    with theirs:
        try:
            return subprocess.Popen(command, **options), ours
        except OSError:
            ours.close()
            raise


def describe_end(code: int) -> str:
    """Returns how a process ended, from its return code: "died of SIGKILL"."""
    if code >= 0:
        return f"ended with exit code {code}"
    with suppress(ValueError):
        return f"died of {signal.Signals(-code).name}"
    return f"died of signal {-code}"


class WatchedSocket(socket.socket):
    """The socket to a child, whose calls wait as long as the child may still answer.

    The child has done nothing in a tick when it sleeps and used no processor time. This process
    counts ticks while it runs itself, so neither a pause of one of them nor a busy machine counts.

    Args:
        connection: A socket; the new one takes its place.
        process: The id of the child's process.

    Raises:
        TimeoutError: By its calls: the child has done nothing for `IDLE_TICKS` in a row.
    """

    def __init__(self, connection: socket.socket, process: int) -> None:
        super().__init__(fileno=connection.detach())
        self.settimeout(TICK_SECONDS)
        self._process = process
        self._cpu_time: int | None = None

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        """Receives what there is, as soon as there is something."""
        return self._wait(partial(super().recv_into, buffer, nbytes, flags))

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Sends all of some bytes."""
        view = memoryview(data)
        while view:
            view = view[self._wait(partial(self.send, view, flags)) :]

    def _wait(self, call: Callable[[], int]) -> int:
        idle = 0
        while True:
            with suppress(TimeoutError):
                return call()
            idle = idle + 1 if self._is_idle() else 0
            if idle == (IDLE_TICKS if self._cpu_time is not None else _BLIND_TICKS):
                raise TimeoutError("the other process does nothing")

    def _is_idle(self) -> bool:
        """Tells whether the child did nothing since the last call, as far as that is known."""
        before = self._cpu_time
        state, self._cpu_time = read_state(self._process) or ("", None)
        return state not in _BUSY and self._cpu_time == before


def read_state(process: int) -> tuple[str, int] | None:
    """Returns the state of a process, a letter, and its processor time; None where unknown."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            # The name of the program, which is in brackets before them, may have spaces.
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return fields[0].decode(), int(fields[11]) + int(fields[12])
