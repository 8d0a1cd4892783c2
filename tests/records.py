"""Records that TensorFlow writes, and datasets of such records, for tests of readers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .pictures import encode

Rows = Sequence[tuple[bytes, int]]


def make_rows(count: int, *, size: int = 8, num_classes: int = 2, seed: int = 0) -> Rows:
    """Images with their brightness as label; the first pixel is the number of the row."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        label = number % num_classes
        low = 255 * label // num_classes
        pixels = rng.integers(low, low + 255 // num_classes, (size, size, 3), dtype=np.uint8)
        pixels[0, 0] = number % 256
        rows.append((encode(pixels), label))
    return rows


def make_example(features: Mapping[str, bytes | int]) -> bytes:
    import tensorflow as tf

    example = tf.train.Example()
    for name, value in features.items():
        if isinstance(value, bytes):
            example.features.feature[name].bytes_list.value.append(value)
        else:
            example.features.feature[name].int64_list.value.append(value)
    return example.SerializeToString()


def write_split(
    root: Path, split: str, records: Sequence[bytes], shards: int = 2, suffix: str = ""
) -> list[str]:
    import tensorflow as tf

    folder = root / f"Split-{split}"
    folder.mkdir(parents=True)
    files = []
    for shard in range(shards):
        path = folder / f"data_tfrecord-{shard:05d}-of-{shards:05d}{suffix}"
        with tf.io.TFRecordWriter(str(path), "GZIP" if suffix else "") as writer:
            for record in records[shard::shards]:
                writer.write(record)
        files.append(str(path))
    return files


def commit(root: Path, labels: Sequence[str], counts: Mapping[str, int]) -> None:
    from darkroom.dataset import commit as dataset
    from darkroom.dataset.commit import write_commit
    from darkroom.dataset.layout import Folders

    splits = {}
    for name, records in counts.items():
        paths = sorted((root / f"Split-{name}").iterdir())
        shards = [
            dataset.Shard(
                f"{path.parent.name}/{path.name}",
                len(range(number, records, len(paths))),
                path.stat().st_size,
                hashlib.sha256(path.read_bytes()).hexdigest(),
            )
            for number, path in enumerate(paths)
        ]
        assert sum(shard.records for shard in shards) == records
        splits[name] = dataset.SplitShards(records, tuple(shards))
    total = sum(counts.values())
    features = {"image/class/label": {"type": "int64"}} if labels else {}
    plain = dataset.Dataset(3, "", {}, "full", features, tuple(labels), total, total, 0, 0, splits)
    write_commit(Folders.of_dataset(str(root)), plain.with_files(), {}, {})


@pytest.fixture
def write_dataset(tmp_path: Path) -> Callable[..., Path]:
    """Writes Examples as darkroom does: splits of rows, `labels.txt`, `dataset.json`."""

    def write(splits: Mapping[str, Rows], *args: Any, **options: Any) -> Path:
        return write_records(tmp_path / "dataset", splits, *args, **options)

    return write


@pytest.fixture
def helpers() -> Any:
    """The functions above, for tests that write their own files."""
    import types

    return types.SimpleNamespace(
        encode_png=encode,
        make_rows=make_rows,
        make_example=make_example,
        write_split=write_split,
        commit=commit,
    )


def write_records(
    root: Path,
    splits: Mapping[str, Rows],
    labels: Sequence[str] = ("dark", "light"),
    **options: Any,
) -> Path:
    """Does what `write_dataset` does in a folder of the caller's, for data that tests share."""
    for split, rows in splits.items():
        records = [
            make_example({"image/encoded": image, "image/class/label": label})
            for image, label in rows
        ]
        write_split(root, split, records, **options)
    (root / "labels.txt").write_text("".join(f"{label}\n" for label in labels))
    commit(root, labels, {split: len(rows) for split, rows in splits.items()})
    return root
