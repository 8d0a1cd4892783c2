"""Local copies of remote datasets."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path

import pytest

import darkroom
from darkroom import storage
from darkroom.data import cache
from darkroom.data.cache import stage_dataset
from darkroom.dataset.commit import Dataset, Shard, SplitShards, read_dataset, write_commit
from darkroom.dataset.layout import Folders
from darkroom.errors import DataError, StorageError, TransientStorageError
from darkroom.proof.verify import verify
from darkroom.storage import copies
from darkroom.storage.user_cache import find_cache

from ..trees import read_files

CONTENTS = {
    "Split-train/data_tfrecord-00000-of-00002": b"first" * 1000,
    "Split-train/data_tfrecord-00001-of-00002": b"second" * 1000,
    "Split-test/data_tfrecord-00000-of-00001": b"third" * 1000,
}


def write_remote(root: str) -> Dataset:
    """Writes a dataset of made-up shards."""
    splits = {}
    for name in ("train", "test"):
        shards = tuple(
            Shard(file, 1, len(data), hashlib.sha256(data).hexdigest())
            for file, data in CONTENTS.items()
            if f"-{name}/" in file
        )
        splits[name] = SplitShards(len(shards), shards)
    dataset = Dataset(
        format_version=3,
        fingerprint="",
        options={},
        checks="full",
        features={},
        labels=("cat",),
        rows=3,
        written=3,
        rejected=0,
        deduplicated=0,
        splits=splits,
    ).with_files()
    for file, data in CONTENTS.items():
        storage.write_bytes(f"{root}/{file}", data)
    write_commit(Folders.of_dataset(root), dataset, {}, {})
    return dataset


@pytest.fixture
def dataset(s3) -> Dataset:
    return write_remote("s3://photos/data")


def test_a_dataset_is_copied_once(store, tmp_path):
    proxy, root = store
    dataset = write_remote(f"{root}/data")
    folder = stage_dataset(f"{root}/data", dataset, tmp_path / "cache")
    assert folder == f"{tmp_path}/cache/{dataset.fingerprint}"
    names = ("dataset.json", "SHA256SUMS")
    beside = {name: storage.read_bytes(f"{root}/data/{name}") for name in names}
    assert read_files(folder, ".lock") == {**CONTENTS, **beside, "labels.txt": b"cat\n"}
    assert verify(folder).is_sound
    assert read_dataset(folder) == dataset
    proxy.requests.clear()
    assert stage_dataset(f"{root}/data", dataset, tmp_path / "cache") == folder
    assert proxy.requests == []


def test_a_short_or_missing_file_is_copied_again(s3, dataset, tmp_path):
    folder = Path(stage_dataset("s3://photos/data", dataset, tmp_path))
    names = list(CONTENTS)
    os.truncate(folder / names[0], 10)
    (folder / names[1]).unlink()
    (folder / ".parts").mkdir()
    (folder / ".parts" / names[0].replace("/", "-")).write_bytes(b"what a killed process left")
    s3.requests.clear()
    stage_dataset("s3://photos/data", dataset, tmp_path)
    assert {name: (folder / name).read_bytes() for name in names} == CONTENTS
    assert s3.count("GET") == 2
    assert not (folder / ".parts").exists()


def test_nothing_is_deleted_or_emptied_that_the_cache_did_not_write(s3, dataset, tmp_path):
    folder = tmp_path / "cache" / dataset.fingerprint
    (folder / ".parts").mkdir(parents=True)
    (folder / ".parts" / "thesis.txt").write_bytes(b"mine")
    stage_dataset("s3://photos/data", dataset, tmp_path / "cache")
    assert (folder / ".parts" / "thesis.txt").read_bytes() == b"mine"

    (tmp_path / "thesis.txt").write_bytes(b"mine")
    (folder / ".lock").unlink()
    (folder / ".lock").symlink_to(tmp_path / "thesis.txt")
    with pytest.raises(StorageError, match=r"cannot be written.*\.lock"):
        stage_dataset("s3://photos/data", dataset, tmp_path / "cache")
    assert (tmp_path / "thesis.txt").read_bytes() == b"mine"


def test_files_that_differ_from_the_commit_are_not_accepted(s3, dataset, tmp_path):
    name = "Split-train/data_tfrecord-00001-of-00002"
    storage.write_bytes(f"s3://photos/data/{name}", b"SECOND" * 1000)
    with pytest.raises(DataError, match=rf"{name} is damaged: 6000 bytes with SHA-256 .*expected"):
        stage_dataset("s3://photos/data", dataset, tmp_path)
    folder = tmp_path / dataset.fingerprint
    assert not (folder / name).exists()
    assert not (folder / "dataset.json").exists()
    storage.delete(f"s3://photos/data/{name}")
    with pytest.raises(DataError, match=rf"{name} is missing"):
        stage_dataset("s3://photos/data", dataset, tmp_path)


def test_a_transfer_that_was_damaged_once_is_repeated(s3, dataset, tmp_path, monkeypatch):
    real = storage.open_read
    damaged: list[str] = []

    def open_read(path: str):
        file = real(path)
        if not damaged:
            damaged.append(path)
            file.read(1)
        return file

    monkeypatch.setattr("darkroom.data.cache.storage.open_read", open_read)
    monkeypatch.setattr(cache, "_THREADS", 1)
    folder = stage_dataset("s3://photos/data", dataset, tmp_path)
    assert damaged
    assert {name: (Path(folder) / name).read_bytes() for name in CONTENTS} == CONTENTS


def test_a_store_that_fails_leaves_complete_files(s3, dataset, tmp_path):
    s3.fail("GET /photos/data/Split-test", "cut")
    with pytest.raises(TransientStorageError, match=r"Split-test/.* failed 4 times"):
        stage_dataset("s3://photos/data", dataset, tmp_path)
    s3.reset()
    folder = stage_dataset("s3://photos/data", dataset, tmp_path)
    assert s3.count("GET") == 1
    assert {name: (Path(folder) / name).read_bytes() for name in CONTENTS} == CONTENTS


def test_two_users_at_the_same_time_copy_once(s3, dataset, tmp_path):
    found = []
    users = [
        threading.Thread(
            target=lambda: found.append(stage_dataset("s3://photos/data", dataset, tmp_path))
        )
        for _ in range(4)
    ]
    s3.requests.clear()
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert found == [f"{tmp_path}/{dataset.fingerprint}"] * 4
    assert s3.count("GET") == len(CONTENTS)


def test_the_cache_folder_comes_from_argument_variable_or_desktop_rules(monkeypatch, tmp_path):
    monkeypatch.delenv("DARKROOM_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/someone")
    assert find_cache() == "/home/someone/.cache/darkroom"
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert find_cache() == "/caches/darkroom"
    monkeypatch.setenv("DARKROOM_CACHE", "/fast/disk")
    assert find_cache() == "/fast/disk"
    assert find_cache(tmp_path) == str(tmp_path)
    monkeypatch.delenv("DARKROOM_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    with pytest.raises(StorageError, match=r"no home folder\. Choose one with cache_dir"):
        find_cache()


def test_a_cache_that_cannot_be_written_says_how_to_choose_another(dataset, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match=r"cannot be written: .*DARKROOM_CACHE") as caught:
        stage_dataset("s3://photos/data", dataset, tmp_path / "file")
    assert caught.value.exit_code == 3


@pytest.mark.tensorflow
def test_load_reads_a_remote_dataset(s3, converted_jpegs, tmp_path, monkeypatch):
    pytest.importorskip("tensorflow")
    copies.copy_folder(str(converted_jpegs), "s3://photos/data")
    monkeypatch.setenv("DARKROOM_CACHE", str(tmp_path / "cache"))
    for _ in range(2):
        s3.requests.clear()
        loaded = darkroom.load("s3://photos/data", image_size=(9, 7), batch_size=40)
        images = [image for name in loaded for batch, _ in loaded[name] for image in batch.numpy()]
        assert len(images) == 40
    # The second time, only the commit is read.
    assert all("dataset.json" in line for line in s3.requests)
