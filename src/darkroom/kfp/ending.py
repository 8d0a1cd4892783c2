"""How a task of Kubeflow or Vertex ends: its line of JSON for an error, its exit code, a signal."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import NoReturn

from darkroom import storage
from darkroom.errors import convert_error
from darkroom.kfp.places import name_uris


def report_error(error: Exception, **task: str) -> int:
    """Prints the line of JSON for an error, and returns the exit code.

    Args:
        error: What a task raised.
        task: What else the line says of the task, by name.
    """
    if isinstance(error, OSError):
        error = storage.convert_os_error(error)  # with the name that may be meant
    found = convert_error(error)
    described = {
        "code": found.code,
        "message": name_uris(found.message),
        "hint": name_uris(found.hint.strip()),
        "exit_code": found.exit_code,
        **task,
    }
    print(json.dumps({"error": described}), file=sys.stderr, flush=True)
    return found.exit_code


def handle_signals() -> None:
    """Lets SIGINT and SIGTERM end the process.

    A signal does not end the first process of a container unless the process handles it.
    """
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, _end_by_signal)


def _end_by_signal(number: int, _: object) -> NoReturn:
    # Not with sys.stderr: the signal may interrupt one of its writes, and a second one would raise.
    os.write(2, f"Ended by {signal.Signals(number).name}.\n".encode())
    os._exit(128 + number)
