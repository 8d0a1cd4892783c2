"""What the client shows of a job that runs elsewhere: finished shards, and what it waits for."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from darkroom.conversion.beam.engine_log import EngineLog, StateHandler
from darkroom.conversion.beam.failures import Failure, describe_failure, is_unshared
from darkroom.conversion.beam.work_folder import WorkFolder
from darkroom.conversion.engines.flink import FlinkFailure, FlinkStatus
from darkroom.conversion.engines.known import NOT_SHARED
from darkroom.conversion.engines.waiting import RUNNING, describe_shortage, describe_wait
from darkroom.errors import StorageError
from darkroom.runtime import progress
from darkroom.runtime.text import format_count

if TYPE_CHECKING:
    from darkroom.conversion.beam.transforms import WriteDataset

LOOK_SECONDS = 5.0
SAY_SECONDS = 30.0

# A listing may take long where there are many shards; this share of the time is spent in it.
_LISTING_SHARE = 0.1
_JOIN_SECONDS = 2.0
_LOGGER = logging.getLogger(__name__)


class Watch:
    """Looks at a job from outside, again and again.

    Args:
        write: The job.
        log: What the engine says.
        state: The engine's word for how far the job is, as far as it is known; see `note_state`.
        cancel: Ends the job on the engine.
        clock: Seconds that only grow.
        list_failures: Returns what the engine has survived so far, the first failure first.
        read_status: Returns what Flink says of the job, where it can be asked.

    Attributes:
        refusal: Why a worker does not work for this client; None as long as none has said so.
    """

    def __init__(
        self,
        write: WriteDataset,
        log: EngineLog | None = None,
        state: str = "",
        cancel: Callable[[], object] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        list_failures: Callable[[], Sequence[FlinkFailure]] = lambda: (),
        *,
        read_status: Callable[[], FlinkStatus | None] = lambda: None,
    ) -> None:
        self.refusal: StorageError | None = None
        self._write, self._log, self._state = write, log, state
        self._cancel, self._clock, self._list_failures = cancel, clock, list_failures
        self._read_status = read_status
        self._failures: list[FlinkFailure] = []
        self._last_failure = self._last_shortage = ""
        self._is_hurt = False  # since a failure, as long as nothing has gone on
        self._folder = WorkFolder(write)
        self._started = self._since = self._shown = self._logged = clock()
        self._next_word, self._pause = SAY_SECONDS, LOOK_SECONDS

    def note_state(self, state: str) -> None:
        """Takes a new state of the job; what is waited for changes with it."""
        self._state = state
        self._wait_again()

    def look(self) -> None:
        """Looks once, and shows what has changed, or says what is waited for."""
        started = time.monotonic()
        num_done = self._folder.num_done
        is_new = self._folder.read()
        self._pause = max(LOOK_SECONDS, (time.monotonic() - started) / _LISTING_SHARE)
        if self._folder.refuses and not self.refusal:
            self.refusal = self._folder.read_refusal()
            if self.refusal:
                self._end_job()
        if not self._folder.has_gone_on:
            self._started = self._clock()  # the rate does not count what an engine takes to begin
        if self._folder.num_done > num_done:
            self._last_failure = ""
        if is_new:
            self._is_hurt, self._last_shortage = False, ""
            self._wait_again()
        self._tell_failures()
        if self._is_hurt or not (self._folder.has_gone_on or self._write.has_reported):
            self._say_waiting()
        elif is_new or self._clock() - self._shown >= SAY_SECONDS:
            self._show()
            self._say_stopped()

    def begin(self) -> None:
        """Says that the engine is waited for, and how many shards an earlier run has finished."""
        if not self._write.has_reported:
            before = self._folder.count_rows_before()
            total = self._folder.total
            progress.advance(before, total, "rows", before, "waits for the engine")
        if kept := self._folder.describe_kept():
            progress.note(kept)

    def finish(self) -> None:
        """Shows that all is done."""
        self._folder.finish()
        if not self._write.has_reported:
            self._show()

    def follow(self, stop: threading.Event) -> None:
        """Looks until it is told to stop."""
        while not stop.wait(self._pause):
            self.look()
        # A job that is interrupted says how much it finished.
        if self._folder.read() and not self._write.has_reported:
            self._show()

    def _show(self) -> None:
        now = self._shown = self._clock()
        done, total, shards = self._folder.count_rows(), self._folder.total, self._folder.shards
        before = self._folder.count_rows_before()
        if not self._write.has_reported:
            progress.advance(done, total, "rows", before, shards)
        if now - self._logged >= SAY_SECONDS:
            self._logged = now
            rate = (done - before) / max(now - self._started, 1e-9)
            rows = f"{done:,} of {format_count(total, 'row')}"
            _LOGGER.info("Converting: %s, %s, %.1f/s", shards, rows, rate)

    def _tell_failures(self) -> None:
        """Tells what has failed since the last look; ends a job that cannot succeed."""
        found: Sequence[FlinkFailure] = ()
        with suppress(Exception):  # the engine may be busy, or down
            found = self._list_failures()
        last = self._failures[-1].time if self._failures else 0
        for each in found:
            if each.time <= last:
                continue
            self._failures.append(each)
            self._tell_failure(each.text)

    def _tell_failure(self, text: str) -> None:
        if self._log:
            self._log.add(text)
        failure = describe_failure(text)
        if is_unshared(self._write, text):
            failure = Failure(f"{NOT_SHARED.what}. {NOT_SHARED.hint}", returns=True)
        what = failure.text or "The engine does not say why."
        # Numbers differ: seconds, ports, instructions.
        kind = re.sub(r"\d+", "0", failure.text)
        is_same = kind == self._last_failure
        self._last_failure, self._is_hurt = kind, True
        self._wait_again()
        said = "the same again." if is_same else what
        self._tell(f"Failure {len(self._failures)} of the job: {said}", named=not is_same)
        # An engine that tries it again and again would only take longer to say the same.
        if (failure.is_start and not self._folder.has_gone_on) or (failure.returns and is_same):
            self._end_job()

    def _wait_again(self) -> None:
        self._since, self._next_word = self._clock(), SAY_SECONDS

    def _ask(self) -> FlinkStatus | None:
        with suppress(Exception):  # the engine may be busy, or down
            return self._read_status()
        return None

    def _say_stopped(self) -> None:
        """Says that a job waits which has run, as when a task manager was lost without an error."""
        if self._clock() - self._since < SAY_SECONDS or self._write.has_reported:
            return
        status = self._ask()
        self._is_hurt = bool(describe_shortage(status)) or bool(status and not status.running)
        if self._is_hurt:
            self._say_waiting()

    def _say_waiting(self) -> None:
        waited = self._clock() - self._since
        status = self._ask() if self._state == RUNNING else None
        shortage = describe_shortage(status)
        if self._folder.has_gone_on and not shortage and (status is None or status.running):
            self._is_hurt = False  # its tasks run again
            return
        if shortage != self._last_shortage:
            self._last_shortage = shortage
            if shortage and waited < self._next_word:
                self._tell(shortage)
        # Failures that come from tasks that run are told by themselves.
        is_trying = bool(self._failures and status and status.running)
        if waited < max(self._next_word, 2 * SAY_SECONDS * is_trying):
            return
        # Not each time: a job may wait for hours until it is its turn.
        self._next_word = 2 * waited
        failure = Failure("")
        if self._log and not self._failures:
            with suppress(OSError):
                failure = describe_failure(self._log.read())
        said = describe_wait(
            f"{waited:,.0f} s", self._state, status, has_failed=bool(self._failures)
        )
        self._tell(f"{said} {failure.text}".strip())
        # A job may be in a queue, so that no worker begins is not enough.
        if self._state == RUNNING and failure.is_start:
            self._end_job()

    def _tell(self, text: str, *, named: bool = True) -> None:
        if self._log and named:
            text = f"{text} {self._log.tell()}"
        progress.warn(text)

    def _end_job(self) -> None:
        # Where an engine cannot end it, what was said has to do.
        with suppress(Exception):
            self._cancel()


@contextmanager
def watch_job(
    write: WriteDataset,
    log: EngineLog | None = None,
    state: str = "",
    cancel: Callable[[], object] = lambda: None,
    list_failures: Callable[[], Sequence[FlinkFailure]] = lambda: (),
    *,
    read_status: Callable[[], FlinkStatus | None] = lambda: None,
) -> Iterator[None]:
    """Shows how far a job is while the block runs; see `Watch`.

    Args:
        write: The job; to be entered before it is applied to a pipeline.
        log: What the engine says.
        state: How far the job is, where the engine does not tell.
        cancel: Ends the job on the engine. It is called from another thread, when a worker says
            that it does not work for this client, or the engine that it cannot start one.
        list_failures: Returns what the engine has survived so far, the first failure first.
        read_status: As of `Watch`.

    Raises:
        StorageError: A worker said so.
    """
    write.gives_signs = True
    watch = Watch(write, log, state, cancel, list_failures=list_failures, read_status=read_status)
    stop = threading.Event()
    handler = StateHandler(watch.note_state)
    logger = logging.getLogger("apache_beam.runners.portability.portable_runner")
    logger.addHandler(handler)
    thread = threading.Thread(target=watch.follow, args=(stop,), name="darkroom-watch", daemon=True)
    thread.start()
    watch.begin()
    try:
        yield
    except Exception as error:
        if watch.refusal:
            raise watch.refusal from error
        raise
    finally:
        stop.set()
        logger.removeHandler(handler)
        thread.join(_JOIN_SECONDS)
    watch.finish()
