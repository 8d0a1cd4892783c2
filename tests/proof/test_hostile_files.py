"""Files beside the shards, whatever is in them, are checked in bounded memory and time."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from darkroom.dataset.checksums import read_sums, sum_bytes, write_sums
from darkroom.dataset.index import read_index
from darkroom.proof.verify import verify

SIDE_FILES = (
    "SHA256SUMS",
    "dataset.json",
    "index/index-00000-of-00002.parquet",
    "labels.txt",
    "rejects.jsonl",
    "rejects.parquet",
)
# The process alone takes about half of it.
_MEMORY = 1 << 30
_VERIFY = """
import json, resource, sys
from darkroom.proof.verify import verify
import pyarrow.parquet
with open("/proc/self/status") as status:
    [size] = [int(line.split()[1]) << 10 for line in status if line.startswith("VmSize")]
resource.setrlimit(resource.RLIMIT_AS, (size + int(sys.argv[1]), size + int(sys.argv[1])))
for root in sys.argv[2:]:
    print(json.dumps(verify(root, num_threads=1).to_dict()["findings"]))
"""


@pytest.fixture
def root(labelled_set, tmp_path) -> Path:
    return Path(shutil.copytree(labelled_set / "records", tmp_path / "data"))


def _verify_in_little_memory(roots: Sequence[Path]) -> list[list[dict[str, str]]]:
    """Returns what `verify` finds in each dataset, in a process that can have a gigabyte."""
    command = [sys.executable, "-c", _VERIFY, f"{_MEMORY}", *roots]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def _make_sparse(path: Path) -> None:
    os.truncate(path, 40 << 30)


def _link_to_zeros(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def _make_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


HARMS = (_make_sparse, _link_to_zeros, _make_fifo, _make_folder)


def test_a_side_file_that_has_no_end_or_is_not_a_file_is_named(root: Path, tmp_path: Path):
    names, roots = [], []
    for name, harm in itertools.product(SIDE_FILES, HARMS):
        is_commit = name == "dataset.json" and harm is not _make_sparse
        if not is_commit:
            names.append(name)
            roots.append(tmp_path / f"{len(roots)}")
            shutil.copytree(root, roots[-1])
            harm(roots[-1] / name)
    found = _verify_in_little_memory(roots)
    for name, path, findings in zip(names, roots, found, strict=True):
        assert name in {finding["path"] for finding in findings}, (path, findings)


@pytest.mark.parametrize("harm", [_link_to_zeros, _make_fifo, _make_folder])
def test_a_commit_that_is_not_a_file_cannot_be_read(root: Path, harm: Callable[[Path], None]):
    harm(root / "dataset.json")
    with pytest.raises(OSError, match=r"dataset\.json"):
        verify(root)


def test_a_small_index_of_many_rows_is_not_decoded(root: Path):
    """Ten million equal rows are a few kilobytes, until they are decoded."""
    path = root / "index" / "index-00000-of-00002.parquet"
    rows = read_index(str(root / "index")).slice(0, 1)
    numbers = pa.repeat(pa.scalar(0, pa.int32()), 10_000_000)
    names = ("key", "sha256", "split", "label", "shard", "position")
    columns = [pa.DictionaryArray.from_arrays(numbers, rows[n].combine_chunks()) for n in names]
    pq.write_table(pa.table(columns, names=names), path, compression="zstd")
    assert path.stat().st_size < 1_000_000  # versions of pyarrow differ
    sums = read_sums(str(root))
    write_sums(str(root), {**sums, f"index/{path.name}": sum_bytes(path.read_bytes())})
    [[finding]] = _verify_in_little_memory([root])
    assert finding["path"] == f"index/{path.name}"
    assert "has 10,000,000 rows, expected " in finding["what"]
