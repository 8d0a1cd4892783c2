"""How a task of Kubeflow or Vertex begins and ends: its arguments, an error, a signal."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn

from darkroom import storage
from darkroom.errors import UsageError, convert_error
from darkroom.steps.places import name_uris


class TaskParser(argparse.ArgumentParser):
    """A parser of the arguments that a component gives to its task."""

    def error(self, message: str) -> NoReturn:
        """Raises UsageError for wrong arguments."""
        raise UsageError(f"{message}.", "Let the component of a compiled pipeline start the task.")


def report_error(error: Exception, **task: str) -> int:
    """Prints an error for people and as a line of JSON, and returns the exit code.

    The viewer of Kubeflow does not wrap lines, so the line of JSON shows little of the message.

    Args:
        error: The error of a task.
        task: More values of the line, by name.
    """
    if isinstance(error, OSError):
        error = storage.convert_os_error(error)  # with the name that may be meant
    found = convert_error(error)
    message, hint = name_uris(found.message), name_uris(found.hint.strip())
    described = {
        "code": found.code,
        "message": message,
        "hint": hint,
        "exit_code": found.exit_code,
        **task,
    }
    text = f"{message}\n{hint}".rstrip()
    print(text, json.dumps({"error": described}), sep="\n", file=sys.stderr, flush=True)
    return found.exit_code


def handle_signals() -> None:
    """Lets SIGINT and SIGTERM end the process.

    A signal does not end the first process of a container unless the process handles it.
    """
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, _end_by_signal)


def _end_by_signal(number: int, _: object) -> NoReturn:
    # Not with sys.stderr: the signal may interrupt one of its writes, and a second one would raise.
    with suppress(OSError):
        os.write(2, f"Ended by {signal.Signals(number).name}.\n".encode())
    os._exit(128 + number)
