"""Beam: one element is one shard, and the commit is the last step.

Only tasks and reports cross a stage, a few hundred bytes each; image bytes never leave the worker
that writes them.
"""

from __future__ import annotations

import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager

from darkroom import storage
from darkroom.conversion.readers import ImageReaders
from darkroom.conversion.shard import ShardReport, ShardTask, write_shard
from darkroom.dataset.tfrecord import check_crc_speed
from darkroom.errors import STORAGE_HINT, DarkroomError, StorageError, describe_os_error
from darkroom.runtime import progress
from darkroom.runtime.plain_beam import beam

# Each keeps some rows of its index in memory.
_MAX_SHARDS_AT_ONCE = 8

_done: Counter[str] = Counter()
_done_lock = threading.Lock()


class WriteShardFn(beam.DoFn):
    """Writes the shards of tasks, a few at once: `ShardTask` -> `ShardReport`.

    At once, so that all cores have work while one shard is begun or synced, or waits in turn.
    """

    def setup(self) -> None:
        """Refuses a worker whose checksums would take for ever."""
        check_crc_speed()
        self._at_once = min(os.cpu_count() or 1, _MAX_SHARDS_AT_ONCE)
        self._pool = ThreadPoolExecutor(self._at_once, "darkroom-shard")
        self._readers: ImageReaders | None = None

    def start_bundle(self) -> None:
        """Forgets what a bundle before this one may have left when it failed."""
        self._begun: deque[Future[ShardReport]] = deque()
        self._failure: BaseException | None = None

    def process(self, task: ShardTask) -> Iterator[ShardReport]:
        """Begins the shard; yields what became of an earlier one, once there are enough."""
        if task.has_images and self._readers is None:
            self._readers = ImageReaders(task.image)
        if len(self._begun) >= self._at_once:
            yield self._finish_one()
        self._begun.append(self._pool.submit(self._write, task))

    def finish_bundle(self) -> Iterator[beam.utils.windowed_value.WindowedValue]:
        """Yields what became of the rest."""
        window = beam.transforms.window.GlobalWindow()
        while self._begun:
            value, time = self._finish_one(), window.max_timestamp()
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
            # What is half done ends now; the readers are made anew, should this be used again.
            if self._readers:
                self._readers.close()
                self._readers = None
            wait(self._begun)
            # This one may have ended because another did.
            raise (self._failure or error) from None

    def _write(self, task: ShardTask) -> ShardReport:
        def tick(num_rows: int) -> None:
            with _done_lock:
                _done[task.work] += num_rows
                done = _done[task.work]
            progress.advance(done, task.total, "rows")

        try:
            with _named_errors(storage.join(task.examples, task.file)):
                return write_shard(task, self._readers, tick)
        except InterruptedError:
            raise  # because of another one's failure, or because the process ends
        except BaseException as error:
            self._failure = self._failure or error
            raise


class CommitFn(beam.DoFn):
    """Commits the dataset once all shards are reported: a list of all `ShardReport` -> nothing."""

    def __init__(self, commit: Callable[[Sequence[ShardReport]], None]) -> None:
        self._commit = commit

    def process(self, reports: Sequence[ShardReport]) -> None:
        """Runs the commit with the reports in the order of their shards."""
        # A retried bundle may report a shard twice, with the same bytes.
        unique = {report.number: report for report in reports}
        with _named_errors("The commit"):
            self._commit([unique[number] for number in sorted(unique)])


@contextmanager
def _named_errors(what: str) -> Iterator[None]:
    """Lets an error of storage leave a worker as what it is, and say where it arose.

    Beam makes a worker's error anew from its arguments, but only where the first is a text; that
    of an `OSError` is a number. Neither does a failed write to an open file know its path.
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
        tasks: One a shard.
        commit: Called once, in a worker, with the reports of all shards in order; must be
            picklable.

    Attributes:
        tasks: One a shard.
    """

    def __init__(
        self, tasks: Sequence[ShardTask], commit: Callable[[Sequence[ShardReport]], None]
    ) -> None:
        super().__init__()
        self.tasks = tasks
        self._commit = commit

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection:
        """Returns the empty collection that the commit leaves."""
        return (
            pipeline
            | "CreateTasks" >> beam.Create(self.tasks, reshuffle=True)
            | "WriteShards" >> beam.ParDo(WriteShardFn())
            | "CollectReports" >> beam.combiners.ToList()
            | "Commit" >> beam.ParDo(CommitFn(self._commit))
        )
