"""The reader of dataset.json: any bytes are a commit with a right fingerprint, or a DataError."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import atheris
import harness

with atheris.instrument_imports(include=["darkroom"]):
    from darkroom.dataset import commit as datasets
    from darkroom.dataset.opening import check_shard_files
    from darkroom.errors import DataError

_FOLDER = tempfile.TemporaryDirectory(prefix="fuzz-")
_PATH = Path(_FOLDER.name, "dataset.json")


def check(data: bytes) -> None:
    read(data)
    signed = sign(data)
    if signed is not None:
        read(signed)


def read(data: bytes) -> None:
    _PATH.write_bytes(data)
    try:
        dataset = datasets.read_dataset(_FOLDER.name)
        check_shard_files(_FOLDER.name, dataset)
    except DataError:
        return
    assert dataset.with_fingerprint() == dataset
    assert not dataset.shards, "the folder holds none"


def sign(data: bytes) -> bytes | None:
    """Returns a commit with the fingerprint that fits: what can only be nonsense, not damage."""
    try:
        fields = json.loads(data)
        del fields["fingerprint"]
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        return json.dumps({**fields, "fingerprint": sha256}).encode()
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def make_seeds() -> Iterator[bytes]:
    shards = (datasets.Shard("Split-train/data_tfrecord-00000-of-00001", 2, 9, "0" * 64),)
    splits = {"train": datasets.SplitShards(2, shards)}
    features = {"image/encoded": {"type": "bytes"}}
    whole = datasets.Dataset(
        3, "", {"checks": "full", "seed": 0}, "full", features, ("a", "b"), 3, 2, 1, 0, splits
    )
    empty = datasets.Dataset(2, "", {}, "full", {}, (), 0, 0, 0, 0, {})
    for dataset in (whole.with_files(), empty.with_files(), whole.with_fingerprint()):
        datasets.write_dataset(_FOLDER.name, dataset)
        yield _PATH.read_bytes()
    fields = dataclasses.asdict(whole)
    for file in (None, 7, {}, "../data"):
        fields["splits"]["train"]["shards"][0]["file"] = file
        yield json.dumps(fields).encode()


if __name__ == "__main__":
    harness.fuzz(
        check, make_seeds(), (b'"splits": ', b'"shards": ', b"null", b"[]", b"{}", b"1e400")
    )
