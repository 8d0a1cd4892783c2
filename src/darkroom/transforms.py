"""Beam: one element is one shard, and the commit is the last step.

Only tasks and reports cross a stage, a few hundred bytes each; image bytes never leave the worker
that writes them.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import apache_beam as beam

from darkroom import progress
from darkroom.shards import ShardReport, ShardTask, write_shard
from darkroom.tfrecords import check_crc_speed

_done: Counter[str] = Counter()
_done_lock = threading.Lock()


class WriteShardFn(beam.DoFn):
    """Writes the shard of a task: `ShardTask` -> `ShardReport`."""

    def setup(self) -> None:
        """Refuses a worker whose checksums would take for ever."""
        check_crc_speed()

    def process(self, task: ShardTask) -> Iterator[ShardReport]:
        """Yields what became of the shard."""

        def tick(num_rows: int) -> None:
            with _done_lock:
                _done[task.work] += num_rows
                done = _done[task.work]
            progress.advance(done, task.total, "rows")

        yield write_shard(task, tick)


class CommitFn(beam.DoFn):
    """Commits the dataset once all shards are reported: a list of all `ShardReport` -> nothing."""

    def __init__(self, commit: Callable[[Sequence[ShardReport]], None]) -> None:
        self._commit = commit

    def process(self, reports: Sequence[ShardReport]) -> None:
        """Runs the commit with the reports in the order of their shards."""
        # A retried bundle may report a shard twice, with the same bytes.
        unique = {report.number: report for report in reports}
        self._commit([unique[number] for number in sorted(unique)])


class WriteDataset(beam.PTransform):
    """Writes shards and commits them; applied to the pipeline itself.

    Args:
        tasks: One a shard.
        commit: Called once, in a worker, with the reports of all shards in order; must be
            picklable.
    """

    def __init__(
        self, tasks: Sequence[ShardTask], commit: Callable[[Sequence[ShardReport]], None]
    ) -> None:
        super().__init__()
        self._tasks = tasks
        self._commit = commit

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection:
        """Returns the empty collection that the commit leaves."""
        return (
            pipeline
            | "CreateTasks" >> beam.Create(self._tasks, reshuffle=True)
            | "WriteShards" >> beam.ParDo(WriteShardFn())
            | "CollectReports" >> beam.combiners.ToList()
            | "Commit" >> beam.ParDo(CommitFn(self._commit))
        )
