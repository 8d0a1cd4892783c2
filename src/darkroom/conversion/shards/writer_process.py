"""Another process that writes shards: in one process, Python runs one thread at a time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from queue import LifoQueue

from darkroom.conversion.shards.shard import ShardReport, ShardTask
from darkroom.errors import StorageError
from darkroom.images.memory import SharedBudget, count_images_at_once
from darkroom.runtime import progress
from darkroom.runtime.child import describe_end, start_child

# Fewer rows are written before other processes have started.
_MIN_PROCESS_ROWS = 4000
# So many keep one process at work for longer than it takes to start.
_ROWS_EACH = 1000


class WriterProcesses:
    """This process and others, of which each writes one shard at a time; a context manager.

    There may be one for each image that may be prepared at once.

    Attributes:
        count: Their number.
        budget: Memory for all images at once.
    """

    def __init__(self) -> None:
        most = count_images_at_once() if sys.executable else 1
        self.budget = SharedBudget(most)
        self._others = [WriterProcess(self) for _ in range(1, most)]

    def __enter__(self) -> WriterProcesses:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.budget.close()

    def start(self, rows: int) -> None:
        """Starts the processes that so many rows need, so that they import while more are read.

        Raises:
            StorageError: One cannot be started.
        """
        if rows >= _MIN_PROCESS_ROWS:
            for process in self._others[: rows // _ROWS_EACH - 1]:
                process.start()

    def limit(self, shards: int, rows: int) -> None:
        """Ends the processes that so many shards and rows do not need; before the first shard."""
        others = shards - 1 if rows >= _MIN_PROCESS_ROWS else 0
        for process in self._others[others:]:
            process.close()
        del self._others[others:]
        self.count = len(self._others) + 1
        # Last in, first out: another process starts only when this one has enough to do.
        self._idle: LifoQueue[WriterProcess | None] = LifoQueue()
        for idle in (*reversed(self._others), None):
            self._idle.put(idle)

    @contextmanager
    def lend(self) -> Iterator[WriterProcess | None]:
        """Waits for a process that is idle, and gives it to the block; None is this one."""
        process = self._idle.get()
        try:
            yield process
        finally:
            self._idle.put(process)

    def stop(self) -> None:
        """Ends the others, in the middle of their work, and gives back the memory they had."""
        for process in self._others:
            process.close()
        self.budget.release()


class WriterProcess:
    """A process that writes one shard at a time; it starts with the first one, or by `start`.

    Args:
        processes: All that write shards at the same time, this one included.
    """

    def __init__(self, processes: WriterProcesses) -> None:
        self._processes = processes
        self._child: tuple[subprocess.Popen[bytes], Connection] | None = None
        self._is_closed = False

    def write(self, task: ShardTask, tick: Callable[[int, int], None]) -> ShardReport:
        """Writes a shard as `write_shard` does.

        Raises:
            StorageError: The process cannot be started, or it died.
            InterruptedError: `close` was called.
        """
        if self._is_closed:
            raise InterruptedError("writing was stopped")
        process, connection = self.start()
        with self._explain_end(process):
            connection.send((task, self._processes.count))
        while True:
            with self._explain_end(process):
                what, value = connection.recv()
            if what == "report":
                report: ShardReport = value
                return report
            if what == "error":
                error, text = value
                raise error from RuntimeError(f"in another process:\n{text}")
            if what == "note":
                progress.note(value)
            else:
                tick(*value)

    def close(self) -> None:
        """Ends the process, in the middle of its work, from any thread."""
        self._is_closed = True
        if self._child:
            process, _ = self._child
            process.kill()
            process.wait()

    def start(self) -> tuple[subprocess.Popen[bytes], Connection]:
        """Starts the process, unless it has started; returns it, and the connection to it.

        Raises:
            StorageError: It cannot be started.
        """
        if self._child:
            return self._child
        budget = self._processes.budget
        arguments = budget.parts, budget.pipes
        try:
            process, ours = start_child(
                "darkroom.conversion.shards.writer_child", arguments, pass_fds=budget.pipes
            )
        except OSError as error:
            raise StorageError(
                f"{sys.executable or 'Python'} cannot be started to write shards: {error}."
            ) from error
        self._child = process, Connection(ours.detach())
        # `close`, in another thread, may have come before there was a child to end.
        if self._is_closed:
            process.kill()
        return self._child

    @contextmanager
    def _explain_end(self, process: subprocess.Popen[bytes]) -> Iterator[None]:
        """Says how the process ended, where the connection to it breaks in the block.

        Raises:
            StorageError: It ended by itself.
            InterruptedError: `close` ended it.
        """
        try:
            yield
        except (EOFError, ConnectionError) as error:
            # Its frames have views of what was sent. Python before 3.12.2 ends when it collects one
            # that is a part of a cycle.
            error.__traceback__ = None
            how = describe_end(process.wait())
            if self._is_closed:
                raise InterruptedError("writing was stopped") from None
            self._processes.budget.release()  # the others may wait for parts that it had
            raise StorageError(
                f"A process that writes shards {how}.",
                "SIGKILL is often the system's answer to a lack of memory. Run again: the shards "
                "that were finished are kept.",
            ) from None
