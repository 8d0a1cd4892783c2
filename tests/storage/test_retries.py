"""How long a request is tried again, by a clock that only pauses move."""

from __future__ import annotations

import threading

import pytest

from darkroom import storage
from darkroom.errors import TransientStorageError
from darkroom.runtime import progress
from darkroom.storage.stores import retries


class Clock:
    """A clock that stands still but for pauses.

    Attributes:
        now: Its time, in seconds.
    """

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(retries, "time", made)
    monkeypatch.setattr(retries, "_last_told", 0.0)
    # A worker in a thread, of an earlier test, may have been told to be patient.
    monkeypatch.setattr(retries, "_shared", retries.Limits())
    return made


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(progress, "warn", lines.append)
    return lines


class Store:
    """Answers 503 until a time.

    Attributes:
        asked: How often it was asked.
    """

    def __init__(
        self,
        clock: Clock,
        away_seconds: float,
        error: type[retries.TransientError] = retries.TransientError,
    ) -> None:
        self._clock, self._back, self._error = clock, clock.now + away_seconds, error
        self.asked = 0

    def answer(self) -> bytes:
        self.asked += 1
        if self._clock.now < self._back:
            raise self._error("503 SlowDown")
        return b"data"


def test_a_request_gives_up_after_six_attempts(clock, said):
    store = Store(clock, 60)
    with pytest.raises(TransientStorageError, match=r"Reading s3://b/a failed 6 times in \d+\."):
        retries.retry("Reading s3://b/a", store.answer)
    assert store.asked == 6
    assert said == []


def test_a_conversion_holds_out_and_says_so(clock, said):
    store = Store(clock, 60)
    with storage.be_patient(180):
        assert retries.retry("Reading s3://b/a", store.answer) == b"data"
    assert 60 <= clock.now - 1000 <= 68
    # A line now and then: the object, the answer, how long it has waited.
    assert 3 <= len(said) <= 6
    assert said[0].startswith("Reading s3://b/a has failed for 1")
    assert all(
        "seconds, the last time with: 503 SlowDown. It is tried aga" in each for each in said
    )
    assert said[0].endswith("for at most 180 seconds.")
    # Afterwards it is as before.
    store = Store(clock, 60)
    with pytest.raises(TransientStorageError, match="failed 6 times"):
        retries.retry("Reading s3://b/a", store.answer)


def test_a_name_without_an_address_is_waited_for_only_where_it_had_one(clock, said):
    with storage.be_patient(180):
        store = Store(clock, 60, retries.UnknownHostError)
        with pytest.raises(TransientStorageError, match="failed 6 times"):
            retries.retry("Reading s3://b/a", store.answer)
        assert retries.retry("Reading s3://b/a", Store(clock, 60).answer) == b"data"
        store = Store(clock, 60, retries.UnknownHostError)
        assert retries.retry("Reading s3://b/a", store.answer) == b"data"
        # A commit is patient by itself, too: within a conversion it does not begin again.
        with storage.be_patient(180):
            store = Store(clock, 60, retries.UnknownHostError)
            assert retries.retry("Reading s3://b/a", store.answer) == b"data"


def test_patience_ends(clock, said):
    store = Store(clock, 1_000_000)
    with (
        storage.be_patient(180),
        pytest.raises(TransientStorageError, match=r"failed \d\d times in 17\d\.\d seconds"),
    ):
        retries.retry("Reading s3://b/a", store.answer)
    assert 172 <= clock.now - 1000 <= 180


def test_many_requests_that_wait_say_so_once(clock, said):
    def fail() -> bytes:
        clock.now += 20
        raise retries.TransientError("503")

    with storage.be_patient(25):
        for number in range(3):
            clock.now = 1000.0
            with pytest.raises(TransientStorageError):
                retries.retry(f"Reading s3://b/{number}", fail)
    assert len(said) == 1


def test_a_thread_may_give_up_at_once_while_others_are_patient(clock):
    store = Store(clock, 60)
    with storage.be_patient(180):
        with (
            storage.limit(attempts=1, seconds=5),
            pytest.raises(TransientStorageError, match=r"failed once in 0\.0 seconds"),
        ):
            retries.retry("Reading s3://b/a", store.answer)
        assert retries.retry("Reading s3://b/a", store.answer) == b"data"


def test_a_wait_is_ended_when_the_work_is_stopped(clock):
    stopped = threading.Event()
    stopped.set()
    store = Store(clock, 60)
    with (
        storage.be_patient(180),
        storage.limit(stopped=stopped),
        pytest.raises(InterruptedError, match="was ended"),
    ):
        retries.retry("Reading s3://b/a", store.answer)
    assert store.asked == 1
