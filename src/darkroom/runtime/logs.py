"""Sends the output of libraries to a log file, including that of C++ code.

TensorFlow's C++ code writes to file descriptor 2, not to `sys.stderr`. So the descriptors
themselves are redirected; Python's streams, logging and absl follow.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TextIO

from darkroom.errors import StorageError
from darkroom.runtime.gpus import may_have_gpu
from darkroom.runtime.streams import open_patiently


@contextmanager
def redirect_output(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """Sends file descriptors 1 and 2 to a log file while the block runs.

    Args:
        path: The log file; it is created with its folders, and replaced when it exists.

    Yields:
        A text stream on the original standard output, for progress and summary; `isatty()` answers
        as for the original, and what it cannot write is dropped. When the block ends, also by an
        exception, the stream is closed and both descriptors are restored.

    Raises:
        StorageError: The log file cannot be written.
    """
    path = os.fspath(path)
    try:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW
        log = os.open(path, flags, 0o644)
    except OSError as error:
        message = f"The log file {path!r} cannot be written: {error.strerror or error}."
        raise StorageError(message, "Name a file in a folder that you may write to.") from error
    with ExitStack() as stack:
        stack.callback(os.close, log)
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        terminal = stack.enter_context(
            open_patiently(os.dup(1), encoding, "backslashreplace", closes=True)
        )
        _flush()
        for descriptor in (1, 2):
            saved = os.dup(descriptor)
            stack.callback(os.close, saved)
            stack.callback(os.dup2, saved, descriptor)
            os.dup2(log, descriptor)
        stack.callback(_flush)  # Runs first: buffered text belongs in the log.
        yield terminal


def quiet_tensorflow() -> None:
    """Keeps the start of TensorFlow to errors, if it is not imported yet.

    Without a GPU, its errors are only about GPUs: that there is none, and that parts of CUDA are
    registered twice. There, it is silent. A level that the user has set stays. No file descriptor
    is redirected: a library must not take the output of others.
    """
    if "tensorflow" not in sys.modules:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2" if may_have_gpu() else "3")


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    # C writes to a file only when its own buffers are full.
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).fflush(None)
