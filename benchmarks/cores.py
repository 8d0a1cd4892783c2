"""What the readers without TensorFlow would do on more cores than this machine has.

    python benchmarks/cores.py RECORDS [--decoders 1,2,4,8,16,32] [--seconds 4]

RECORDS has a train split of JPEGs. Instead of decoding and resizing, a thread sleeps as long as
they take on one core, without Python's lock. So any number of images is "decoded" at once, and what
is left is what Python does, what processes send, and how threads wait for the lock. That must fit
into the cores of this machine, which must be idle: two do it for some 6,000 images a second, so
shares of more are lower bounds.

Each line has a number of decoders; `limit`, the images a second of as many threads that only sleep;
and the share of it that the loader reaches with threads, and with processes. The last line has up
to how many decoders each way reaches 0.85 of the limit; and the microseconds of processor time an
image that the process of the loader takes with each way, when decoding takes none. Python's lock
is held for less than that.

With `--real`, nothing sleeps: `limit` is that of processes that only decode and resize, and
decoders are cores. Where PyTorch is installed, a line has two processes of torchrun, which divide
the cores, and their share of the limit of all cores.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import itertools
import json
import multiprocessing
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import sleeping

import darkroom
from darkroom.reader import decoder_process, loader
from darkroom.runtime.machine import count_cores

BATCH, SIZE = 256, 224
_ENOUGH = 0.85


def read(records: Path, decoders: int, by_processes: bool) -> Iterator[np.ndarray]:
    """Yields the images of batches, epoch after epoch, once all decoders work."""
    loader._FEWEST_PROCESSES = 1 if by_processes else sys.maxsize
    data = darkroom.load(
        records,
        image_size=SIZE,
        batch_size=BATCH,
        training=True,
        augment="none",
        framework="numpy",
        num_threads=decoders,
    )["train"]
    batches = itertools.chain.from_iterable(itertools.repeat(data))
    for _ in range(4):
        next(batches)
    while by_processes and not data._processes.are_ready:
        next(batches)
    for _ in range(4):
        next(batches)
    for images, _ in batches:
        yield images


def count(batches: Iterator[np.ndarray], seconds: float) -> float:
    """Returns images a second."""
    next(batches)
    started, images = time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        images += len(next(batches))
    return images / (time.perf_counter() - started)


def count_sleepers(decoders: int, seconds: float) -> float:
    """Returns the images a second of threads that only sleep."""
    done: list[int] = []
    stop = time.perf_counter() + seconds

    def sleep() -> None:
        images = 0
        while time.perf_counter() < stop:
            sleeping.decode()
            sleeping.resize()
            images += 1
        done.append(images)

    threads = [threading.Thread(target=sleep) for _ in range(decoders)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / seconds


def count_bare(records: Path, decoders: int, seconds: float) -> float:
    """Returns the images a second of processes that decode JPEGs from memory and resize them."""
    jpegs = sleeping.list_jpegs(records)
    with multiprocessing.get_context("spawn").Pool(decoders) as pool:
        pool.map(time.sleep, [0.5] * decoders, 1)
        work = functools.partial(sleeping.decode_for, jpegs=jpegs, size=SIZE)
        return sum(pool.map(work, [seconds] * decoders, 1)) / seconds


def count_ranks(records: Path, seconds: float) -> float:
    """Returns the images a second of two processes of torchrun together."""
    script = Path(__file__).parent / "loaders" / "rank.py"
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", script]
    done = subprocess.run(
        [*command, records, str(seconds)], check=True, stdout=subprocess.PIPE, text=True
    )
    return sum(float(line.split()[1]) for line in done.stdout.splitlines() if "rate" in line)


def measure_own(records: Path, seconds: float, by_processes: bool) -> float:
    """Returns the microseconds of this process's time an image when decoding takes none."""
    with sleeping.instead_of_decoding(0):
        batches = read(records, 2, by_processes)
        next(batches)
        used, started, images = time.process_time(), time.perf_counter(), 0
        while time.perf_counter() - started < seconds:
            images += len(next(batches))
        return round(1e6 * (time.process_time() - used) / images, 1)


def main() -> None:
    """Prints a line of JSON for each number of decoders."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("records", type=Path)
    parser.add_argument("--decoders", default="1,2,4,8,16,32")
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--real", action="store_true")
    arguments = parser.parse_args()
    records, seconds = arguments.records, arguments.seconds
    largest: dict[str, int] = {}
    start = decoder_process.start_child

    def start_sleeper(share: int) -> None:
        """Has new processes sleep, too, or do nothing in place of the decoder."""
        decoder_process.start_child = lambda _, arguments, **options: start(
            "sleeping", (share,), **options
        )

    if not arguments.real:
        start_sleeper(1)
    for decoders in map(int, arguments.decoders.split(",")):
        line: dict[str, Any] = {"decoders": decoders}
        if arguments.real:
            limit = count_bare(records, decoders, seconds)
            rates = [count(read(records, decoders, way), seconds) for way in (False, True)]
        else:
            limit = count_sleepers(decoders, seconds)
            with sleeping.instead_of_decoding():
                rates = [count(read(records, decoders, way), seconds) for way in (False, True)]
        line["limit"] = round(limit)
        for name, rate in zip(("threads", "processes"), rates, strict=True):
            line[name] = round(rate / limit, 2)
            if rate >= _ENOUGH * limit:
                largest[name] = decoders
        print(json.dumps(line), flush=True)
    if arguments.real and importlib.util.find_spec("torch"):
        rate, cores = count_ranks(records, seconds), count_cores()
        limit = count_bare(records, cores, seconds)
        line = {"torchrun": 2, "limit": round(limit), "processes": round(rate / limit, 2)}
        print(json.dumps(line), flush=True)
    start_sleeper(0)
    end: dict[str, Any] = {f"{name}_up_to": most for name, most in largest.items()}
    for name, way in (("threads", False), ("processes", True)):
        end[f"{name}_own_us"] = measure_own(records, seconds, way)
    print(json.dumps(end), flush=True)


if __name__ == "__main__":
    main()
