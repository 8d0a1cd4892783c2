"""Standard streams that never stop the work: closed, on a full disk, or read by nobody."""

from __future__ import annotations

import io
import os
import sys
from typing import Any, TextIO

_NAMES = ("stdin", "stdout", "stderr")


class _PatientFile(io.FileIO):
    """A file whose writes always succeed; what cannot be written is dropped.

    Attributes:
        loss: Why something was dropped; None when nothing was, or when its reader has gone, as
            `head` does when it has enough.
    """

    loss: OSError | None = None

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            pass
        except OSError as error:
            self.loss = error
        return memoryview(data).nbytes


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
        errors: What is done with text that cannot be encoded.
        closes: Whether the descriptor is closed with it.
        line_buffering: Whether each line is written at its end.
        write_through: Whether everything is written at once, as `python -u` asks for.
    """
    file = _PatientFile(descriptor, "w", closefd=closes)
    buffer: Any = file if write_through else io.BufferedWriter(file)
    return io.TextIOWrapper(
        buffer, encoding, errors, line_buffering=line_buffering, write_through=write_through
    )


def secure_streams() -> None:
    """Makes the standard streams of this process ones that never stop the work.

    Call it first: a file that is opened while descriptor 1 or 2 is closed gets that number, and
    then what libraries print.
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


def find_loss() -> OSError | None:
    """Returns why something of standard output was dropped; None when nothing was."""
    buffer = getattr(sys.stdout, "buffer", None)
    return getattr(getattr(buffer, "raw", buffer), "loss", None)
