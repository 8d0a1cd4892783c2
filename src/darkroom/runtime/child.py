"""Starts another Python process with this very package, and says how it ended."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from darkroom.version import PACKAGE_FOLDER

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
    module: str, arguments: Sequence[Any], connection: socket.socket, **options: Any
) -> subprocess.Popen[bytes]:
    """Starts a process that calls `serve` of a module.

    Args:
        module: Its name.
        arguments: The arguments of `serve`, as values that JSON knows.
        connection: Becomes its standard input.
        **options: As of `subprocess.Popen`.

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
    return subprocess.Popen(command, stdin=connection.fileno(), **options)


def describe_end(code: int) -> str:
    """Returns how a process ended, from its return code: "died of SIGKILL"."""
    if code >= 0:
        return f"ended with exit code {code}"
    with suppress(ValueError):
        return f"died of {signal.Signals(-code).name}"
    return f"died of signal {-code}"
