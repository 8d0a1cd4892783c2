"""Grain on ArrayRecord: indices shuffled globally, one worker process for each core."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import contract
import grain
import numpy as np
from array_record.python.array_record_module import ArrayRecordWriter
from opencv_pixels import crop_center, crop_randomly

_SHARDS = 8
_LABEL_BYTES = 8


def write(photographs: Path, target: Path) -> None:
    """Writes label and bytes of the files, one image in each group, as Grain asks for."""
    paths = sorted(photographs.rglob("*.jpg"))
    labels = {name: number for number, name in enumerate(sorted({p.parent.name for p in paths}))}
    target.mkdir()
    for shard in range(_SHARDS):
        name = f"images-{shard:05d}-of-{_SHARDS:05d}.array_record"
        writer = ArrayRecordWriter(str(target / name), "group_size:1")
        for path in paths[shard::_SHARDS]:
            label = labels[path.parent.name].to_bytes(_LABEL_BYTES, "little")
            writer.write(label + path.read_bytes())
        writer.close()


def _crop_randomly(record: bytes, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    return crop_randomly(record[_LABEL_BYTES:], rng), _parse_label(record)


def _crop_center(record: bytes) -> tuple[np.ndarray, int]:
    return crop_center(record[_LABEL_BYTES:]), _parse_label(record)


def _parse_label(record: bytes) -> int:
    return int.from_bytes(record[:_LABEL_BYTES], "little")


def read(target: Path, use: str, cores: int) -> Iterator[np.ndarray]:
    """Yields an epoch; each worker reads every n-th batch."""
    files = sorted(str(path) for path in target.glob("*.array_record"))
    data = grain.MapDataset.source(grain.sources.ArrayRecordDataSource(files)).seed(contract.SEED)
    data = data.shuffle().random_map(_crop_randomly) if use == "train" else data.map(_crop_center)
    options = grain.multiprocessing.MultiprocessingOptions(num_workers=cores)
    for images, _ in data.batch(contract.BATCH).to_iter_dataset().mp_prefetch(options):
        yield images


if __name__ == "__main__":
    contract.run(write, read)
