"""Images a second that PyTorch reads, and trains ResNet-50 with, on a machine with a GPU.

    python benchmarks/loaders/gpu.py RECORDS PHOTOGRAPHS [--seconds 15]

RECORDS has only a train split; PHOTOGRAPHS is the folder that it was made of, for torchvision's
`ImageFolder`. Both are read many times, from the page cache. It needs torchvision, and neither
TensorFlow nor Beam.

Each line has a way of reading, with its worker processes and images a second; then the same while
ResNet-50 trains. `limit` is the speed of the training with one batch that stays on the GPU, and
`waits` the share of the time in which it waited for a batch.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torchvision
import torchvision.transforms.v2
from start import repeat_rows
from torch.utils.data import ConcatDataset, DataLoader

import darkroom

BATCH, SIZE, REPEATS = 256, 224, 200
Batches = Iterator[tuple[torch.Tensor, torch.Tensor]]


def read_records(records: Path, augment: str, workers: int) -> Batches:
    """Yields the batches of darkroom's loader as its guide says, epoch after epoch."""
    data = darkroom.load(
        records,
        image_size=SIZE,
        batch_size=BATCH,
        training=True,
        augment=augment,
        framework="torch",
    )
    return _repeat(
        DataLoader(
            data["train"],
            batch_size=None,
            num_workers=workers,
            pin_memory=True,
            persistent_workers=workers > 0,
        )
    )


def read_folder(photographs: Path, augment: str, workers: int) -> Batches:
    """Yields the batches of torchvision's `ImageFolder`."""
    v2 = torchvision.transforms.v2
    steps = [v2.Resize((SIZE, SIZE)) if augment == "none" else v2.RandomResizedCrop(SIZE)]
    data = torchvision.datasets.ImageFolder(
        str(photographs), v2.Compose([*steps, v2.PILToTensor()])
    )
    many: Any = ConcatDataset([data] * REPEATS)
    return _repeat(
        DataLoader(many, BATCH, shuffle=True, drop_last=True, num_workers=workers, pin_memory=True)
    )


def _repeat(loader: Any) -> Batches:
    while True:
        yield from loader


def make_step() -> Callable[[torch.Tensor, torch.Tensor], None]:
    """Returns a step of the training of ResNet-50 in bfloat16."""
    model = torchvision.models.resnet50().cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, 0.9)

    def step(images: torch.Tensor, labels: torch.Tensor) -> None:
        images = images.cuda(non_blocking=True).float().div(255)
        with torch.autocast("cuda", torch.bfloat16):
            result = model(images.contiguous(memory_format=torch.channels_last))
            loss = torch.nn.functional.cross_entropy(result, labels.cuda(non_blocking=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def measure(
    batches: Batches, step: Callable[[torch.Tensor, torch.Tensor], None], seconds: float
) -> dict[str, float]:
    """Returns images a second, and the share of waiting, after some batches to warm up."""
    for images, labels in itertools.islice(batches, 12):
        step(images, labels)
    torch.cuda.synchronize()
    started, waited, count = time.perf_counter(), 0.0, 0
    while time.perf_counter() - started < seconds:
        before = time.perf_counter()
        images, labels = next(batches)
        waited += time.perf_counter() - before
        step(images, labels)
        # Else the time that the GPU needs would count as waiting.
        torch.cuda.synchronize()
        count += len(images)
    spent = time.perf_counter() - started
    return {"images/s": round(count / spent), "waits": round(waited / spent, 3)}


def main() -> None:
    """Prints a line of JSON for each way."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("records", type=Path)
    parser.add_argument("photographs", type=Path)
    parser.add_argument("--seconds", type=float, default=15)
    arguments = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    print(json.dumps({"cores": cores, "gpu": torch.cuda.get_device_name()}), flush=True)
    step = make_step()
    one = torch.zeros((BATCH, 3, SIZE, SIZE), dtype=torch.uint8).cuda()
    same = itertools.repeat((one, torch.zeros(BATCH, dtype=torch.int64).cuda()))
    print(json.dumps({"limit": measure(same, step, arguments.seconds)["images/s"]}), flush=True)
    ways = [("darkroom", workers) for workers in (0, 1, 2, 4)] + [("ImageFolder", cores)]
    with tempfile.TemporaryDirectory() as scratch:
        rows = 200 * BATCH
        records = repeat_rows(arguments.records, Path(scratch, "records"), rows)
        for augment, (name, workers), trains in itertools.product(
            ("none", "crop"), ways, (False, True)
        ):
            read, source = read_records, records
            if name == "ImageFolder":
                read, source = read_folder, arguments.photographs
            batches = read(source, augment, workers)
            found = measure(
                batches, step if trains else lambda images, labels: None, arguments.seconds
            )
            line = {"way": name, "workers": workers, "augment": augment, "trains": trains}
            print(json.dumps(line | found), flush=True)
            del batches


if __name__ == "__main__":
    main()
