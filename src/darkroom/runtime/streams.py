"""Standard streams: they never stop the work, and the output of libraries goes to a log file.

A stream may be closed, on a full disk, or read by nobody. TensorFlow's C++ code writes to file
descriptor 2, not to `sys.stderr`. So the descriptors themselves are redirected; Python's streams,
logging and absl follow.
"""

from __future__ import annotations

import atexit
import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NoReturn, TextIO

from darkroom.errors import StorageError, find_missing_extra, hide_passwords
from darkroom.runtime.gpus import may_have_gpu

_NAMES = ("stdin", "stdout", "stderr")


class _PatientFile(io.FileIO):
    """A file whose writes always succeed; text that cannot be written is dropped.

    It shows no password: libraries log and raise the URLs that they were given.

    Attributes:
        loss: Why something was dropped; None when nothing was, or when its reader has gone, as
            `head` does when it has enough.
    """

    loss: OSError | None = None

    def write(self, data: Any, /) -> int:
        text = bytes(data).decode(errors="surrogateescape")
        left = memoryview(hide_passwords(text).encode(errors="surrogateescape"))
        try:
            while left:
                written = super().write(left)
                if written is None:
                    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
                left = left[written:]
        except BrokenPipeError:
            pass
        except OSError as error:
            self.loss = error
        return len(data)


def open_patiently(
    descriptor: int,
    encoding: str,
    errors: str | None,
    *,
    closes: bool = False,
    line_buffering: bool = True,
    write_through: bool = False,
) -> TextIO:
    """Returns a text stream on a file descriptor, whose writes always succeed.

    Args:
        descriptor: Where it writes.
        encoding: Of the text.
        errors: How to treat text that cannot be encoded.
        closes: Whether the descriptor is closed with it.
        line_buffering: Whether each line is written at its end.
        write_through: Whether everything is written at once, as `python -u` asks for.
    """
    # The text layer has a buffer. A second one below it would write its bytes again when a signal
    # interrupts the write.
    buffer: Any = _PatientFile(descriptor, "w", closefd=closes)
    return io.TextIOWrapper(
        buffer, encoding, errors, line_buffering=line_buffering, write_through=write_through
    )


def secure_streams() -> None:
    """Makes the standard streams of this process ones that never stop the work.

    Call it first: a file that is opened while descriptor 1 or 2 is closed gets that number, and
    then the output of libraries.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < len(_NAMES):
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for number, name in enumerate(_NAMES):
        stream = getattr(sys, name)
        if stream is None:
            stream = open(number, "w" if number else "r", closefd=False)  # noqa: SIM115
        if number:
            stream = open_patiently(
                number,
                stream.encoding,
                stream.errors,
                line_buffering=stream.line_buffering,
                write_through=stream.write_through,
            )
        setattr(sys, name, stream)


def end_process(code: int) -> NoReturn:
    """Ends the process without taking the libraries down.

    That takes four seconds for TFX, and the pyarrow of TFX 1.16 uses memory then that it has freed:
    now and then a command that had succeeded died of it.

    Args:
        code: Its exit code. A standard output that took nothing does not change it.
    """
    # TensorFlow removes its temporary files.
    atexit._run_exitfuncs()
    sys.stdout.flush()
    # Why something of it was dropped.
    if loss := getattr(getattr(sys.stdout, "buffer", None), "loss", None):
        print(f"Standard output cannot be written: {loss.strerror}.", file=sys.stderr)
    sys.stderr.flush()
    os._exit(code)


@contextmanager
def redirect_output(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """Sends file descriptors 1 and 2 to a log file while the block runs.

    Args:
        path: The log file; it is created with its folders, and replaced when it exists.

    Yields:
        A text stream on the original standard output, for progress and summary; `isatty()` answers
        as for the original, and text it cannot write is dropped. When the block ends, also by an
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


@contextmanager
def quiet_tensorflow() -> Iterator[None]:
    """Keeps the start of TensorFlow to errors, if the block is the first one that imports it.

    Without a GPU, its errors are only about GPUs: that none is found, and that parts of CUDA are
    registered twice. There, it is silent. A level that the user has set stays. No file descriptor
    is redirected: a library must not take the output of others.

    Raises:
        MissingExtraError: What the block imports is of an extra that is not installed.
    """
    if "tensorflow" not in sys.modules:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2" if may_have_gpu() else "3")
    try:
        yield
    except ModuleNotFoundError as error:
        if missing := find_missing_extra(error):
            raise missing from error
        raise


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    import ctypes  # opens a file, which may not get the number of a closed stream

    # C writes to a file only when its own buffers are full.
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).fflush(None)
