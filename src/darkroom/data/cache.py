"""A local copy of a remote dataset, because TensorFlow reads local files best.

A copy is in CACHE/<fingerprint>: dataset.json, Split-train/... Equal fingerprints mean equal bytes,
so a copy needs no time stamp and no record of its source.
"""

from __future__ import annotations

import fcntl
import os
from concurrent.futures import ThreadPoolExecutor

from darkroom import storage
from darkroom.dataset.commit import Dataset, Shard, write_commit
from darkroom.dataset.labels import format_labels
from darkroom.dataset.layout import DATASET_FILE, LABELS_FILE, Folders, split_folder
from darkroom.dataset.opening import compare_labels
from darkroom.errors import DarkroomError, DataError, StorageError
from darkroom.runtime import progress
from darkroom.storage import copies
from darkroom.storage.user_cache import CACHE_VARIABLE, find_cache

_LOCK_FILE = ".lock"
_PARTS_FOLDER = ".parts"
_THREADS = 8
# A transfer can damage a good file. If it is damaged twice, the file in the store is damaged.
_ATTEMPTS = 2


def stage_dataset(
    folder: str, dataset: Dataset, cache_dir: str | os.PathLike[str] | None = None
) -> str:
    """Copies the missing files of a remote dataset into the cache.

    Several processes can do this at the same time: the second waits for the first and uses its
    copy. A file is added to the cache only when its size and SHA-256 match the commit.

    Args:
        folder: The dataset.
        dataset: Its commit.
        cache_dir: The cache. Default: the folder in DARKROOM_CACHE, else `darkroom` in
            XDG_CACHE_HOME, else `~/.cache/darkroom`.

    Returns:
        The folder to read the dataset from.

    Raises:
        DataError: A shard is missing or differs from the commit.
        StorageError: The cache cannot be written, or the store fails.
    """
    target = os.path.join(find_cache(cache_dir), dataset.fingerprint)
    try:
        os.makedirs(target, exist_ok=True)
        # Never the target of a link, which would be emptied.
        with storage.open_write(os.path.join(target, _LOCK_FILE)) as lock:
            # The system releases the lock however this process ends.
            fcntl.flock(lock, fcntl.LOCK_EX)
            _fill(folder, target, dataset)
    except OSError as error:
        if isinstance(error, DarkroomError):
            raise
        raise StorageError(
            f"The cache {target} cannot be written: {error}.",
            f"Free some space, or choose another folder with cache_dir or {CACHE_VARIABLE}.",
        ) from error
    return target


def _fill(source: str, target: str, dataset: Dataset) -> None:
    """Copies what a copy in the cache lacks; the caller has its lock.

    The commit comes last: with it, the copy is a dataset that any reader opens.
    """
    for name in dataset.splits:
        os.makedirs(os.path.join(target, split_folder(name)), exist_ok=True)
    shards = [shard for split in dataset.splits.values() for shard in split.shards]
    missing = [shard for shard in shards if not _is_copied(target, shard)]
    if missing:
        # A killed process may have left parts, which are written again: this one has the lock.
        parts = os.path.join(target, _PARTS_FOLDER)
        os.makedirs(parts, exist_ok=True)
        with progress.step("Copying the dataset"), ThreadPoolExecutor(_THREADS) as pool:
            # The list raises the first error here.
            list(pool.map(lambda shard: _copy_shard(source, target, shard), missing))
        storage.remove_empty_folders(parts)
    if compare_labels(target, dataset):
        labels = format_labels(dataset.labels).encode()
        storage.write_bytes(os.path.join(target, LABELS_FILE), labels)
    if not os.path.exists(os.path.join(target, DATASET_FILE)):
        write_commit(Folders.of_dataset(target), dataset, {}, {})


def _is_copied(target: str, shard: Shard) -> bool:
    try:
        return os.path.getsize(os.path.join(target, shard.file)) == shard.bytes
    except FileNotFoundError:
        return False


def _copy_shard(source: str, target: str, shard: Shard) -> None:
    path = storage.join(source, shard.file)
    part = os.path.join(target, _PARTS_FOLDER, shard.file.replace("/", "-"))
    for _ in range(_ATTEMPTS):
        try:
            found = copies.copy_hashed(path, part)
        except FileNotFoundError as error:
            raise DataError(
                f"{path} is missing.", "Restore it, or convert the source again."
            ) from error
        if found == (shard.bytes, shard.sha256):
            os.replace(part, os.path.join(target, shard.file))
            return
    raise DataError(
        f"{path} is damaged: {found.size_bytes} bytes with SHA-256 {found.sha256}, expected "
        f"{shard.bytes} bytes with {shard.sha256}.",
        "Restore it, or convert the source again.",
    )
