"""How often Python looks for cycles of objects that nothing refers to any more."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

_OBJECTS = 100_000


@contextlib.contextmanager
def collect_less_garbage() -> Iterator[None]:
    """Lets Python search for cycles less often, for as long as the block runs.

    Rows by the thousand live long enough to be searched several times over, in vain.
    """
    before = gc.get_threshold()
    gc.set_threshold(max(_OBJECTS, before[0]) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
