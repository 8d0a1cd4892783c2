"""How a process with large libraries and many rows runs, and how it ends."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

# Objects that Python makes before it searches for unused cycles.
_OBJECTS = 100_000


@contextmanager
def collect_less_garbage() -> Iterator[None]:
    """Makes Python search for unused cycles of objects less often while the block runs.

    Thousands of rows live long enough to be searched several times for nothing.
    """
    before = gc.get_threshold()
    gc.set_threshold(max(_OBJECTS, before[0]) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


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
