"""Processes that do a limit's work side by side: only the work is timed."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from multiprocessing.synchronize import Barrier
from typing import Any

# Else a process that failed would be waited for without end.
_MOST_SECONDS = 600


def time_processes(work: Callable[..., None], arguments: Sequence[tuple[Any, ...]]) -> float:
    """Returns the seconds from when all processes were ready until all were done.

    What a process imports before, and how it ends, does not count.

    Args:
        work: A function of a module.
        arguments: Those of its call in each process.
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
