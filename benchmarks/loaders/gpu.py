"""Images a second that PyTorch reads, and trains ResNets with, on a machine with a GPU.

    python benchmarks/loaders/gpu.py RECORDS PHOTOGRAPHS [--seconds 15] [--ways "on the GPU"]

RECORDS has only a train split; PHOTOGRAPHS is the folder that it was made of, for torchvision's
`ImageFolder`. Both are read many times, from the page cache. It needs torchvision, and neither
TensorFlow nor Beam. `taskset -c 0-3` gives it four cores.

Each line has a way of reading, with its worker processes, images a second and the cores that were
busy, of which one waits for the GPU; then the same while a network trains. `limit` is the speed of
the training with one batch that stays on the GPU, and `waits` the share of the time in which it
waited for a batch. `on the GPU` is darkroom with device="cuda": its pixels are compared with those
of the CPU, and `jpeg_engine` is the percentage of the time in which the GPU's decoder was busy. It
takes JPEGs that are not progressive.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
import torchvision
import torchvision.transforms.v2
from contract import read_processor
from PIL import Image
from start import repeat_rows
from torch.utils.data import ConcatDataset, DataLoader

import darkroom

BATCH, SIZE, REPEATS = 256, 224, 200
NETWORKS = ("resnet50", "resnet18")
FOLDER, ON_GPU = "ImageFolder", "on the GPU"
Batches = Iterator[tuple[torch.Tensor, torch.Tensor]]


def open_records(records: Path, augment: str, device: str | None = None) -> Any:
    """Returns darkroom's loader."""
    return darkroom.load(
        records,
        image_size=SIZE,
        batch_size=BATCH,
        training=True,
        augment=augment,
        framework="torch",
        device=device,
    )["train"]


def read_records(records: Path, augment: str, workers: int) -> Batches:
    """Yields the batches of darkroom's loader, epoch after epoch; without workers as its guide."""
    return _repeat(open_records(records, augment).to_loader(num_workers=workers))


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


def make_step(network: str) -> Callable[[torch.Tensor, torch.Tensor], None]:
    """Returns a step of the training of a network in bfloat16."""
    model = getattr(torchvision.models, network)().cuda().to(memory_format=torch.channels_last)
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
    stream = torch.cuda.current_stream()
    stream.synchronize()
    started, waited, count, used = time.perf_counter(), 0.0, 0, read_processor()
    while time.perf_counter() - started < seconds:
        before = time.perf_counter()
        images, labels = next(batches)
        waited += time.perf_counter() - before
        step(images, labels)
        # Else the time that the GPU needs would count as waiting. Batches have other streams.
        stream.synchronize()
        count += len(images)
    spent, used = time.perf_counter() - started, read_processor() - used
    found = {"images/s": count / spent, "waits": waited / spent, "cores": used / spent}
    return {name: round(value, 3) for name, value in found.items()}


def watch_engine(seconds: float, found: dict[str, str]) -> None:
    """Notes how busy the JPEG decoder of the GPU is, after some seconds."""
    time.sleep(seconds)
    query = ["nvidia-smi", "--query-gpu=utilization.jpeg", "--format=csv,noheader"]
    with suppress(OSError):
        done = subprocess.run(query, capture_output=True, text=True, check=False)
        found["jpeg_engine"] = (done.stdout + done.stderr).strip()


def compare(records: Path, augment: str) -> dict[str, float]:
    """Returns how far pixels of the GPU are from those of the CPU, in some batches."""
    loaders = (open_records(records, augment, device) for device in ("cuda", None))
    pairs = itertools.islice(zip(*loaders, strict=True), 8)
    distances = [(one.cpu().int() - other.int()).abs() for (one, _), (other, _) in pairs]
    mean = sum(float(each.float().mean()) for each in distances) / len(distances)
    return {"mean": round(mean, 3), "max": max(int(each.max()) for each in distances)}


def main() -> None:
    """Prints a line of JSON for each way."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("records", type=Path)
    parser.add_argument("photographs", type=Path)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--ways", help="parts of the names of ways, with commas")
    arguments = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    versions = {"torch": torch.__version__, "torchvision": torchvision.__version__}
    print(json.dumps({"cores": cores, "gpu": torch.cuda.get_device_name()} | versions), flush=True)
    steps: dict[str, Any] = {"": lambda images, labels: None}
    steps |= {network: make_step(network) for network in NETWORKS}
    one = torch.zeros((BATCH, 3, SIZE, SIZE), dtype=torch.uint8).cuda()
    same = itertools.repeat((one, torch.zeros(BATCH, dtype=torch.int64).cuda()))
    for network in NETWORKS:
        limit = measure(same, steps[network], arguments.seconds)["images/s"]
        print(json.dumps({"network": network, "limit": limit}), flush=True)
    ways = [("darkroom", workers) for workers in (0, 1, 2, 4)] + [(FOLDER, cores), (ON_GPU, 0)]
    wanted = (arguments.ways or ",").split(",")
    ways = [(name, workers) for name, workers in ways if any(each in name for each in wanted)]
    with tempfile.TemporaryDirectory() as scratch:
        rows = 200 * BATCH
        records = repeat_rows(arguments.records, Path(scratch, "records"), rows)
        for augment, (name, workers) in itertools.product(("none", "crop"), ways):
            if name == ON_GPU:
                print(json.dumps({"augment": augment, "pixels": compare(records, augment)}))
                batches = _repeat(open_records(records, augment, "cuda"))
            elif name == FOLDER:
                batches = read_folder(arguments.photographs, augment, workers)
            else:
                batches = read_records(records, augment, workers)
            for network, step in steps.items():
                line = {"way": name, "workers": workers, "augment": augment, "trains": network}
                engine: dict[str, str] = {}
                watch = threading.Thread(target=watch_engine, args=(arguments.seconds / 2, engine))
                watch.start()
                found = measure(batches, step, arguments.seconds)
                watch.join()
                print(json.dumps(line | found | engine), flush=True)
            del batches
    progressive = [
        "progressive" in Image.open(path).info for path in arguments.photographs.rglob("*.jpg")
    ]
    print(json.dumps({"progressive": sum(progressive) / len(progressive)}))


if __name__ == "__main__":
    main()
