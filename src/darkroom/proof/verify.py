"""`darkroom.verify`: is a dataset, bit for bit, as it was committed?

A TFRecord file contains neither its number of records nor the number of shards. So a reader does
not notice that a file was cut between two records, or that one is missing. `dataset.json` has both
numbers.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from darkroom import storage
from darkroom.dataset.commit import Dataset, Shard, format_dataset, read_output
from darkroom.dataset.layout import DATASET_FILE, split_folder
from darkroom.dataset.named import find_named
from darkroom.dataset.opening import list_split_folders, read_unchanged
from darkroom.errors import DataError
from darkroom.options.checks import MOST_THREADS, check_count
from darkroom.proof.findings import (
    COMMIT,
    EXTRA,
    FILE_HINTS,
    UNREADABLE,
    FileFinding,
    compare_shards,
    explain_commit,
    format_findings,
    is_missing_commit,
)
from darkroom.proof.index import IndexCheck
from darkroom.proof.shards import IndexEntry, ShardDigest, digest_shard
from darkroom.proof.sums import check_sums
from darkroom.proof.tables import check_labels, check_tables, has_rejects
from darkroom.runtime import progress
from darkroom.runtime.machine import count_cores
from darkroom.runtime.result import BAD, GOOD, Fact, Outcome, Result, list_facts
from darkroom.runtime.text import format_count, make_visible

_MAX_LINE = 1000
# A shorter time says nothing about the speed of the disk.
_LEAST_SECONDS = 1.0


@dataclass(frozen=True, repr=False)
class VerificationResult(Result):
    """The result of `verify`.

    Attributes:
        directory: The dataset.
        findings: Everything that is wrong; empty for a sound dataset.
        fingerprint: Fingerprint of the commit; empty without a valid commit.
        records: Number of records in the commit.
        files: Number of shards that were read.
        bytes: Size of these shards.
        seconds: Duration.
        has_index: Whether the record index is in the folder, and was checked.
        has_rejects: Whether the rejects are listed, and were checked.
    """

    directory: str
    findings: tuple[FileFinding, ...]
    fingerprint: str = ""
    records: int = 0
    files: int = 0
    bytes: int = 0
    seconds: float = 0.0
    has_index: bool = False
    has_rejects: bool = False

    @property
    def is_sound(self) -> bool:
        """Whether everything could be read and is as it was committed."""
        return not self.findings

    @property
    def is_damaged(self) -> bool:
        """Whether something is wrong besides files that cannot be read."""
        return any(finding.kind != UNREADABLE for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Returns the result as values for JSON."""
        return {"sound": self.is_sound, **asdict(self)}

    def __repr__(self) -> str:
        return (
            f"VerificationResult({self.directory!r}, is_sound={self.is_sound}, "
            f"findings={len(self.findings):,}, records={self.records:,}, files={self.files:,}, "
            f"bytes={self.bytes:,})"
        )

    def describe(self) -> Outcome:
        """Returns what it says to people: all findings, then the counts."""
        findings = [
            Fact(each.kind, f"{make_visible(str(each), _MAX_LINE)}\n{each.hint}")
            for each in self.findings
        ]
        state = "sound" if self.is_sound else "DAMAGED"
        title, rows = f"The dataset is {state}", [findings]
        if any(map(is_missing_commit, self.findings)):
            title = "This is not a dataset"
        if self.fingerprint:
            shards = format_count(self.files, "shard")
            speed = ""
            if self.seconds >= _LEAST_SECONDS:
                speed = f" ({self.bytes / 1e6 / self.seconds:,.1f} MB/s)"
            facts = {
                "Read": f"{shards}, {self.bytes:,} bytes in {self.seconds:.1f} s{speed}",
                "Records": f"{self.records:,}",
                "Index": "checked" if self.has_index else "not checked",
                "Rejects": "checked" if self.has_rejects else "not checked",
                "Dataset": f"{self.directory} is {state}",
            }
            rows.append(list_facts(facts))
        return Outcome(title, rows, GOOD if self.is_sound else BAD)


@storage.report_failures
@progress.shown
def verify(
    directory: str | os.PathLike[str], *, num_threads: int | None = None
) -> VerificationResult:
    """Reads a whole dataset and compares it with its commit.

    Args:
        directory: A folder that `darkroom.convert` wrote, or an Examples artifact of darkroom.
        num_threads: Number of files that are read at the same time; one for each core if None.

    Returns:
        Everything that was found, not only the first fault.

    Raises:
        UsageError: `directory` is not a path, or `num_threads` is wrong.
        OSError: `dataset.json` cannot be read. Any other file that cannot be read is a finding.
    """
    if num_threads is not None:
        check_count("num_threads", num_threads, 1, MOST_THREADS)
    output = find_named(directory)
    return read_unchanged([output], lambda: _verify_once(output, num_threads))


def _verify_once(output: str, num_threads: int | None) -> VerificationResult:
    """Verifies what is there now; the caller repeats it if the dataset was replaced meanwhile."""
    started = time.perf_counter()
    try:
        root, dataset = read_output(output)
    except DataError as error:
        return VerificationResult(output, (explain_commit(output, error),))
    with progress.step("Verifying"):
        sums, findings = check_sums(root, dataset)
        index = IndexCheck(root, dataset, sums)
        # Every file in these folders is read as data, whether the commit names it or not.
        folders = list_split_folders(root)
        files = [
            f"{folder}/{name}"
            for folder in folders
            for name in storage.list_folder(storage.join(root, folder))
        ]
        # This reads the index, too. What it finds there is among what `find_all` returns below.
        digests = _digest_files(root, dataset, files, index.read_entries, num_threads)
        named = _get_shards(dataset)
        shards = compare_shards(root, named, digests)
        findings += [
            *_check_commit(root, dataset),
            *_find_empty(folders, files, dataset),
            *shards,
            *check_labels(root, dataset),
            *index.find_all(digests, {finding.path for finding in shards}),
            *check_tables(root, sums),
        ]
    found = (digests[file] for file in named if file in digests)
    read = [digest for digest in found if isinstance(digest, ShardDigest)]
    return VerificationResult(
        root,
        tuple(findings),
        dataset.fingerprint,
        dataset.written,
        len(read),
        sum(digest.size_bytes for digest in read),
        time.perf_counter() - started,
        index.is_here,
        has_rejects(sums),
    )


def check_hashes(root: str, dataset: Dataset, files: Sequence[str] | None = None) -> None:
    """Checks the SHA-256 of shards.

    Args:
        root: The dataset.
        dataset: Its commit.
        files: The shards, as the commit names them; all if None.

    Raises:
        DataError: Shards are not as they were committed; the first ten are named.
        OSError: A shard cannot be read.
    """
    shards = _get_shards(dataset)
    chosen = {file: shards[file] for file in (shards if files is None else files)}
    with progress.step("Verifying"):
        digests = _digest_files(root, dataset, list(chosen))
        findings = compare_shards(root, chosen, digests)
    for digest in digests.values():
        if isinstance(digest, OSError) and not isinstance(digest, FileNotFoundError):
            raise digest
    if findings:
        raise DataError(
            f"{root} is damaged:{format_findings(findings)}",
            f"Run darkroom verify {root} to see everything that is wrong.",
        )


def _check_commit(root: str, dataset: Dataset) -> Iterator[FileFinding]:
    """Checks the bytes of the file, which the fingerprint does not."""
    if storage.read_bytes(storage.join(root, DATASET_FILE)) != format_dataset(dataset).encode():
        what = "has the values of the commit, but is not byte for byte as it was written"
        yield FileFinding(DATASET_FILE, COMMIT, what, FILE_HINTS[COMMIT])


def _find_empty(
    folders: Sequence[str], files: Sequence[str], dataset: Dataset
) -> Iterator[FileFinding]:
    """Yields split folders that the commit does not name; their files are found as such."""
    known = {split_folder(name) for name in dataset.splits}
    filled = {file.partition("/")[0] for file in files}
    for folder in sorted({*folders} - known - filled):
        what = "is not a split of the dataset"
        yield FileFinding(folder, EXTRA, what, "Remove it, or move it elsewhere.")


def _get_shards(dataset: Dataset) -> dict[str, Shard]:
    return {shard.file: shard for shard in dataset.shards}


def _digest_files(
    root: str,
    dataset: Dataset,
    files: Sequence[str],
    read_entries: Callable[[str], Sequence[IndexEntry] | None] = lambda file: None,
    num_threads: int | None = None,
) -> dict[str, ShardDigest | OSError]:
    """Reads files with threads; a file that cannot be read gets its error."""
    count = _Count(sum(shard.bytes for shard in _get_shards(dataset).values()))

    def digest(file: str) -> ShardDigest | OSError:
        try:
            return digest_shard(storage.join(root, file), read_entries(file), count.add)
        except OSError as error:
            return error

    with ThreadPoolExecutor(num_threads or count_cores()) as pool:
        return dict(zip(files, pool.map(digest, files), strict=True))


class _Count:
    """Counts the bytes that all threads read, for progress."""

    def __init__(self, total_bytes: int) -> None:
        self._done_bytes, self._total_bytes = 0, total_bytes
        self._lock = threading.Lock()

    def add(self, num_bytes: int) -> None:
        with self._lock:
            self._done_bytes += num_bytes
        total = max(self._total_bytes, self._done_bytes)
        progress.advance(self._done_bytes // 1_000_000, total // 1_000_000, "MB")
