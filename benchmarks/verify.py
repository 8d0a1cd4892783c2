"""How fast darkroom verifies, against a bare loop that reads the same files and hashes them.

    python benchmarks/verify.py [--megabytes 1000] [--record-kilobytes 30] [--pairs 5]

The dataset has random bytes instead of images, with index and commit as a conversion writes them,
and the page cache is warm. Verification and the bare loop (read 1 MiB, SHA-256) run in turn, with
one thread and with one a core. The table shows medians of MB a second and core, by the clock and by
processor time, which other work on the machine disturbs less.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from darkroom.dataset import example
from darkroom.dataset.checksums import sum_bytes
from darkroom.dataset.commit import Dataset, Shard, SplitShards, write_commit
from darkroom.dataset.index import index_schema
from darkroom.dataset.layout import Folders, index_file, shard_file, split_folder
from darkroom.dataset.splits import TRAIN
from darkroom.dataset.tfrecord import RecordWriter
from darkroom.proof.verify import verify

_SHARDS = 8
_BLOCK_BYTES = 1 << 20


def _write_shard(root: Path, number: int, records: int, record_bytes: int) -> Shard:
    rng = random.Random(number)
    file, rows = shard_file(TRAIN, number, _SHARDS), []
    with (root / file).open("wb") as binary:
        writer = RecordWriter(binary)
        for position in range(records):
            image = rng.randbytes(record_bytes)
            key, sha256 = f"{number:016x}{position:016x}", hashlib.sha256(image).hexdigest()
            features = {
                example.IMAGE_FILENAME: f"folder/{key}.jpg".encode(),
                example.IMAGE_FORMAT: b"jpeg",
                example.IMAGE_HEIGHT: 300,
                example.IMAGE_WIDTH: 400,
                example.IMAGE_CHANNELS: 3,
                example.IMAGE_SHA256: sha256.encode(),
                example.IMAGE_SOURCE_ID: key.encode(),
                example.LABEL_NUMBER: 0,
                example.LABEL_TEXT: b"cat",
            }
            writer.write(example.encode_example(features, image), image)
            row = {"key": key, "sha256": sha256, "split": TRAIN, "label": "cat"}
            rows.append({**row, "uri": key, "shard": number, "position": position})
    table = pa.Table.from_pylist(rows, schema=index_schema({}, pa.string()))
    pq.write_table(table, root / "index" / index_file(number, _SHARDS))
    return Shard(file, records, writer.size_bytes, writer.sha256)


def make_dataset(root: Path, num_bytes: int, record_bytes: int) -> None:
    """Writes a dataset of about `num_bytes` with random bytes as images."""
    for folder in (split_folder(TRAIN), "index"):
        (root / folder).mkdir(parents=True)
    records = max(1, num_bytes // record_bytes // _SHARDS)
    shards = tuple(_write_shard(root, n, records, record_bytes) for n in range(_SHARDS))
    (root / "labels.txt").write_text("cat\n")
    total = records * _SHARDS
    features = {example.IMAGE_SOURCE_ID: {"type": "bytes"}}
    splits = {TRAIN: SplitShards(total, shards)}
    plain = Dataset(2, "", {}, "full", features, ("cat",), total, total, 0, 0, splits)
    paths = (root / "index" / name for name in plain.index_files)
    sums = {path.name: sum_bytes(path.read_bytes()) for path in paths}
    write_commit(Folders.of_dataset(str(root)), plain.with_files(), sums, {})


def _hash_file(path: Path) -> None:
    digest = hashlib.sha256()
    buffer = bytearray(_BLOCK_BYTES)
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(buffer):
            digest.update(memoryview(buffer)[:count])


def run_limit(root: Path, threads: int) -> None:
    """Reads and hashes all shards with bare loops."""
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(_hash_file, sorted(root.glob("Split-*/*"))))


def run_verify(root: Path, threads: int) -> None:
    """Runs `darkroom.verify`."""
    result = verify(root, num_threads=threads)
    if not result.is_sound:
        raise SystemExit(f"The dataset is damaged: {result.findings[:3]}")


def time_run(run: Callable[[Path, int], None], root: Path, threads: int) -> tuple[float, float]:
    """Returns the seconds that a run takes: of the clock, and of the processor."""
    started = time.perf_counter(), time.process_time()
    run(root, threads)
    return time.perf_counter() - started[0], time.process_time() - started[1]


def compare(root: Path, threads: int, pairs: int) -> None:
    """Prints one row: MB a second and core of both, their ratio; the same of the processor."""
    megabytes = sum(path.stat().st_size for path in root.glob("Split-*/*")) / 1e6
    cores = min(threads, os.cpu_count() or 1)
    times = [
        (*time_run(run_verify, root, threads), *time_run(run_limit, root, threads))
        for _ in range(pairs)
    ]
    wall, cpu, limit_wall, limit_cpu = map(statistics.median, zip(*times, strict=True))
    ratio = statistics.median(run[2] / run[0] for run in times)
    cpu_ratio = statistics.median(run[3] / run[1] for run in times)
    print(
        f"{threads:>7}{megabytes / wall / cores:>10,.0f}{megabytes / limit_wall / cores:>10,.0f}"
        f"{ratio:>7.2f}{megabytes / cpu:>14,.0f}{megabytes / limit_cpu:>10,.0f}{cpu_ratio:>7.2f}",
        flush=True,
    )


def main() -> None:
    """Makes the dataset and prints the table."""
    parser = argparse.ArgumentParser(description="Time verification against a bare loop.")
    parser.add_argument("--megabytes", type=int, default=1000, help="size of the dataset")
    parser.add_argument("--record-kilobytes", type=float, default=30, help="size of an image")
    parser.add_argument("--pairs", type=int, default=5, help="runs of each, in turn")
    parser.add_argument("--scratch", default=None, help="folder for the dataset")
    arguments = parser.parse_args()
    record_bytes = int(arguments.record_kilobytes * 1000)
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        root = Path(scratch, "dataset")
        make_dataset(root, arguments.megabytes * 1_000_000, record_bytes)
        print(
            f"{arguments.megabytes:,} MB in {_SHARDS} shards, images of "
            f"{arguments.record_kilobytes:g} kB; {os.cpu_count()} cores; MB/s a core"
        )
        header = f"{'darkroom':>10}{'limit':>10}{'ratio':>7}"
        print(f"{'':>7}{'clock':>27}{'processor':>31}")
        print(f"{'threads':>7}{header}    {header}")
        run_verify(root, 1)  # imports everything and warms the page cache
        for threads in sorted({1, os.cpu_count() or 1}):
            compare(root, threads, arguments.pairs)


if __name__ == "__main__":
    main()
