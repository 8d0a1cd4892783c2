"""Sends the chatter of libraries to a log file, C++ included.

TensorFlow's C++ writes to file descriptor 2 and knows nothing of `sys.stderr`, so the descriptors
themselves are redirected; Python's streams, logging and absl follow by themselves.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TextIO

from darkroom.errors import StorageError


@contextmanager
def redirect_output(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """Sends file descriptors 1 and 2 to a log file for as long as the block runs.

    Args:
        path: The log file; it is created with its folders, and replaced when it exists.

    Yields:
        A text stream on the original standard output, for progress and summary; `isatty()` answers
        as the original does. It is closed, and both descriptors are restored, when the block ends,
        by an exception too.

    Raises:
        StorageError: The log file cannot be written.
    """
    log = _open_log(os.fspath(path))
    with ExitStack() as stack:
        stack.callback(os.close, log)
        terminal = stack.enter_context(_open_original())
        _flush()
        for descriptor in (1, 2):
            saved = os.dup(descriptor)
            stack.callback(os.close, saved)
            stack.callback(os.dup2, saved, descriptor)
            os.dup2(log, descriptor)
        stack.callback(_flush)  # Runs first: what is still buffered belongs to the log.
        yield terminal


def _open_log(path: str) -> int:
    try:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
    except OSError as error:
        message = f"The log file {path!r} cannot be written: {error.strerror or error}."
        raise StorageError(message, "Name a folder that exists and that you may write.") from error


def _open_original() -> TextIO:
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return open(os.dup(1), "w", encoding=encoding, errors="backslashreplace", buffering=1)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    # C's own buffers: a descriptor that is no terminal is written only when they are full.
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).fflush(None)
