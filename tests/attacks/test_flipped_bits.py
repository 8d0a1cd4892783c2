"""One flipped bit in any file of a dataset: each reader names the file, or does not read it."""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import darkroom
from darkroom.cli import main
from darkroom.errors import DataError

pytestmark = pytest.mark.tensorflow

COMMIT, SUMS, LABELS = "dataset.json", "SHA256SUMS", "labels.txt"
INDEX, SHARD = "index/index-00000-of-00002.parquet", "Split-train/data_tfrecord-00000-of-00001"
REJECTS, LIST = "rejects.parquet", "rejects.jsonl"
FILES = (COMMIT, SUMS, LABELS, INDEX, SHARD, REJECTS, LIST)
# The files of which a reader finds any flipped bit. It reads no others.
FOUND = {
    "verify": set(FILES),
    "load": {COMMIT, LABELS, SHARD},
    "duplicates": {COMMIT, SUMS, INDEX},
    "validate": {COMMIT, SUMS, LABELS, INDEX, REJECTS},
    "inspect": {COMMIT, SUMS, LABELS, INDEX, SHARD},
    "convert": set(FILES),
    "train": {COMMIT, LABELS, SHARD},
}
# Those that are made again from the source.
REPAIRED = {("convert", SHARD)}
# An output with files that darkroom did not write, or that changed, is held.
CODES = {"convert": (1, 4)}
Read = Callable[[Path], int]


# As those of `labelled_set`.
CONVERT = ("--max-rejects", 1.0, "--split-ratios", "80,20,0", "--num-shards", 1)


def run(*arguments: object) -> int:
    return main([str(each) for each in arguments])


def load(root: Path) -> int:
    """Reads all records by `darkroom.load`, as a program of a user does."""
    try:
        data = darkroom.load(root, image_size=8)
        print({name: sum(len(labels) for _, labels in split) for name, split in data.items()})
    except DataError as error:
        print(error)
        return error.exit_code
    return 0


def train(root: Path) -> int:
    folder = root.parent / "training"
    shutil.rmtree(folder, ignore_errors=True)
    options = ("--image-size", "8x8", "--epochs", 1, "--augment", "none", "--batch-size", 8)
    return run("train", "--data", root, "--checkpoint-dir", folder, *options)


READERS: dict[str, Read] = {
    "verify": lambda root: run("verify", root),
    "load": load,
    "duplicates": lambda root: run(
        *("duplicates", root, "--overwrite"),
        *("--output", root.parent / "duplicates.parquet"),
    ),
    "validate": lambda root: run("validate", root, "--max-rejects", 1),
    "inspect": lambda root: run("inspect", root, "--output-dir", root.parent / "look", "-n", 99),
    "convert": lambda root: run(
        "convert", (root.parent / "src").readlink(), "--output-dir", root, *CONVERT
    ),
    "train": train,
}


def flip(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def attack(made: Path, tmp_path: Path, reader: str, tries: int, capsys) -> Counter[str]:
    """Flips bits, and checks what a reader does; returns the number of flips by file."""
    root, counts, rng = tmp_path / "records", Counter(), random.Random(reader)
    (tmp_path / "src").symlink_to(made / "src")
    shutil.copytree(made / "records", root)
    assert READERS[reader](root) == 0, capsys.readouterr()
    expected = capsys.readouterr().out
    for file in FILES:
        for _ in range(tries):
            shutil.copytree(made / "records", root, dirs_exist_ok=True)
            flip(root / file, rng)
            code = READERS[reader](root)
            out, err = capsys.readouterr()
            assert "Traceback" not in out + err, (file, err)
            is_found, is_repaired = file in FOUND[reader], (reader, file) in REPAIRED
            right = CODES.get(reader, (1,)) if is_found and not is_repaired else (0,)
            assert code in right, (file, out, err)
            if is_repaired:
                assert (root / file).read_bytes() == (made / "records" / file).read_bytes()
            if is_found:
                assert file in out + err, (file, out, err)
            elif reader != "train":  # whose times differ
                assert out == expected
            counts[file] += 1
    return counts


@pytest.mark.parametrize("reader", ["verify", "duplicates", "validate", "inspect", "convert"])
def test_a_flipped_bit_is_named_or_not_read(reader, labelled_set, tmp_path, capsys):
    attack(labelled_set, tmp_path, reader, 1, capsys)


@pytest.mark.long
def test_many_flipped_bits(labelled_set, tmp_path, capsys):
    """Prints how many bits of each file were flipped for each reader, and how many it found."""
    tries = int(os.environ.get("DARKROOM_FLIPS", "100"))
    lines = [f"| reader | {' | '.join(FILES)} |", f"| --- |{' ---: |' * len(FILES)}"]
    for reader in READERS:
        (tmp_path / reader).mkdir()
        # A training takes seconds.
        few = max(1, tries // 20) if reader == "train" else tries
        counts = attack(labelled_set, tmp_path / reader, reader, few, capsys)
        cells = [f"{counts[f]} of {counts[f]}" if f in FOUND[reader] else "-" for f in FILES]
        lines.append(f"| {reader} | {' | '.join(cells)} |")
    with capsys.disabled():
        print("\n" + "\n".join(lines))
