"""The start and the memory of `darkroom.load(..., framework="torch")`, by the number of records.

    python benchmarks/loaders/start.py [--rows 600,100000,1000000] [--rounds 5]

Run it with an interpreter that has PyTorch and OpenCV, such as that of `.venv/loaders/
darkroom_torch`. 600 small JPEGs are converted. For more records, the rows of their index are
repeated: so it is as large as that of so many images, of which the same 600 are then read.

Each round is a new process that has imported torch, and nothing of darkroom; files are in the page
cache. `seconds` are those until the first batch of training, with the imports. `beyond` is the
anonymous memory at most, after the first batch until the end of 50 batches, beyond that of the
process with torch and of batches that may be under way. `peak` is the same with what opening takes.
`rows` is `beyond` without that of the fewest records.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import simplejpeg

import darkroom
from darkroom.dataset.commit import read_dataset, write_dataset

_IMAGES = 600
_LOAD = """
import itertools, json, pathlib, sys, threading, time
import torch

def read_mb():
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1000

def watch():
    global peak
    while True:
        peak = max(peak, read_mb())
        time.sleep(0.002)

peak = before = read_mb()
threading.Thread(target=watch, daemon=True).start()
started, used = time.perf_counter(), time.process_time()
import darkroom
data = darkroom.load(sys.argv[1], image_size=64, batch_size=32, training=True, framework="torch")
loader = data["train"]
batches = iter(loader)
images, _ = next(batches)
seconds, used = time.perf_counter() - started, time.process_time() - used
opened, peak = peak, read_mb()
count = sum(1 for _ in itertools.islice(batches, 50))
under_way = images.nbytes * 4 / 1e6  # two ahead, the one that is taken, and the one before
before += under_way
print(json.dumps([seconds, used, peak - before, max(peak, opened) - before]))
"""


def make_records(folder: Path) -> Path:
    """Returns a dataset of small photographs, which it converts."""
    numbers = np.random.default_rng(0)
    source, records = folder / "images", folder / "records"
    for number in range(_IMAGES):
        path = source / f"label {number % 10}" / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = numbers.integers(0, 256, (64, 64, 3), np.uint8)
        path.write_bytes(simplejpeg.encode_jpeg(pixels, 85))
    darkroom.convert(source, records, split_ratios="100/0/0")
    return records


def repeat_rows(records: Path, target: Path, rows: int) -> Path:
    """Writes a dataset whose index has the rows of another many times, in random order."""
    shutil.copytree(records, target)
    dataset = read_dataset(str(target))
    numbers = np.random.default_rng(0)
    shards = []
    for number, (shard, name) in enumerate(zip(dataset.shards, dataset.index_files, strict=True)):
        count = rows * (number + 1) // len(dataset.shards) - rows * number // len(dataset.shards)
        table = pq.read_table(target / "index" / name)
        chosen = numbers.integers(0, table.num_rows, count)
        pq.write_table(table.take(pa.array(chosen)), target / "index" / name)
        shards.append(replace(shard, records=count))
    split = replace(dataset.splits["train"], records=rows, shards=tuple(shards))
    dataset = replace(dataset, rows=rows, written=rows, splits={"train": split})
    write_dataset(str(target), dataset.with_files())
    return target


def _load(records: Path) -> list[float]:
    command = [sys.executable, "-c", _LOAD, str(records)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Makes the datasets, and prints a row for each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", default="600,100000,1000000", help="numbers of records")
    parser.add_argument("--rounds", type=int, default=5, help="number of new processes")
    parser.add_argument("--scratch", default=None, help="folder for the records")
    arguments = parser.parse_args()
    names = "seconds", "of processor", "beyond, MB", "peak, MB"
    print(f"{'records':>10}" + "".join(f"{name:>14}" for name in names) + f"{'rows, MB':>14}")
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        made, least = make_records(Path(scratch)), None
        for rows in map(int, arguments.rows.split(",")):
            records = repeat_rows(made, Path(scratch, str(rows)), rows)
            rounds = [_load(records) for _ in range(arguments.rounds)]
            medians = [statistics.median(values) for values in zip(*rounds, strict=True)]
            least = medians[2] if least is None else least
            cells = [f"{value:14.2f}" for value in medians[:2]]
            cells += [f"{value:14.0f}" for value in (*medians[2:], medians[2] - least)]
            print(f"{rows:>10,}{''.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
