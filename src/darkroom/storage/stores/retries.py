"""Calls that may fail for a while: tried again after growing pauses, until a deadline.

Most give up after a few attempts. A conversion holds out until the deadline: its work would
be lost.
"""

from __future__ import annotations

import math
import queue
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar

from darkroom.errors import STORE_IS_DOWN, TransientStorageError, hide_passwords
from darkroom.runtime import progress

MAX_ATTEMPTS = 6
DEADLINE_SECONDS = 180.0
ATTEMPT_SECONDS = 90.0
FIRST_PAUSE_SECONDS = 0.5
MAX_PAUSE_SECONDS = 8.0
# A large transfer gets more time: as much as it needs at this speed.
SLOWEST_BYTES_PER_SECOND = 256 << 10
# Many threads may wait for the same store: one line of all of them each time.
TELL_SECONDS = 10.0

_Result = TypeVar("_Result")
# A separate generator: a user's seeded random numbers must not depend on the network.
_random = random.Random()


class TransientError(Exception):
    """An attempt failed in a way that may pass."""

    def __init__(self, text: str) -> None:
        super().__init__(hide_passwords(text))


class UnknownHostError(TransientError):
    """The name of a store has no address: it is wrong, or the store is away."""


class Limits(NamedTuple):
    """How long a call is tried again.

    Attributes:
        seconds: No attempt begins later than that; a large transfer gets more.
        attempts: The most attempts.
        stopped: Ends the wait for the next attempt when it is set.
        hint: What to do when all attempts failed.
    """

    seconds: float = DEADLINE_SECONDS
    attempts: float = MAX_ATTEMPTS
    stopped: threading.Event | None = None
    hint: str = STORE_IS_DOWN


# Of the process: a conversion reads and writes in many threads.
_shared = Limits()
_own: ContextVar[Limits | None] = ContextVar("own_limits", default=None)
# Whether patience begins, and nothing is known to have an address.
_begins = False
_last_told = -math.inf


def set_patience(seconds: float) -> None:
    """Makes all calls of this process hold out for so many seconds, whatever the attempts."""
    global _shared
    _shared = Limits(seconds, math.inf)


@contextmanager
def be_patient(seconds: float) -> Iterator[None]:
    """Does so while the block runs, but not for a name that has no address from the beginning."""
    global _shared, _begins
    before = _shared
    set_patience(seconds)
    # Not within another patience, as a commit's in a conversion: there, much is known.
    _begins = _begins or before.attempts < math.inf
    try:
        yield
    finally:
        _shared = before


@contextmanager
def limit(**changes: Any) -> Iterator[None]:
    """Changes some `Limits` of the calls that the block makes in its own thread."""
    token = _own.set((_own.get() or _shared)._replace(**changes))
    try:
        yield
    finally:
        _own.reset(token)


def retry(what: str, attempt: Callable[[], _Result], size_bytes: int = 0) -> _Result:
    """Calls `attempt` until it ends without a `TransientError`.

    Args:
        what: The action, for the message.
        attempt: Does it; must leave nothing behind that breaks the next attempt.
        size_bytes: How much it transfers, where that is known.

    Returns:
        The result of `attempt`.

    Raises:
        TransientStorageError: All attempts failed, or the deadline has passed.
        InterruptedError: The wait for the next attempt was ended.
    """
    limits = _own.get() or _shared
    extra_seconds = size_bytes / SLOWEST_BYTES_PER_SECOND
    start = time.monotonic()
    deadline = start + limits.seconds + extra_seconds
    number = 0
    while True:
        number += 1
        left = deadline - time.monotonic()
        try:
            return _call_within(attempt, min(left, ATTEMPT_SECONDS + extra_seconds))
        except TransientError as error:
            pause = min(MAX_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** (number - 1))
            # Jitter: workers that failed together must not try again together.
            pause *= _random.uniform(0.5, 1.0)
            seconds = time.monotonic() - start
            is_wrong = _begins and isinstance(error, UnknownHostError)
            attempts = min(limits.attempts, MAX_ATTEMPTS) if is_wrong else limits.attempts
            if number >= attempts or start + seconds + pause >= deadline:
                times = "once" if number == 1 else f"{number} times"
                raise TransientStorageError(
                    f"{what} failed {times} in {seconds:.1f} seconds, the last time with: {error}.",
                    limits.hint,
                ) from error
            _tell(what, error, seconds, deadline - start)
        if limits.stopped is None:
            time.sleep(pause)
        elif limits.stopped.wait(pause):
            raise InterruptedError("the wait for a store was ended")


def _tell(what: str, error: TransientError, seconds: float, limit_seconds: float) -> None:
    """Says that a call waits, if none was said to wait just before."""
    global _last_told
    now = time.monotonic()
    if seconds >= TELL_SECONDS and now - _last_told >= TELL_SECONDS:
        _last_told = now
        progress.warn(
            f"{what} has failed for {seconds:.0f} seconds, the last time with: {error}. It is "
            f"tried again for at most {limit_seconds:.0f} seconds."
        )


def _call_within(attempt: Callable[[], _Result], seconds: float) -> _Result:
    """Calls `attempt` in a thread that is left behind when it takes too long.

    The clients' own timeouts start again with every byte, so a store that sends one byte at a time
    would hold us for ever. Such a thread ends with its connection, and does not keep the process
    alive.
    """
    global _begins
    outcome: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            outcome.put((attempt(), None))
        except BaseException as error:  # noqa: BLE001  raised below, in the caller's thread
            outcome.put((None, error))

    threading.Thread(target=run, daemon=True, name="darkroom-remote").start()
    try:
        result, error = outcome.get(timeout=max(0.0, seconds))
    except queue.Empty:
        raise TransientError(f"no end after {seconds:.0f} seconds") from None
    if not isinstance(error, UnknownHostError):
        _begins = False
    if error is not None:
        raise error
    return result  # type: ignore[no-any-return]
