"""Turns the output of an engine whose job failed into one darkroom error."""

from __future__ import annotations

import re

from darkroom import errors
from darkroom.engines.known import KNOWN, NOT_SHARED, Known
from darkroom.errors import (
    STORE_IS_DOWN,
    AccessError,
    CredentialsError,
    DarkroomError,
    StorageError,
    TransientStorageError,
)
from darkroom.runtime.text import make_visible

# Our own error, as a worker or the engine prints it: its class, its message, and Beam's step.
_OURS = re.compile(r"\bdarkroom\.errors\.(\w+): (.+?)(?= \[while running|$)", re.MULTILINE)
_CAUSE = re.compile(
    r"^(?:Caused by: |panic: )?((?:[\w$]+\.)*\w*(?:Error|Exception|Interrupt)): (.+)$", re.MULTILINE
)
# They say that a job or a task failed, not why.
_WRAPPERS = {
    "RuntimeError",
    "RuntimeException",
    "ExecutionException",
    "JobExecutionException",
    "JobCancellationException",
    "ProgramInvocationException",
    "ClientExecutionException",
}
# An error that is not ours, raised by darkroom's code, at the end of a traceback. A user's
# folder may have our name, too.
_DEFECT = re.compile(
    r'File "[^"]*/(?:src|(?:site|dist)-packages)/darkroom/[^"]*", line \d+, in \S+\n'
    r"[^\n]*\n(?:[ ~^]+\n)?\w+: "
)

_CREDENTIALS = (
    "Workers take a store's address and credentials from their own environment: check these first. "
    "If they are right, run again when the store is back."
)


def find_cause(runner: str, error: Exception, text: str, where: str) -> DarkroomError | None:
    """Returns the darkroom error for an engine's error, from the lines that it printed.

    Args:
        runner: Beam's name of the runner.
        error: The error that was raised here.
        text: The engine's lines.
        where: A sentence that says where these lines are.

    Returns:
        The error; None for a defect of darkroom.
    """
    cause = _find_last(text) or _describe_error(error)
    if NOT_SHARED.is_in(text):
        return StorageError(f"{NOT_SHARED.what}: {cause}.", f"{NOT_SHARED.hint} {where}")
    if ours := _OURS.findall(text):
        name, message = ours[-1]
        kind = getattr(errors, name, StorageError)
        is_store = issubclass(kind, TransientStorageError | AccessError | CredentialsError)
        return kind(_shorten_ours(message), f"{_CREDENTIALS} {where}" if is_store else where)
    if known := next((known for known in KNOWN if known.is_in(text)), None):
        cause = _find_last(text, known) or cause
        return known.kind(f"{known.what}: {cause}.", f"{known.hint} {where}")
    if _DEFECT.search(text):
        return None
    return StorageError(f"{runner} failed: {cause}.", where)


def _find_last(text: str, known: Known | None = None) -> str:
    """Returns the last error that tells why something failed; nothing if none does.

    Args:
        text: The engine's lines.
        known: Their meaning: an error that says this tells more than a later one.
    """
    causes = [(kind.rpartition(".")[2], what) for kind, what in _CAUSE.findall(text)]
    telling = [each for each in causes if each[0] not in _WRAPPERS] or causes
    if known:
        found = [each for each in telling if known.is_in(": ".join(each))]
        telling = (
            found or [each for each in causes[::-1] if known.is_in(": ".join(each))] or telling
        )
    # The line before it names the program.
    telling = [each for each in telling if not each[1].startswith("error=")] or telling
    return _shorten(": ".join(telling[-1])) if telling else ""


def _describe_error(error: Exception) -> str:
    # gRPC's own text is several lines about the protocol.
    details = getattr(error, "details", None)
    said = details() if callable(details) else error
    return _shorten(f"{type(error).__name__.lstrip('_')}: {said}")


def _shorten_ours(message: str) -> str:
    # The client may reach the store: that it is down is only one of the causes.
    return make_visible(message.replace(STORE_IS_DOWN, "").strip(), max_characters=400)


def _shorten(cause: str) -> str:
    return make_visible(" ".join(cause.split())).rstrip(".:")
