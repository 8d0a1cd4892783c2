"""One process of torchrun, which reads as the guide says and prints its images a second.

torchrun --nproc-per-node 2 benchmarks/loaders/rank.py RECORDS [SECONDS]
"""

from __future__ import annotations

import itertools
import sys
import time

import torch.distributed

import darkroom

BATCH, SIZE = 128, 224


def main(records: str, seconds: float) -> None:
    """Reads epoch after epoch, some seconds from the time on when all processes have begun."""
    torch.distributed.init_process_group("gloo")
    data = darkroom.load(
        records,
        image_size=SIZE,
        batch_size=BATCH,
        training=True,
        augment="none",
        framework="torch",
    )
    batches = itertools.chain.from_iterable(itertools.repeat(data["train"].to_loader()))
    started = time.perf_counter()
    while time.perf_counter() - started < seconds:  # its processes start meanwhile
        next(batches)
    torch.distributed.barrier()
    started, images = time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        images += len(next(batches)[0])
    print(f"rate {images / (time.perf_counter() - started):.0f}", flush=True)
    torch.distributed.barrier()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 4)
