"""Writes the shards of a dataset, a few at once, and commits them.

A worker of Beam does this for a part of the shards (`transforms`). On this machine it is done
without Beam, which would take longer to start than a small dataset takes.
"""

from __future__ import annotations

import threading
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

from darkroom import storage
from darkroom.conversion.shards.encode import ImageReaders
from darkroom.conversion.shards.shard import ShardReport, ShardTask, write_shard
from darkroom.conversion.shards.writer_process import WriterProcesses
from darkroom.dataset.tfrecord import check_crc_speed
from darkroom.errors import STORAGE_HINT, DarkroomError, StorageError, describe_os_error
from darkroom.images.memory import count_images_at_once
from darkroom.runtime import progress
from darkroom.runtime.process import collect_less_garbage
from darkroom.storage.parquet import KeptTables

# Each keeps some rows of its index in memory.
_MAX_SHARDS_AT_ONCE = 8

# Rows by run, and those of them that an earlier run has done.
_done: Counter[str] = Counter()
_before: Counter[str] = Counter()
_done_lock = threading.Lock()


@dataclass(frozen=True)
class WriteJob:
    """What writes a dataset.

    Attributes:
        tasks: One for each shard.
        commit: Called once with the reports of all shards in order; must be picklable.
        seen: Images on the client's own disk, some of which workers elsewhere must see, too.
        run: Name of this run, another one each time: a process may run the same plan again.
    """

    tasks: Sequence[ShardTask]
    commit: Callable[[Sequence[ShardReport]], None]
    seen: Sequence[str] = ()
    run: str = field(default_factory=lambda: uuid.uuid4().hex)

    @collect_less_garbage()
    def run_here(self, begun: WriterProcesses | None = None) -> None:
        """Writes the dataset in this process.

        Args:
            begun: Further processes that write shards, if they have been made before.

        Raises:
            DarkroomError: Something cannot be written, or a later attempt has taken the output.
        """
        written = [task for task in self.tasks if task.has_images and not task.linked]
        rows = sum(task.range.num_rows for task in written)
        # The largest first, so that all processes end at about the same time.
        tasks = sorted(self.tasks, key=lambda task: -task.range.num_rows)
        with nullcontext(begun) if begun else WriterProcesses() as processes:
            processes.limit(len(written), rows)
            writers = ShardWriters(self.run, processes if processes.count > 1 else None)
            try:
                reports = [report for task in tasks if (report := writers.begin(task)) is not None]
                reports += writers.finish()
            finally:
                writers.close()
        with name_errors("The commit"):
            self.commit(sorted(reports))


class ShardWriters:
    """Threads that write shards in the order in which they are begun, alone or with processes.

    Several at once give all cores work while one shard is started, synced, or waits.

    Args:
        run: Name of the run, for its progress.
        processes: Those that write shards; None for this one alone.

    Raises:
        StorageError: Checksums would take days here.
    """

    def __init__(self, run: str, processes: WriterProcesses | None = None) -> None:
        check_crc_speed()
        self._run = run
        self._processes = processes
        alone = min(count_images_at_once(), _MAX_SHARDS_AT_ONCE)
        self._at_once = processes.count if processes else alone
        self._pool = ThreadPoolExecutor(self._at_once, "darkroom-shard")
        self._readers: ImageReaders | None = None
        self._tables = KeptTables()
        self.forget()

    def forget(self) -> None:
        """Forgets the shards that were begun, because one of them failed."""
        self._begun: deque[Future[ShardReport]] = deque()
        self._failure: BaseException | None = None

    def begin(self, task: ShardTask) -> ShardReport | None:
        """Begins a shard; returns the report of an earlier one when enough are being written."""
        # For all of the process, which may be a worker of Beam.
        storage.set_patience(task.patience_seconds)
        if task.has_images and self._readers is None:
            self._readers = (
                ImageReaders(task.image, self._processes.budget, self._processes.count)
                if self._processes
                else ImageReaders(task.image)
            )
        # Some wait for a thread, so that no thread waits for the oldest shard.
        done = self._finish_one() if len(self._begun) >= 2 * self._at_once else None
        self._begun.append(self._pool.submit(self._write, task, self._readers))
        return done

    def finish(self) -> Iterator[ShardReport]:
        """Yields the reports of the shards that are left."""
        while self._begun:
            yield self._finish_one()

    def close(self) -> None:
        """Ends the threads and the other processes."""
        self._stop()
        self._pool.shutdown(cancel_futures=True)

    def _finish_one(self) -> ShardReport:
        """Returns the report of the oldest shard; raises the first error of any shard."""
        try:
            return self._begun.popleft().result()
        except BaseException as error:  # noqa: BLE001  raised again below
            # Ends the other shards, too. If this object is used again, it creates new readers.
            self._stop()
            wait(self._begun)
            # This shard may have failed only because another one did.
            failure = self._failure or error
            raise failure from failure.__cause__

    def _stop(self) -> None:
        if self._processes:
            self._processes.stop()
        if self._readers:
            self._readers.close()
            self._readers = None

    def _write(self, task: ShardTask, readers: ImageReaders | None) -> ShardReport:
        """Writes a shard, in a thread of the pool: here, or in another process that is idle."""

        def tick(num_rows: int, before: int) -> None:
            with _done_lock:
                _done[self._run] += num_rows
                _before[self._run] += before
                done, before = _done[self._run], _before[self._run]
            progress.advance(done, task.total, "rows", before)

        # Linking is done before a process has started.
        processes = None if task.linked else self._processes
        try:
            with (
                name_errors(task.results[0]),
                processes.lend() if processes else nullcontext() as process,
            ):
                if process:
                    return process.write(task, tick)
                return write_shard(task, readers, self._tables, tick)
        except InterruptedError:
            raise  # because another shard failed, or because the process ends
        except BaseException as error:
            self._failure = self._failure or error
            raise


@contextmanager
def name_errors(what: str) -> Iterator[None]:
    """Turns an `OSError` into a `StorageError` that says where it happened.

    Beam creates a worker's error again from its arguments, but only if the first one is text; that
    of an `OSError` is a number. And a failed write to an open file does not know its path.
    """
    try:
        yield
    except (DarkroomError, InterruptedError):
        raise
    except OSError as error:
        said = describe_os_error(error)
        message = said if error.filename else f"{what}: {said}"
        raise StorageError(message, STORAGE_HINT) from error
