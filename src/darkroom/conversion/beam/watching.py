"""What the client shows of a job that runs elsewhere: finished shards, and what it waits for.

Engines count in their own ways, and some only at the end. The output's work folder tells the same
of all of them: each finished shard has its report there, and a worker that begins leaves a sign.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from darkroom import storage
from darkroom.conversion.beam.failures import find_known
from darkroom.conversion.shard import (
    MAX_REPORT_BYTES,
    REFUSAL_FILE,
    REPORT_SUFFIX,
    SIGN_SUFFIX,
)
from darkroom.errors import StorageError
from darkroom.runtime import progress
from darkroom.runtime.text import format_count

if TYPE_CHECKING:
    from darkroom.conversion.beam.transforms import WriteDataset

LOOK_SECONDS = 5.0
SAY_SECONDS = 30.0
RUNNING = "RUNNING"

_CHECK = (
    "Check that it has free slots, and that its workers start: task managers, worker pools, and "
    "the image or the Python in environment_config."
)
# A listing may take long where there are many shards; this share of the time is spent in it.
_LISTING_SHARE = 0.1
_JOIN_SECONDS = 2.0
_STATE = re.compile(r"Job state changed to (\w+)")
_LOGGER = logging.getLogger(__name__)


class Watch:
    """Looks at a job from outside, again and again.

    Args:
        write: The job.
        log: File with what the engine says.
        state: The engine's word for how far the job is, as far as it is known; see `note_state`.
        cancel: Ends the job on the engine.
        clock: Seconds that only grow.

    Attributes:
        refusal: Why a worker does not work for this client; None as long as none has said so.
    """

    def __init__(
        self,
        write: WriteDataset,
        log: str | None = None,
        state: str = "",
        cancel: Callable[[], object] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.refusal: StorageError | None = None
        self._write, self._log, self._state = write, log, state
        self._cancel, self._clock = cancel, clock
        self._folder = write.tasks[0].work
        self._rows = {
            task.work_file(REPORT_SUFFIX).rpartition("/")[2]: task.range.num_rows
            for task in write.tasks
        }
        self._total = sum(self._rows.values())
        self._done = self._before = self._list() & self._rows.keys()
        self._begun: set[str] = set()
        self._started = self._since = self._shown = self._logged = clock()
        self._next_word = SAY_SECONDS

    def note_state(self, state: str) -> None:
        """Takes a new state of the job; what is waited for changes with it."""
        self._state, self._since, self._next_word = state, self._clock(), SAY_SECONDS

    def look(self) -> None:
        """Looks once, and shows what has changed, or says what is waited for."""
        names = self._list()
        if REFUSAL_FILE in names and not self.refusal:
            self._read_refusal()
        # The commit removes all of them, at the end.
        done = self._done | names & self._rows.keys()
        begun = self._begun | {name for name in names if name.endswith(SIGN_SUFFIX)}
        is_new = (len(done), len(begun)) != (len(self._done), len(self._begun))
        self._done, self._begun = done, begun
        if not begun and done == self._before and not self._write.has_reported:
            self._say_waiting()
        elif is_new or self._clock() - self._shown >= SAY_SECONDS:
            self._show()

    def finish(self) -> None:
        """Shows that all is done."""
        self._done = set(self._rows)
        if not self._write.has_reported:
            self._show()

    def follow(self, stop: threading.Event) -> None:
        """Looks until it is told to stop."""
        pause = LOOK_SECONDS
        while not stop.wait(pause):
            started = time.monotonic()
            self.look()
            pause = max(LOOK_SECONDS, (time.monotonic() - started) / _LISTING_SHARE)

    def _list(self) -> set[str]:
        # Nothing that goes wrong here may stop the job: stores raise errors of many kinds.
        with suppress(Exception):
            return set(storage.list_folder(self._folder))
        return set()

    def _count(self, names: Iterable[str]) -> int:
        return sum(self._rows[name] for name in names)

    def _show(self) -> None:
        now = self._shown = self._clock()
        done, before = self._count(self._done), self._count(self._before)
        shards = f"{len(self._done):,} of {format_count(len(self._rows), 'shard')}"
        if not self._write.has_reported:
            progress.advance(done, self._total, "rows", before, shards)
        if now - self._logged >= SAY_SECONDS:
            self._logged = now
            rate = (done - before) / (now - self._started)
            rows = f"{done:,} of {format_count(self._total, 'row')}"
            _LOGGER.info("Converting: %s, %s, %.1f/s", shards, rows, rate)

    def _say_waiting(self) -> None:
        waited = self._clock() - self._since
        if waited < self._next_word:
            return
        # Not each time: a job may wait for hours until it is its turn.
        self._next_word = 2 * waited
        said, is_hopeless = "", False
        if self._log:
            with suppress(OSError):
                said, is_hopeless = find_known(self._log)
            said = f" {said} All that it said is in {self._log}.".replace("  ", " ")
        text = self._describe_wait(f"{waited:,.0f} s") + said
        progress.note(text)
        _LOGGER.info(text)
        # A job may be in a queue, so that no worker begins is not enough.
        if self._state == RUNNING and is_hopeless:
            self._end_job()

    def _describe_wait(self, waited: str) -> str:
        if not self._state:
            return f"For {waited} the engine has not taken the job."
        if self._state != RUNNING:
            return f"For {waited} the engine has not started the job: it is {self._state}."
        return f"For {waited} no worker of the engine has begun. {_CHECK}"

    def _read_refusal(self) -> None:
        with suppress(OSError, ValueError, KeyError, TypeError, storage.FileTooLargeError):
            path = storage.join(self._folder, REFUSAL_FILE)
            said = json.loads(storage.read_bytes(path, MAX_REPORT_BYTES))
            if said["run"] == self._write.run:
                self.refusal = StorageError(str(said["message"]), str(said["hint"]))
                self._end_job()

    def _end_job(self) -> None:
        # Where an engine cannot end it, what was said has to do.
        with suppress(Exception):
            self._cancel()


@contextmanager
def watch_job(
    write: WriteDataset,
    log: str | None = None,
    state: str = "",
    cancel: Callable[[], object] = lambda: None,
) -> Iterator[None]:
    """Shows how far a job is while the block runs; see `Watch`.

    Args:
        write: The job; to be entered before it is applied to a pipeline.
        log: File with what the engine says.
        state: How far the job is, where the engine does not tell.
        cancel: Ends the job on the engine. It is called from another thread, when a worker says
            that it does not work for this client, or the engine that it cannot start one.

    Raises:
        StorageError: A worker said so.
    """
    write.gives_signs = True
    watch, stop = Watch(write, log, state, cancel), threading.Event()
    handler = _StateHandler(watch)
    logger = logging.getLogger("apache_beam.runners.portability.portable_runner")
    logger.addHandler(handler)
    thread = threading.Thread(target=watch.follow, args=(stop,), name="darkroom-watch", daemon=True)
    thread.start()
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


class _StateHandler(logging.Handler):
    """Takes the job's states from what Beam logs: it tells them in no other way."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch

    def emit(self, record: logging.LogRecord) -> None:
        """Passes on a state."""
        if found := _STATE.match(record.getMessage()):
            self._watch.note_state(found[1])
