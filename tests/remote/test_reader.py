"""Records that are read from a store by their places, without a copy."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import darkroom
from darkroom import storage
from darkroom.dataset.commit import format_dataset, read_dataset
from darkroom.errors import DataError, TransientStorageError
from darkroom.reader import record_files as reading

pytest.importorskip("cv2")


def upload(folder: Path, root: str) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            storage.write_bytes(f"{root}/{path.relative_to(folder).as_posix()}", path.read_bytes())


def load(source: str | Path, **arguments):
    return darkroom.load(source, image_size=8, batch_size=8, framework="numpy", **arguments)


def test_a_store_is_read_in_blocks_each_once(store, converted_jpegs, monkeypatch):
    proxy, bucket = store
    upload(converted_jpegs, f"{bucket}/records")
    local = list(load(converted_jpegs)["train"])
    remote = load(f"{bucket}/records", stage=False, training=True)["train"]
    assert remote.state_dict()["order"] == "window"
    monkeypatch.setattr(reading, "_BLOCK_BYTES", 1 << 10)
    proxy.requests.clear()
    labels = np.concatenate([labels for _, labels in remote])
    assert sorted(labels) == sorted(np.concatenate([labels for _, labels in local]))
    sizes = [os.path.getsize(path) for path in (converted_jpegs / "Split-train").iterdir()]
    blocks = sum(-(-size // (1 << 10)) for size in sizes)
    # A request for each block, and one or two for each file.
    assert blocks <= proxy.count("Split-train") <= blocks + 2 * len(sizes)


def test_what_a_store_does_wrong_is_said(store, converted_jpegs):
    proxy, bucket = store
    upload(converted_jpegs, f"{bucket}/records")
    loader = load(f"{bucket}/records", stage=False)["train"]
    [first, *_] = sorted(path.name for path in (converted_jpegs / "Split-train").iterdir())
    proxy.fail("Split-train", 503)
    with pytest.raises(TransientStorageError):
        list(loader)
    proxy.faults.clear()
    assert len(list(loader)) == 4
    storage.delete_file(f"{bucket}/records/Split-train/{first}")
    with pytest.raises(DataError, match=f"{first} is missing"):
        list(loader)


def test_a_copy_that_is_replaced_in_a_store_is_never_mixed(store, converted_jpegs):
    _, bucket = store
    root = f"{bucket}/records"
    upload(converted_jpegs, root)
    images = load(root, stage=False)["train"].images
    batches = iter(load(root, stage=False)["train"])
    images[0], next(batches)
    other = replace(read_dataset(str(converted_jpegs)), options={}).with_fingerprint()
    storage.write_bytes(f"{root}/dataset.json", format_dataset(other).encode())
    for read in (lambda: images[-1], lambda: list(batches)):
        with pytest.raises(DataError, match="was replaced while it was read"):
            read()
