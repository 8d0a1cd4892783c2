"""Calls that may fail for a while: tried again after growing pauses, until a deadline."""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from darkroom.errors import STORE_IS_DOWN, TransientStorageError

MAX_ATTEMPTS = 6
DEADLINE_SECONDS = 180.0
ATTEMPT_SECONDS = 90.0
FIRST_PAUSE_SECONDS = 0.5
MAX_PAUSE_SECONDS = 8.0
# A large transfer gets more time: as much as it needs at this speed.
SLOWEST_BYTES_PER_SECOND = 256 << 10

_Result = TypeVar("_Result")
# A generator of its own: a user's seeded random numbers must not depend on the network.
_random = random.Random()


class TransientError(Exception):
    """An attempt failed in a way that may pass."""


def retry(what: str, attempt: Callable[[], _Result], size_bytes: int = 0) -> _Result:
    """Calls `attempt` until it ends without a `TransientError`.

    Args:
        what: What is done, for the message.
        attempt: Does it; must leave nothing behind that breaks the next attempt.
        size_bytes: How much it transfers, where that is known.

    Returns:
        What `attempt` returned.

    Raises:
        TransientStorageError: All attempts failed, or the deadline has passed.
    """
    extra_seconds = size_bytes / SLOWEST_BYTES_PER_SECOND
    start = time.monotonic()
    deadline = start + DEADLINE_SECONDS + extra_seconds
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
            if number == MAX_ATTEMPTS or time.monotonic() + pause >= deadline:
                seconds = time.monotonic() - start
                times = "once" if number == 1 else f"{number} times"
                raise TransientStorageError(
                    f"{what} failed {times} in {seconds:.1f} seconds, the last time with: {error}.",
                    STORE_IS_DOWN,
                ) from error
        time.sleep(pause)


def _call_within(attempt: Callable[[], _Result], seconds: float) -> _Result:
    """Calls `attempt` in a thread that is left behind when it takes too long.

    The clients' own timeouts start again with every byte, so a store that sends one byte at a time
    would hold us for ever. Such a thread ends with its connection, and does not keep the process
    alive.
    """
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
    if error is not None:
        raise error
    return result  # type: ignore[no-any-return]
