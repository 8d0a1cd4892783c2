"""How far a job is whose workers are elsewhere. No test waits: each looks by itself."""

from __future__ import annotations

import io
import logging
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from darkroom import storage
from darkroom.conversion.beam.following import Follower, follow_shards
from darkroom.conversion.shards import writing
from darkroom.conversion.shards.writing import WriteJob
from darkroom.dataset.commit import Shard
from darkroom.runtime import progress
from darkroom.runtime.display import PlainProgress


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lines(clock):
    """What somebody without a terminal reads."""
    stream = io.StringIO()
    with progress.use(PlainProgress(stream, clock=clock)), progress.step("Converting"):
        yield lambda: stream.getvalue().splitlines()


def _leave(write: WriteJob, *names: str) -> None:
    for name in names:
        Path(write.tasks[0].work, name).touch()


def test_finished_shards_are_shown_with_their_rows_and_their_rate(write, clock, lines):
    clock.now = 5
    _leave(write, "shard-00000.json")
    follower = Follower(write, clock)
    clock.now = 10
    _leave(write, "shard-00001.json", "shard-00002.part", ".darkroom-part-shard-00002.json")
    follower.look()
    assert lines() == [
        "Converting 10/60 rows, 1 of 3 shards",
        "Converting 30/60 rows 4.0/s, 2 of 3 shards",
    ]


def test_shards_that_are_linked_are_done_from_the_start(write, clock, lines):
    tasks = list(write.tasks)
    tasks[2] = replace(tasks[2], linked=Shard("Split-train/old", 30, 1, "0"))
    follower = Follower(replace(write, tasks=tasks), clock)
    clock.now = 10
    _leave(write, "shard-00001.json")
    follower.look()
    assert lines() == ["Converting 50/60 rows 2.0/s, 2 of 3 shards"]


def test_the_end_is_shown_though_the_commit_removes_the_reports(write, clock, lines):
    follower = Follower(write, clock)
    clock.now = 10
    _leave(write, "shard-00000.json")
    follower.look()
    Path(write.tasks[0].work, "shard-00000.json").unlink()
    follower.look()
    assert lines()[-1] == "Converting 10/60 rows 1.0/s, 1 of 3 shards"
    clock.now = 20
    follower.finish()
    assert lines()[-1] == "Converting 60/60 rows 3.0/s, 3 of 3 shards"


def test_a_worker_in_this_process_shows_its_rows_alone(write, clock, lines, monkeypatch):
    monkeypatch.setitem(writing._done, write.run, 7)
    follower = Follower(write, clock)
    clock.now = 50
    _leave(write, "shard-00000.json")
    follower.look()
    follower.finish()
    assert lines() == []


def test_the_log_gets_a_line_each_30_seconds(write, clock, caplog):
    caplog.set_level(logging.INFO)
    follower = Follower(write, clock)
    _leave(write, "shard-00000.json")
    for now in range(5, 70, 5):
        clock.now = float(now)
        follower.look()
    assert [record.getMessage() for record in caplog.records] == [
        "Converting: 1 of 3 shards, 10 of 60 rows, 0.3/s",
        "Converting: 1 of 3 shards, 10 of 60 rows, 0.2/s",
    ]


def test_a_listing_that_fails_is_ignored(write, clock, lines, monkeypatch):
    def fail(path: str) -> list[str]:
        raise RuntimeError("the store is slow")

    _leave(write, "shard-00000.json")
    with monkeypatch.context() as patch:
        patch.setattr(storage, "list_folder", fail)
        follower = Follower(write, clock)
        follower.look()
    clock.now = 5
    follower.look()
    assert lines()[-1] == "Converting 10/60 rows 2.0/s, 1 of 3 shards"


def test_slow_listings_make_looks_rarer(write, clock, monkeypatch):
    pauses: list[float] = []

    class Stop:
        def wait(self, pause: float) -> bool:
            pauses.append(pause)
            return len(pauses) == 4

    def list_folder(path: str) -> list[str]:
        clock.now += 2.0 if len(pauses) == 2 else 0.0
        return []

    monkeypatch.setattr(storage, "list_folder", list_folder)
    Follower(write, clock).follow(Stop())
    assert pauses == [5, 5, 20, 5]


def _fail_while_followed(write: WriteJob) -> None:
    with follow_shards(write):
        assert "darkroom-follow" in [thread.name for thread in threading.enumerate()]
        raise RuntimeError("lost")


def test_a_job_that_fails_is_not_shown_as_done(write, lines):
    with pytest.raises(RuntimeError, match="lost"):
        _fail_while_followed(write)
    assert not [line for line in lines() if "3 of 3" in line]
    assert "darkroom-follow" not in [thread.name for thread in threading.enumerate()]
