"""Opens a dataset: the commit and the files that it names, all in the same state.

A conversion that replaces a dataset exchanges two folders. Whoever reads several files at that
moment sees some of the old dataset and some of the new one, so it reads them again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import zip_longest
from typing import TypeVar

from darkroom import storage
from darkroom.dataset.checksums import IS_MISSING, FileSum, find_changed, read_sums
from darkroom.dataset.commit import Dataset, Shard, damaged, find_dataset, read_dataset
from darkroom.dataset.index import check_index_rows
from darkroom.dataset.labels import format_labels
from darkroom.dataset.layout import (
    DATASET_FILE,
    INDEX_FOLDER,
    LABELS_FILE,
    REJECTS_FILE,
    SUMS_FILE,
    split_folder,
)
from darkroom.errors import DataError, OutputError, UsageError
from darkroom.runtime.text import MAX_LISTED_ROWS

# An exchange takes microseconds, so a second one during a short read is rare.
_MOST_TRIES = 20
# They look at shards, and hash them.
_THREADS = 16

# Where it is in a dataset, its time says when a reader last held the dataset.
IN_USE_FILE = ".in-use"

_Result = TypeVar("_Result")


def open_dataset(folder: str) -> Dataset:
    """Reads the commit of a dataset, and checks its files as `check_shard_files` does.

    Raises:
        DataError: There is no dataset in the folder, or it is damaged.
        OSError: It cannot be read.
    """

    def open_now() -> Dataset:
        dataset = read_dataset(folder)
        check_shard_files(folder, dataset)
        return dataset

    return read_unchanged([folder], open_now)


def read_unchanged(folders: Sequence[str], read: Callable[[], _Result]) -> _Result:
    """Calls a function that reads datasets, again if one of them was replaced meanwhile.

    Args:
        folders: The datasets.
        read: Reads any of their files.

    Raises:
        DataError: A dataset was replaced again and again; or an error of `read`.
        OSError: As `read` raises it.
    """
    for _ in range(_MOST_TRIES):
        before = _identify(folders)
        try:
            result = read()
        except (DataError, OSError):
            if _identify(folders) == before:
                raise
        else:
            if _identify(folders) == before:
                return result
    raise DataError(
        f"{', '.join(folders)} was replaced {_MOST_TRIES} times while it was read.",
        "Wait until the conversions into it have ended.",
    )


def _identify(folders: Sequence[str]) -> list[str]:
    return [identify_commit(folder) for folder in folders]


def check_unchanged(
    commits: Mapping[str, Dataset | None], states: dict[str, str] | None = None
) -> None:
    """Checks that datasets are still those that were opened.

    Args:
        commits: The commits that were read, by folder; None for Examples of another tool.
        states: The `identify_commit` of then, which is kept up to date. Commits of the same state
            are not read again.

    Raises:
        DataError: One was replaced, or is gone.
    """
    states = {} if states is None else states
    for folder, dataset in commits.items():
        _hold(folder)
        state = identify_commit(folder)
        if state and states.get(folder) == state:
            continue
        if dataset is None or (found := find_dataset(folder)) == dataset:
            states[folder] = state
            continue
        if found is None:
            raise DataError(
                f"The dataset in {folder} is gone: it was deleted or moved while it was read.",
                "Put it back, or convert its source again.",
            )
        raise DataError(
            f"The dataset in {folder} was replaced while it was read.",
            "Run this again, to read the one that is there now.",
        )


def _hold(folder: str) -> None:
    """Says in the dataset's file for it, if there is one, that somebody reads the dataset now."""
    with suppress(OSError):  # as on a disk that is read-only
        storage.touch(storage.join(folder, IN_USE_FILE))


def identify_commit(folder: str) -> str:
    """Returns a text that changes when the dataset in a folder is replaced.

    Empty when it does not exist. In a store, this is one request.
    """
    try:
        found = storage.stat_file(storage.join(folder, DATASET_FILE))
    except (FileNotFoundError, NotADirectoryError):
        return ""
    return f"{found.size_bytes} {found.version}"


def check_shard_files(folder: str, dataset: Dataset) -> None:
    """Checks the shards by name and size, and that the label file is that of the commit.

    Whoever does so reads the dataset, and holds it.

    Raises:
        DataError: A shard is missing, has another size, or there is another file; or the label file
            is not as it was committed.
    """
    _hold(folder)
    known = {split_folder(name) for name in dataset.splits}
    if unknown := sorted(set(list_split_folders(folder)) - known):
        raise damaged(
            folder,
            folder,
            f"it has splits that the commit does not name: {unknown[:MAX_LISTED_ROWS]}",
        )
    for name, split in dataset.splits.items():
        expected = {shard.file.rpartition("/")[2]: shard for shard in split.shards}
        inside = storage.join(folder, split_folder(name))
        found = storage.list_folder(inside)
        if missing := sorted(set(expected) - set(found)):
            raise build_missing_shards_error(folder, inside, missing)
        if extra := sorted(set(found) - set(expected)):
            raise damaged(
                folder,
                inside,
                f"it has files that the commit does not name: {extra[:MAX_LISTED_ROWS]}",
            )
        for file, shard in expected.items():
            size = storage.stat_file(storage.join(inside, file)).size_bytes
            if size != shard.bytes:
                raise damaged(folder, f"{inside}/{file}", f"{size} bytes, expected {shard.bytes}")
    if what := compare_labels(folder, dataset):
        raise damaged(folder, storage.join(folder, LABELS_FILE), f"it {what}")


def find_damaged(folder: str, dataset: Dataset, share: float, seed: str) -> frozenset[str]:
    """Returns the shards that are not, bit for bit, as they were committed.

    Those that were written after the commit are read, and a share of the others.

    Args:
        folder: The dataset.
        dataset: Its commit.
        share: From 0 to 1.
        seed: Decides which the others are.

    Raises:
        OSError: A file cannot be read.
    """
    committed = storage.find_modified(storage.join(folder, DATASET_FILE))

    def is_damaged(shard: Shard) -> bool:
        path = storage.join(folder, shard.file)
        drawn = int(hashlib.sha256(f"{seed} {shard.file}".encode()).hexdigest()[:8], 16)
        is_read = drawn < share * (1 << 32) or storage.find_modified(path) > committed
        return is_read and not storage.has_hash(path, shard.sha256)

    with ThreadPoolExecutor(_THREADS) as pool:
        found = zip(dataset.shards, pool.map(is_damaged, dataset.shards), strict=True)
        return frozenset(shard.file for shard, damaged in found if damaged)


def build_missing_shards_error(folder: str, inside: str, names: Sequence[str]) -> DataError:
    """Returns the error for shards that are not in their folder inside of a dataset."""
    return damaged(folder, inside, f"shards are missing: {names[:MAX_LISTED_ROWS]}")


def check_index_files(folder: str, dataset: Dataset, *others: str) -> None:
    """Checks the index of a dataset, and rejects beside it, by their hashes, and for excess rows.

    Args:
        folder: The dataset.
        dataset: Its commit.
        others: The paths of the other files, below the dataset.

    Raises:
        UsageError: The index is elsewhere, as in TFX's artifacts.
        DataError: A file, or the list of hashes, is missing or damaged.
        OSError: A file cannot be read.
    """
    sums = _read_list(folder)
    index = [name for name in sums if name.startswith(f"{INDEX_FOLDER}/")]
    if dataset.shards and not index:
        raise UsageError(
            f"The index of {folder} is elsewhere: in a TFX pipeline it is a separate artifact.",
            "Give a dataset that darkroom convert wrote: of the same source it makes the same.",
        )
    names = [*index, *(name for name in others if name in sums)]
    _check_sums(folder, sums, names)
    rejects = storage.join(folder, REJECTS_FILE) if REJECTS_FILE in names else None
    check_index_rows(storage.join(folder, INDEX_FOLDER), dataset, rejects)


def check_listed(folder: str, dataset: Dataset, *, with_shards: bool = False) -> None:
    """Checks the files beside the shards by their hashes.

    Args:
        folder: The dataset.
        dataset: Its commit.
        with_shards: Whether shards are checked, too.

    Raises:
        DataError: A file, or the list of hashes, is missing or damaged.
        OSError: A file cannot be read.
    """
    sums = _read_list(folder)
    # In TFX, index and rejects are not here.
    known = {*dataset.files, *(shard.file for shard in dataset.shards if with_shards)}
    _check_sums(folder, sums, [name for name in sums if name in known])


def _check_sums(folder: str, sums: Mapping[str, FileSum], names: Sequence[str]) -> None:
    for name, what in find_changed(folder, sums, names):
        raise damaged(folder, storage.join(folder, name), f"it {what}")


def check_outside(folder: str, target: str, what: str) -> None:
    """Checks that something is not written into a dataset.

    Args:
        folder: The dataset.
        target: The folder to write to.
        what: The file that is written there, for the error.

    Raises:
        OutputError: The target is the dataset, or below it.
    """
    if f"{storage.resolve_links(target)}/".startswith(f"{storage.resolve_links(folder)}/"):
        raise OutputError(
            f"{what} would be in the dataset {folder}, which it is not a part of.",
            "Choose another folder for it.",
        )


def _read_list(folder: str) -> dict[str, FileSum]:
    try:
        return read_sums(folder)
    except FileNotFoundError as error:
        raise damaged(folder, storage.join(folder, SUMS_FILE), "it is missing") from error


def compare_labels(folder: str, dataset: Dataset) -> str:
    """Returns the problem with the label file of a dataset; empty when it has none.

    The text is a sentence when it follows the path.

    Raises:
        OSError: It cannot be read.
    """
    expected = format_labels(dataset.labels).encode()
    try:
        found = storage.read_bytes(storage.join(folder, LABELS_FILE), len(expected))
    except (FileNotFoundError, NotADirectoryError):
        return IS_MISSING
    except storage.FileTooLargeError:
        return f"has more than {len(expected):,} bytes"
    except storage.NotAFileError:
        return "is not a regular file"
    lines = zip_longest(found.split(b"\n"), expected.split(b"\n"))
    number = next((n for n, (one, other) in enumerate(lines, 1) if one != other), 0)
    return f"differs from the label map of {DATASET_FILE} in line {number}" if number else ""


def list_split_folders(folder: str) -> list[str]:
    """Returns the names of the folders in a dataset that are read as splits."""
    prefix = split_folder("")
    return [name for name in storage.list_folder(folder) if name.startswith(prefix)]
