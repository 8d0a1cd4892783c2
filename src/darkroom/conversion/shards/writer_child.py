"""The other process, which writes shards; its parent is `writer_process`.

A socket to the parent is its standard input. It reads a `ShardTask` with the number of processes
that write at the same time, and answers with pairs of a word and a value: "rows" that are done, a
"note" for the display, and at last the "report" of the shard, or the "error". It ends when the
parent is gone, however that ended.
"""

from __future__ import annotations

import io
import os
import threading
import time
import traceback
from collections.abc import Iterable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from darkroom import storage
from darkroom.conversion.shards.encode import ImageReaders
from darkroom.conversion.shards.shard import ShardTask, write_shard
from darkroom.errors import DarkroomError
from darkroom.images.memory import SharedBudget
from darkroom.runtime import progress
from darkroom.runtime.display import StepSink
from darkroom.runtime.process import collect_less_garbage
from darkroom.storage.parquet import KeptTables, leave_pandas_out

_TICK_SECONDS = 0.1


def serve(parts: int, pipes: Sequence[int]) -> None:
    """Writes shards until the parent is gone.

    Args:
        parts: Those of the parent's `SharedBudget`.
        pipes: Its pipes.
    """
    leave_pandas_out()
    connection = Connection(os.dup(0))
    tasks: SimpleQueue[tuple[ShardTask, int]] = SimpleQueue()
    work = iter(tasks.get, None), SharedBudget(parts, pipes), _Parent(connection)
    threading.Thread(target=_write_all, args=work, daemon=True).start()
    with suppress(EOFError, OSError):
        while True:
            tasks.put(connection.recv())
    os._exit(0)


def _write_all(
    tasks: Iterable[tuple[ShardTask, int]], budget: SharedBudget, parent: _Parent
) -> None:
    """Writes shards one after the other, beside the thread that listens to the parent.

    An error of a shard goes to the parent, which raises it and ends this process.
    """
    readers, tables = None, KeptTables()
    try:
        with progress.use(parent), collect_less_garbage():
            for task, processes in tasks:
                storage.set_patience(task.patience_seconds)
                readers = readers or ImageReaders(task.image, budget, processes)
                try:
                    report = write_shard(task, readers, tables, parent.tick)
                except Exception as error:  # noqa: BLE001  the parent raises it
                    parent.send("error", (error, traceback.format_exc()))
                else:
                    parent.flush()
                    parent.send("report", report)
    except BaseException:  # noqa: BLE001  the parent must not wait for this thread
        traceback.print_exc()
        os._exit(DarkroomError.exit_code)


class _Parent(StepSink):
    """Sends to the parent, from any thread. Nobody listens when it is gone, which ends us."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(io.StringIO())
        self._connection = connection
        self._sending = threading.Lock()
        self._rows, self._before, self._sent = 0, 0, 0.0

    def send(self, what: str, value: Any) -> None:
        with self._sending, suppress(OSError):
            self._connection.send((what, value))

    def note(self, text: str) -> None:
        """Has the parent show one line."""
        self.send("note", text)

    def tick(self, num_rows: int, before: int) -> None:
        """Counts rows; called by one thread at a time."""
        self._rows += num_rows
        self._before += before
        if time.monotonic() - self._sent > _TICK_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Sends the rows that were counted."""
        self.send("rows", (self._rows, self._before))
        self._rows, self._before, self._sent = 0, 0, time.monotonic()
