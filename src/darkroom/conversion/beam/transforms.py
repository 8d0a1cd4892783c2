"""Beam: one element is one shard, and the commit is the last step.

Only tasks and reports cross a stage, a kilobyte or less each; image bytes never leave the worker
that writes them.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from darkroom.conversion.beam.versions import check_versions, find_versions
from darkroom.conversion.shards.shard import ShardReport, ShardTask
from darkroom.conversion.shards.writing import ShardWriters, WriteJob, name_errors
from darkroom.errors import StorageError
from darkroom.runtime.plain_beam import beam

# One key for all reports, so that they come together.
_ALL = "all"

_KeyedReport = tuple[str, ShardReport]


class WriteShardFn(beam.DoFn):
    """Writes shards, a few at once: (number, its `ShardTask`) -> (`_ALL`, `ShardReport`).

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
        """Checks that this worker reads and writes like the client."""
        check_versions(self._versions)
        # Else it would reject all of them.
        if self._seen and not any(map(os.path.exists, self._seen)):
            raise StorageError(
                f"The workers do not see the images: {self._seen[0]} is not on {platform.node()}.",
                "Have the images where all machines reach them at this path: in a store, or on a "
                "shared file system.",
            )
        self._writers = ShardWriters(self._run)

    def start_bundle(self) -> None:
        """Forgets the shards of an earlier bundle that failed."""
        self._writers.forget()

    def process(self, numbered: tuple[int, Iterable[ShardTask]]) -> Iterator[_KeyedReport]:
        """Starts a shard; yields the report of an earlier one when enough are being written."""
        for task in numbered[1]:
            if report := self._writers.begin(task):
                yield _ALL, report

    def finish_bundle(self) -> Iterator[beam.utils.windowed_value.WindowedValue]:
        """Yields the reports of the other shards."""
        window = beam.transforms.window.GlobalWindow()
        for report in self._writers.finish():
            value, time = (_ALL, report), window.max_timestamp()
            yield beam.utils.windowed_value.WindowedValue(value, time, [window])

    def teardown(self) -> None:
        """Ends the threads."""
        self._writers.close()


class CommitFn(beam.DoFn):
    """Commits the dataset once all shards are reported: (`_ALL`, all `ShardReport`) -> nothing."""

    def __init__(self, commit: Callable[[Sequence[ShardReport]], None]) -> None:
        self._commit = commit

    def process(self, collected: tuple[str, Iterable[ShardReport]]) -> None:
        """Runs the commit with the reports in the order of their shards."""
        # A retried bundle may report a shard twice, with the same bytes.
        unique = {report.number: report for report in collected[1]}
        with name_errors("The commit"):
            self._commit([unique[number] for number in sorted(unique)])


class WriteDataset(beam.PTransform):
    """Writes shards and commits them; applied to the pipeline itself.

    Args:
        job: The shards and the commit.
    """

    def __init__(self, job: WriteJob) -> None:
        super().__init__()
        self._job = job

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection:
        """Returns the empty collection that the commit leaves."""
        job = self._job
        numbered = [(task.range.number, task) for task in job.tasks]
        versions = find_versions(compressed=any(task.compressed for task in job.tasks))
        write = WriteShardFn(job.run, versions, job.seen)
        # Beam's own `Reshuffle` and `ToList` do the same in three times as many steps, and starting
        # those takes longer than writing a small dataset.
        return (
            pipeline
            | "CreateTasks" >> beam.Create(numbered, reshuffle=False)
            | "SpreadTasks" >> beam.GroupByKey()
            | "WriteShards" >> beam.ParDo(write)
            | "CollectReports" >> beam.GroupByKey()
            | "Commit" >> beam.ParDo(CommitFn(job.commit))
        )
