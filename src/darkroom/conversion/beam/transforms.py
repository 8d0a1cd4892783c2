"""Beam: one element is one shard, and the commit is the last step.

Only tasks and reports cross a stage, a few hundred bytes each; image bytes never leave the worker
that writes them.
"""

from __future__ import annotations

import os
import platform
import threading
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager

from darkroom import storage
from darkroom.conversion.beam.encode import ImageReaders
from darkroom.conversion.beam.shard import ShardReport, ShardTask, write_shard
from darkroom.conversion.beam.versions import check_versions, find_versions
from darkroom.dataset.tfrecord import check_crc_speed
from darkroom.errors import STORAGE_HINT, DarkroomError, StorageError, describe_os_error
from darkroom.runtime import progress
from darkroom.runtime.plain_beam import beam
from darkroom.storage.parquet import KeptTables

# Each keeps some rows of its index in memory.
_MAX_SHARDS_AT_ONCE = 8
# One key for all reports, so that they come together.
_ALL = "all"

_KeyedReport = tuple[str, ShardReport]

# Rows by run, and those of them that an earlier run has done.
_done: Counter[str] = Counter()
_before: Counter[str] = Counter()
_done_lock = threading.Lock()


class WriteShardFn(beam.DoFn):
    """Writes shards, a few at once: (number, its `ShardTask`) -> (`_ALL`, `ShardReport`).

    Several at once give all cores work while one shard is started, synced, or waits.

    Args:
        run: Name of the run, for its progress; Beam makes copies of this object.
        versions: Those of the client; this process is the client if they are not given.
        seen: Images on the client's own disk, some of which a worker must see, too.
    """

    def __init__(
        self,
        run: str = "",
        versions: Mapping[str, str] | None = None,
        seen: Sequence[str] = (),
    ) -> None:
        self._run = run
        self._versions = versions or find_versions()
        self._seen = seen

    def setup(self) -> None:
        """Checks that this worker reads and writes like the client, and is fast enough."""
        check_versions(self._versions)
        # Else it would reject all of them.
        if self._seen and not any(map(os.path.exists, self._seen)):
            raise StorageError(
                f"The engine's workers do not see the images: {self._seen[0]} is not on "
                f"{platform.node()}.",
                "Have the images where all machines reach them at this path: in a store, or on a "
                "shared file system.",
            )
        check_crc_speed()
        self._at_once = min(os.cpu_count() or 1, _MAX_SHARDS_AT_ONCE)
        self._pool = ThreadPoolExecutor(self._at_once, "darkroom-shard")
        self._readers: ImageReaders | None = None
        self._tables = KeptTables()

    def start_bundle(self) -> None:
        """Forgets the shards of an earlier bundle that failed."""
        self._begun: deque[Future[ShardReport]] = deque()
        self._failure: BaseException | None = None

    def process(self, numbered: tuple[int, Iterable[ShardTask]]) -> Iterator[_KeyedReport]:
        """Starts a shard; yields the report of an earlier one when enough are being written."""
        for task in numbered[1]:
            # For all of the worker's process, which an engine may have started.
            storage.set_patience(task.patience_seconds)
            if task.has_images and self._readers is None:
                self._readers = ImageReaders(task.image)
            if len(self._begun) >= self._at_once:
                yield _ALL, self._finish_one()
            self._begun.append(self._pool.submit(self._write, task))

    def finish_bundle(self) -> Iterator[beam.utils.windowed_value.WindowedValue]:
        """Yields the reports of the other shards."""
        window = beam.transforms.window.GlobalWindow()
        while self._begun:
            value, time = (_ALL, self._finish_one()), window.max_timestamp()
            yield beam.utils.windowed_value.WindowedValue(value, time, [window])

    def teardown(self) -> None:
        """Ends the threads."""
        if self._readers:
            self._readers.close()
            self._readers = None
        self._pool.shutdown()

    def _finish_one(self) -> ShardReport:
        try:
            return self._begun.popleft().result()
        except BaseException as error:  # noqa: BLE001  raised again below
            # Ends the other shards, too. If this object is used again, it creates new readers.
            if self._readers:
                self._readers.close()
                self._readers = None
            wait(self._begun)
            # This shard may have failed only because another one did.
            raise (self._failure or error) from None

    def _write(self, task: ShardTask) -> ShardReport:
        def tick(num_rows: int, before: int) -> None:
            with _done_lock:
                _done[self._run] += num_rows
                _before[self._run] += before
                done, before = _done[self._run], _before[self._run]
            progress.advance(done, task.total, "rows", before)

        try:
            with _named_errors(task.results[0]):
                return write_shard(task, self._readers, self._tables, tick)
        except InterruptedError:
            raise  # because another shard failed, or because the process ends
        except BaseException as error:
            self._failure = self._failure or error
            raise


class CommitFn(beam.DoFn):
    """Commits the dataset once all shards are reported: (`_ALL`, all `ShardReport`) -> nothing."""

    def __init__(self, commit: Callable[[Sequence[ShardReport]], None]) -> None:
        self._commit = commit

    def process(self, collected: tuple[str, Iterable[ShardReport]]) -> None:
        """Runs the commit with the reports in the order of their shards."""
        # A retried bundle may report a shard twice, with the same bytes.
        unique = {report.number: report for report in collected[1]}
        with _named_errors("The commit"):
            self._commit([unique[number] for number in sorted(unique)])


@contextmanager
def _named_errors(what: str) -> Iterator[None]:
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


class WriteDataset(beam.PTransform):
    """Writes shards and commits them; applied to the pipeline itself.

    Args:
        tasks: One for each shard.
        commit: Called once, in a worker, with the reports of all shards in order; must be
            picklable.
        seen: Images on the client's own disk, some of which workers elsewhere must see, too.

    Attributes:
        tasks: One for each shard.
        run: Name of this run, another one each time: a process may run the same plan again.
    """

    def __init__(
        self,
        tasks: Sequence[ShardTask],
        commit: Callable[[Sequence[ShardReport]], None],
        seen: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self.tasks = tasks
        self.run = uuid.uuid4().hex
        self._commit = commit
        self._seen = seen

    @property
    def has_reported(self) -> bool:
        """Whether a worker in this very process shows the progress of this run."""
        return self.run in _done

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection:
        """Returns the empty collection that the commit leaves."""
        numbered = [(task.range.number, task) for task in self.tasks]
        versions = find_versions(compressed=any(task.compressed for task in self.tasks))
        write = WriteShardFn(self.run, versions, self._seen)
        # Beam's own `Reshuffle` and `ToList` do the same in three times as many steps, and starting
        # those takes longer than writing a small dataset.
        return (
            pipeline
            | "CreateTasks" >> beam.Create(numbered, reshuffle=False)
            | "SpreadTasks" >> beam.GroupByKey()
            | "WriteShards" >> beam.ParDo(write)
            | "CollectReports" >> beam.GroupByKey()
            | "Commit" >> beam.ParDo(CommitFn(self._commit))
        )
