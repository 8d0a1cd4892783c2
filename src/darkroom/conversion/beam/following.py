"""Progress of a job whose workers run elsewhere, by their files in the work folder.

Engines count in their own ways, and some only at the end. All of them leave the same there: each
finished shard has its report.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from darkroom import storage
from darkroom.conversion.shards.shard import REPORT_SUFFIX
from darkroom.runtime import progress
from darkroom.runtime.text import format_count

if TYPE_CHECKING:
    from darkroom.conversion.shards.writing import WriteJob

_LOOK_SECONDS, _LOG_SECONDS = 5.0, 30.0
# A listing of many shards may take long; this share of the time is spent in it.
_LISTING_SHARE = 0.1
_LOGGER = logging.getLogger(__name__)


class Follower:
    """Looks at a job from outside, again and again.

    Args:
        job: The job.
        clock: Seconds that only grow.
    """

    def __init__(self, job: WriteJob, clock: Callable[[], float] = time.monotonic) -> None:
        self._job, self._clock = job, clock
        self._work = job.tasks[0].work
        self._rows = {
            task.work_file(REPORT_SUFFIX).rpartition("/")[2]: task.range.num_rows
            for task in job.tasks
        }
        names = zip(self._rows, job.tasks, strict=True)
        linked = {name for name, task in names if task.linked}
        self._done = self._before = self._list() | linked
        self._started = self._logged = clock()
        self._show()

    def follow(self, stop: threading.Event) -> None:
        """Looks until it is told to stop."""
        pause = _LOOK_SECONDS
        while not stop.wait(pause):
            started = self._clock()
            self.look()
            pause = max(_LOOK_SECONDS, (self._clock() - started) / _LISTING_SHARE)

    def look(self) -> None:
        """Looks once, and shows how far the job is."""
        # The commit removes all reports, at the end.
        self._done = self._done | self._list()
        self._show()

    def finish(self) -> None:
        """Shows that all is done."""
        self._done = {*self._rows}
        self._show()

    def _list(self) -> set[str]:
        # Nothing that goes wrong here may stop the job: stores raise errors of many kinds.
        with suppress(Exception):
            return self._rows.keys() & set(storage.list_folder(self._work))
        return set()

    def _show(self) -> None:
        if self._job.has_reported:  # a worker in this process counts single rows
            return
        total, before = sum(self._rows.values()), sum(map(self._rows.__getitem__, self._before))
        done = sum(map(self._rows.__getitem__, self._done))
        shards = f"{len(self._done):,} of {format_count(len(self._rows), 'shard')}"
        progress.advance(done, total, "rows", before, shards)
        now = self._clock()
        if now - self._logged >= _LOG_SECONDS:
            self._logged = now
            rows = f"{done:,} of {format_count(total, 'row')}"
            rate = (done - before) / (now - self._started)
            _LOGGER.info("Converting: %s, %s, %.1f/s", shards, rows, rate)


@contextmanager
def follow_shards(job: WriteJob) -> Iterator[None]:
    """Shows how far a job is while the block runs.

    Args:
        job: The job.
    """
    follower, stop = Follower(job), threading.Event()
    thread = threading.Thread(
        target=follower.follow, args=(stop,), name="darkroom-follow", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(_LOOK_SECONDS)
    follower.finish()
