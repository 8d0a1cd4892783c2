"""Another process that writes shards: in one process, Python runs one thread at a time."""

from __future__ import annotations

import socket
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


class WriterProcesses:
    """This process and others, of which each writes one shard at a time.

    Args:
        count: Their number; one or more images are prepared at once in each.

    Attributes:
        budget: Memory for all images at once.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.budget = SharedBudget(count * -(-count_images_at_once() // count))
        self._others = [WriterProcess(self.budget, count) for _ in range(1, count)]
        # Last in, first out: another process starts only when this one has enough to do.
        self._idle: LifoQueue[WriterProcess | None] = LifoQueue()
        for process in (*self._others, None):
            self._idle.put(process)

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

    def close(self) -> None:
        """Closes the pipes, after `stop`."""
        self.budget.close()


class WriterProcess:
    """A process that writes one shard at a time; it starts with the first one.

    Args:
        budget: Memory for all images at once.
        processes: Number of processes that write shards at the same time, this one included.
    """

    def __init__(self, budget: SharedBudget, processes: int) -> None:
        self._budget = budget
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
        process, connection = self._child or self._start()
        with self._explain_end(process):
            connection.send(task)
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

    def _start(self) -> tuple[subprocess.Popen[bytes], Connection]:
        ours, theirs = socket.socketpair()
        with theirs:
            arguments = self._processes, self._budget.parts, self._budget.pipes
            try:
                process = start_child(
                    "darkroom.conversion.shards.writer_child",
                    arguments,
                    theirs,
                    stdout=subprocess.DEVNULL,
                    pass_fds=self._budget.pipes,
                )
            except OSError as error:
                ours.close()
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
            self._budget.release()  # the others may wait for parts that it had
            raise StorageError(
                f"A process that writes shards {how}.",
                "SIGKILL is often the system's answer to a lack of memory. Run again: the shards "
                "that were finished are kept.",
            ) from None
