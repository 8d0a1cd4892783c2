"""How much memory an image takes while it is prepared, and a budget that threads share."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import NamedTuple

from darkroom.errors import RejectError
from darkroom.images.headers import JPEG, PNG
from darkroom.runtime.machine import count_cores, count_memory_bytes

# A JPEG of this many pixels takes 192 MiB as RGB.
MAX_PIXELS = 1 << 26

# Files that decompress more than this get little memory, so that they cannot be bombs.
_BOMB_RATIO = 100
_BOMB_BYTES = 96 << 20

# After an image of this size the C library keeps much of the freed memory.
TRIM_BYTES = 32 << 20

# The most bytes for a pixel that decoding, converting and encoding took in measurements.
_BYTES_PER_PIXEL = {JPEG: 13, PNG: 12, "gif": 8, "bmp": 10, "tiff": 12, "webp": 22}
_BYTES_PER_PIXEL |= {"avif": 20, "heic": 18}


class Need(NamedTuple):
    """The memory of an image while it is prepared.

    Attributes:
        num_bytes: Memory.
        held_bytes: Its part of the memory that images share.
    """

    num_bytes: int
    held_bytes: int


class MemoryNeededError(Exception):
    """An image takes more memory than was granted; `need` says how much."""

    def __init__(self, need: Need) -> None:
        super().__init__(need)
        self.need = need


Reserve = Callable[[Need], AbstractContextManager[None]]


def reserve_nothing(need: Need) -> AbstractContextManager[None]:
    """Reserves no memory: for callers that prepare one image at a time."""
    return nullcontext()


def check_num_pixels(height: int, width: int) -> None:
    """Checks that an image may be decoded.

    Raises:
        RejectError: It has too many pixels.
    """
    if height * width > MAX_PIXELS:
        raise RejectError(
            "too_large", f"{width} x {height} pixels are more than {MAX_PIXELS:,} together"
        )


def count_plain_jpeg_bytes(num_pixels: int, channels: int, num_scans: int, stays: bool) -> int:
    """Returns the bytes that libjpeg-turbo takes for a JPEG, encoding included if it changes."""
    pixels = num_pixels * channels
    coefficients = 2 * pixels if num_scans > 1 else 0
    return max(pixels + coefficients, 0 if stays else num_pixels * _BYTES_PER_PIXEL[JPEG])


def count_bytes(num_pixels: int, source_format: str, is_gray: bool = False) -> int:
    """Returns the most bytes that any other image takes."""
    num_bytes = num_pixels * _BYTES_PER_PIXEL[source_format]
    # A pixel of 1 to 16 bits becomes one byte; other formats decode gray as color.
    return num_bytes // 2 if is_gray and source_format in (PNG, "tiff", "bmp") else num_bytes


def check_need(num_pixels: int, num_bytes: int, size_bytes: int) -> Need:
    """Checks that an image that takes much memory does not come from a tiny file.

    Args:
        num_pixels: Number of its pixels.
        num_bytes: Memory that its preparation takes.
        size_bytes: Length of its file.

    Raises:
        RejectError: It is a decompression bomb.
    """
    if 3 * num_pixels <= _BOMB_RATIO * size_bytes:
        return Need(num_bytes, num_bytes)
    if num_bytes > _BOMB_BYTES:
        text = (
            f"{num_pixels:,} pixels in {size_bytes:,} bytes look like a decompression bomb: files "
            f"that decompress more than 1 : {_BOMB_RATIO} get {_BOMB_BYTES >> 20} MiB of memory, "
            f"and it takes {num_bytes >> 20:,}"
        )
        raise RejectError("too_large", text)
    return Need(num_bytes, 2 * num_bytes)


def trim_memory() -> None:
    """Returns freed memory to the system, if the C library has a call for it."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


class MemoryBudget:
    """Memory that several threads share; an image that needs more than all of it gets all of it."""

    def __init__(self, total_bytes: int) -> None:
        self._total_bytes = total_bytes
        self.release()

    def divide(self, processes: int) -> None:
        """Leaves this process its share, one of several."""
        self._total_bytes //= processes
        self.release()

    def release(self) -> None:
        """Gives all of it, also what threads hold that are not in this process."""
        self._free_bytes = self._total_bytes
        self._changed = threading.Condition()

    @contextmanager
    def reserve(self, need: Need) -> Iterator[None]:
        """Waits until there is enough, and holds it while the block runs."""
        held_bytes = min(need.held_bytes, self._total_bytes)
        with self._changed:
            while self._free_bytes < held_bytes:
                self._changed.wait()
            self._free_bytes -= held_bytes
        try:
            yield
        finally:
            if need.num_bytes > TRIM_BYTES:
                trim_memory()
            with self._changed:
                self._free_bytes += held_bytes
                self._changed.notify_all()


class SharedBudget:
    """Memory that several processes share, in parts; a larger image takes several or all of them.

    Each part is a byte in a pipe: who reads it has the part, and writes it back.

    Args:
        parts: Their number: one for each image that may be prepared at once in all processes.
        pipes: Those of the budget of the parent, in a child.
    """

    def __init__(self, parts: int, pipes: Sequence[int] = ()) -> None:
        self.parts = parts
        self.pipes = [*pipes] or [*os.pipe(), *os.pipe()]
        if not pipes:
            self.release()

    @contextmanager
    def reserve(self, need: Need) -> Iterator[None]:
        """Waits until there is enough in all processes, and holds it while the block runs."""
        parts, turn = self.pipes[:2], self.pipes[2:]
        count = max(1, min(-(-need.held_bytes // _BOMB_BYTES), self.parts))
        # One at a time collects several: two of them could each wait for the other's parts.
        with _take(turn, 1) if count > 1 else nullcontext(), _take(parts, count):
            try:
                yield
            finally:
                if need.num_bytes > TRIM_BYTES:
                    trim_memory()

    def release(self) -> None:
        """Gives all parts, also those of processes that were killed."""
        os.write(self.pipes[1], bytes(self.parts))
        os.write(self.pipes[3], bytes(1))

    def close(self) -> None:
        """Closes the pipes."""
        for pipe in self.pipes:
            os.close(pipe)


@contextmanager
def _take(pipe: Sequence[int], count: int) -> Iterator[None]:
    for _ in range(count):
        os.read(pipe[0], 1)
    try:
        yield
    finally:
        os.write(pipe[1], bytes(count))


def count_images_at_once() -> int:
    """Returns how many images may be prepared at once: one for each core that has 384 MiB."""
    return max(1, min(count_cores(), count_memory_bytes() // (4 * _BOMB_BYTES)))


Budget = MemoryBudget | SharedBudget
# On two cores one suspected bomb at a time, so that a conversion with them stays below 400 MiB.
BUDGET = MemoryBudget(_BOMB_BYTES * max(2, count_images_at_once()))
# For the images of records, which all threads of a reader decode at once.
READ_BUDGET = MemoryBudget(count_memory_bytes() // 4)
os.register_at_fork(after_in_child=READ_BUDGET.release)
