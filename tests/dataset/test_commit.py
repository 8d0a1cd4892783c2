"""The commit: which ones cannot be read, and how files are compared with it."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from darkroom.dataset.commit import (
    Dataset,
    Shard,
    SplitShards,
    find_dataset,
    read_dataset,
    write_dataset,
)
from darkroom.dataset.opening import check_shard_files, open_dataset
from darkroom.errors import DataError


def _make(*files: str, name: str = "train") -> Dataset:
    shards = tuple(Shard(file, 1, 3, "0" * 64) for file in files)
    splits = {name: SplitShards(len(files), shards)}
    rows = len(files)
    return Dataset(3, "", {}, "full", {}, ("ä", "b"), rows, rows, 0, 0, splits).with_files()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with two shards of three bytes and their commit."""
    (tmp_path / "Split-train").mkdir()
    for name in "ab":
        (tmp_path / "Split-train" / name).write_bytes(b"abc")
    (tmp_path / "labels.txt").write_text("ä\nb\n", "utf-8")
    write_dataset(str(tmp_path), _make("Split-train/a", "Split-train/b"))
    return tmp_path


def test_a_commit_is_read_as_written(root):
    dataset = read_dataset(str(root))
    assert dataset == _make("Split-train/a", "Split-train/b")
    check_shard_files(str(root), dataset)
    assert find_dataset(str(root)) == dataset


def test_a_flipped_bit_is_an_error_or_changes_nothing(root):
    path = root / "dataset.json"
    data, expected = path.read_bytes(), read_dataset(str(root))
    rng = random.Random(1)
    refused = 0
    for _ in range(300):
        damaged = bytearray(data)
        damaged[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            assert read_dataset(str(root)) == expected
        except DataError as error:
            refused += "dataset.json is damaged" in str(error)
    assert refused > 290


@pytest.mark.parametrize("text", ["", "[]", "null", "3", '{"labels": 1}', '{"splits": []}', "{"])
def test_a_file_that_is_not_a_commit_is_an_error(root, text):
    (root / "dataset.json").write_text(text)
    with pytest.raises(DataError, match="damaged"):
        read_dataset(str(root))


def test_another_format_is_an_error(root):
    dataset = replace(_make("Split-train/a"), format_version=2)
    write_dataset(str(root), dataset.with_fingerprint())
    with pytest.raises(DataError, match="has format 2, expected 3"):
        read_dataset(str(root))


@pytest.mark.parametrize(
    "files",
    [
        ("Split-eval/a",),
        ("Split-train/../../a",),
        ("Split-train/..",),
        ("/etc/passwd",),
        ("Split-train/",),
        ("a",),
        ("Split-train/a", "Split-train/a"),
    ],
)
def test_shards_outside_their_split_or_named_twice_are_an_error(root, files):
    write_dataset(str(root), _make(*files))
    with pytest.raises(DataError, match="outside their splits, or a file twice"):
        read_dataset(str(root))


def test_a_split_is_a_name_and_not_a_path(root):
    write_dataset(str(root), _make("Split-train/../x/a", name="train/../x"))
    with pytest.raises(DataError, match="outside their splits"):
        read_dataset(str(root))


def test_files_match_the_commit_by_name_and_size(root):
    dataset = read_dataset(str(root))
    shard = root / "Split-train" / "a"
    for data in (b"ab", b"abcd"):
        shard.write_bytes(data)
        with pytest.raises(DataError, match=rf"{shard} is damaged: {len(data)} bytes, expected 3"):
            check_shard_files(str(root), dataset)
    shard.unlink()
    with pytest.raises(DataError, match=r"shards are missing: \['a'\]"):
        check_shard_files(str(root), dataset)
    shard.write_bytes(b"abc")
    (root / "Split-train" / "c").touch()
    with pytest.raises(DataError, match=r"does not name: \['c'\]"):
        check_shard_files(str(root), dataset)
    (root / "Split-train" / "c").unlink()
    (root / "Split-new").mkdir()
    with pytest.raises(DataError, match=r"does not name: \['Split-new'\]"):
        check_shard_files(str(root), dataset)


@pytest.mark.parametrize("mark", ["labels.txt", ".attempt", "index", "rejects.parquet"])
def test_an_unfinished_conversion_is_an_error(root, mark):
    (root / "dataset.json").unlink()
    (root / "labels.txt").unlink()
    assert find_dataset(str(root)) is None
    (root / mark).mkdir()
    with pytest.raises(DataError, match=rf"it has {mark} but no dataset.json"):
        find_dataset(str(root))
    with pytest.raises(DataError, match="is not a dataset"):
        read_dataset(str(root))


def _cut_commit(root):
    (root / "dataset.json").write_bytes(b"{")


@pytest.mark.parametrize(
    "damage",
    [
        _cut_commit,
        lambda root: (root / "labels.txt").write_text("other\n"),
        lambda root: (root / "Split-train" / "a").write_bytes(b"ab"),
        lambda root: (root / "Split-train" / "a").unlink(),
        lambda root: (root / "Split-train" / "c").touch(),
        lambda root: (root / "Split-other").mkdir(),
    ],
)
def test_the_hint_of_any_damage_names_the_folder_to_verify(root, damage):
    damage(root)
    with pytest.raises(DataError, match="is damaged") as caught:
        open_dataset(str(root))
    assert caught.value.hint.startswith(f"List all faults with: darkroom verify {root}. ")
