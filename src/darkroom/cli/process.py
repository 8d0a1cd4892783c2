"""How the process of a command ends: by a signal, or when the command is done."""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import suppress
from typing import NoReturn


class Signal:
    """The signal that ends the process, once there is one.

    An exception that a signal handler raises may arrive as another one: Beam wraps what a worker
    raises. So the exception alone is not enough.
    """

    number: int | None = None


def end_by_signal(number: int, _: object) -> NoReturn:
    """Ends the command: a signal handler."""
    Signal.number = number
    raise SystemExit(128 + number)


def end_process(code: int) -> NoReturn:
    """Ends the process without taking the libraries down.

    That takes four seconds for TFX, and the pyarrow of TFX 1.16 uses memory then that it has freed:
    now and then a command that had succeeded died of it.

    Args:
        code: Its exit code.
    """
    # TensorFlow removes its temporary files.
    atexit._run_exitfuncs()
    # The reader of a pipe may have gone.
    with suppress(BrokenPipeError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)
