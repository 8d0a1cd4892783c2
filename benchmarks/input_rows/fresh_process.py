"""Measurements in a fresh process: with fewer cores, or of its memory."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.queues import SimpleQueue
from pathlib import Path

from darkroom.input.pipeline import make_train_dataset
from input_rows.contract import TRAIN, consume, consume_few


def measure_rate(files: list[str]) -> float:
    """Returns images a second of an epoch of training."""
    return consume(make_train_dataset(files, TRAIN, epoch=0))


def measure_memory(files: list[str], budget_bytes: int) -> float:
    """Returns the MiB that reading takes at its peak, beyond those of the process before."""
    options = dataclasses.replace(TRAIN, ram_budget_bytes=budget_bytes)
    consume_few(make_train_dataset(files[:1], dataclasses.replace(options, shuffle_records=0)))
    before = _read_memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    consume_few(make_train_dataset(files, options, epoch=0))
    return _read_memory("VmHWM") - before


def _read_memory(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def _answer(queue: SimpleQueue[float], function: Callable[..., float], *args: object) -> None:
    queue.put(function(*args))


def run_in_child(function: Callable[..., float], *args: object, cores: int = 0) -> float:
    """Returns the result of a function in a fresh process with that many cores (0: all)."""
    before = os.sched_getaffinity(0)
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    process = context.Process(target=_answer, args=(queue, function, *args))
    try:
        # A child inherits the cores of its parent.
        os.sched_setaffinity(0, set(sorted(before)[: cores or len(before)]))
        process.start()
    finally:
        os.sched_setaffinity(0, before)
    result = queue.get()
    process.join()
    return result
