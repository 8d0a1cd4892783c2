"""Prepares images for conversion: plain ones here, all others in processes with limits."""

from __future__ import annotations

from queue import LifoQueue

from darkroom.images.memory import (
    BUDGET,
    TRIM_BYTES,
    Budget,
    MemoryNeededError,
    Need,
    count_images_at_once,
)
from darkroom.images.prepare import PreparedImage, prepare_plain
from darkroom.images.sandbox import DecoderProcess
from darkroom.options.image import ImageOptions

# The memory that every process may take without asking, so that most images are sent once.
_FIRST = Need(TRIM_BYTES, TRIM_BYTES)


class ImagePreparer:
    """Prepares images, in any number of threads.

    An image is rejected when its decoder crashes, hangs or asks for too much memory; other images
    are not affected. At most one process for each core is started, when it is first needed. Large
    images wait for each other, so that memory stays bounded.

    Args:
        options: How images are checked and stored.
        budget: Memory for all images at once.
        max_processes: The most other processes, if not one for each core.
    """

    def __init__(
        self,
        options: ImageOptions,
        budget: Budget = BUDGET,
        max_processes: int | None = None,
    ) -> None:
        self._options = options
        self._budget = budget
        count = max_processes or count_images_at_once()
        self._processes = [DecoderProcess(options) for _ in range(count)]
        # Last in, first out: a running process is used before one that would have to start.
        self._idle: LifoQueue[DecoderProcess] = LifoQueue()
        for process in self._processes:
            self._idle.put(process)

    def prepare(self, data: bytes) -> PreparedImage:
        """Returns the record's values for the bytes of an image file.

        Raises:
            RejectError: The bytes are not an image, damaged, of an unsupported kind or too large;
                or they made the decoder crash, hang or run out of memory.
            DecoderProcessError: A process cannot be started, or the system ended it.
            InterruptedError: `close` was called.
        """
        if prepared := prepare_plain(data, self._options, self._budget.reserve):
            return prepared
        process = self._idle.get()
        try:
            try:
                with self._budget.reserve(_FIRST):
                    return process.prepare(data, _FIRST.num_bytes)
            except MemoryNeededError as error:
                need = error.need
            with self._budget.reserve(need):
                return process.prepare(data, need.num_bytes)
        finally:
            self._idle.put(process)

    def close(self) -> None:
        """Ends the processes; threads that still prepare an image get `InterruptedError`."""
        for process in self._processes:
            process.close()
