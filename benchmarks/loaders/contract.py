"""What every loader must return, and how its batches are consumed and timed; needs only numpy."""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

SIZE, SHORT_SIDE, BATCH = 224, 256, 64
AREA, RATIO = (0.08, 1.0), (3 / 4, 4 / 3)
SEED = 0
# Random windows; the middle of images resized to a short side of 256; and, which only darkroom's
# scripts have, whole images.
USES = ("train", "eval", "whole")
_WARM_BATCHES = 10

Batches = Iterable[np.ndarray]
Writer = Callable[[Path, Path], None]
Reader = Callable[[Path, str, int], Batches]


def consume(batches: Batches) -> dict[str, float]:
    """Takes one batch after another, as a training does, and reads each page of it.

    Args:
        batches: One epoch, uint8 [<= 64, 224, 224, 3].

    Returns:
        `images`: how many the epoch had. `rate`: images a second, after the first batches.
        `processor_rate`: images a second of processor time of this process and its worker
        processes, after the first batches.

    Raises:
        SystemExit: A batch has another shape or dtype.
    """
    images, counted, started, used = 0, 0, 0.0, 0.0
    for number, batch in enumerate(batches):
        if batch.shape[1:] != (SIZE, SIZE, 3) or batch.dtype != np.uint8:
            raise SystemExit(f"Got {batch.dtype} {batch.shape} instead of uint8 [n, 224, 224, 3].")
        batch.reshape(-1)[::4096].max()
        images += len(batch)
        if number >= _WARM_BATCHES:
            counted += len(batch)
        if number == _WARM_BATCHES - 1:
            started, used = time.perf_counter(), read_processor()
    seconds, used = time.perf_counter() - started, read_processor() - used
    return {"images": images, "rate": counted / seconds, "processor_rate": counted / used}


def read_processor() -> float:
    """Returns the seconds of processor time of this process and its children, ended or not."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = time.process_time() + ended.ru_utime + ended.ru_stime
    for task in Path("/proc/self/task").iterdir():
        for child in (task / "children").read_text().split():
            fields = Path("/proc", child, "stat").read_text().rpartition(")")[2].split()
            used += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return used


def run(write: Writer, read: Reader) -> None:
    """Runs the command line of a loader's script.

    Args:
        write: Writes the loader's own format: photographs as FOLDER/train/LABEL/NAME.jpg, target.
        read: Returns an epoch of what was written: target, use (see `USES`), processor cores.
    """
    parser = argparse.ArgumentParser(description="One loader, in its own environment.")
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write")
    writing.add_argument("photographs", type=Path)
    writing.add_argument("target", type=Path)
    reading = commands.add_parser("read")
    reading.add_argument("target", type=Path)
    reading.add_argument("use", choices=USES)
    reading.add_argument("--cores", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.command == "write":
        started = time.perf_counter()
        write(arguments.photographs, arguments.target)
        result = {"seconds": time.perf_counter() - started}
    else:
        result = consume(read(arguments.target, arguments.use, arguments.cores))
    print(json.dumps(result), flush=True)
