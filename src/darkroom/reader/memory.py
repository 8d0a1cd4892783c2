"""Memory for the images of batches, which is used again."""

from __future__ import annotations

import math
import weakref
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from darkroom.runtime.arrays import Array

# Batches of which the memory is kept: others are decoded while one is used.
_KEPT = 4


class BatchMemory:
    """Memory of batches. New memory costs the system up to a tenth of the time of a batch."""

    def __init__(self) -> None:
        self._free: deque[Array] = deque(maxlen=_KEPT)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()

    def make(self, shape: Sequence[int]) -> Array:
        """Returns memory, uint8 of a shape, with any values.

        It is used again once nothing refers to it, nor to a part of it.
        """
        size = math.prod(shape)
        memory = self._free.pop() if self._free else None
        if memory is None or memory.size < size:
            memory = np.empty(size, np.uint8)
        # All views of this array refer to it, because its base is not an array.
        array: Array = np.frombuffer(memory.data, np.uint8, size)
        weakref.finalize(array, self._free.append, memory).atexit = False
        return array.reshape(tuple(shape))
