"""Processes that do a limit's work side by side; only the work is timed."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from multiprocessing.synchronize import Barrier
from typing import Any

# Otherwise the wait for a failed process would never end.
_MOST_SECONDS = 600


def time_processes(work: Callable[..., None], arguments: Sequence[tuple[Any, ...]]) -> float:
    """Returns the seconds from the moment when all processes are ready until all are done.

    Imports before and clean-up after do not count.

    Args:
        work: A function of a module.
        arguments: Its arguments in each process.
    """
    context = multiprocessing.get_context("spawn")
    together = context.Barrier(len(arguments) + 1)
    processes = [
        context.Process(target=_work, args=(work, values, together)) for values in arguments
    ]
    for process in processes:
        process.start()
    together.wait(_MOST_SECONDS)
    started = time.perf_counter()
    together.wait(_MOST_SECONDS)
    seconds = time.perf_counter() - started
    for process in processes:
        process.join()
    return seconds


def _work(work: Callable[..., None], arguments: tuple[Any, ...], together: Barrier) -> None:
    together.wait(_MOST_SECONDS)
    work(*arguments)
    together.wait(_MOST_SECONDS)
