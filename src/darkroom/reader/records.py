"""The records of a split by their numbers: the index says where each one is, and what it shows."""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import accumulate
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from darkroom import storage
from darkroom.data.splits import RecordSplit, describe_target
from darkroom.dataset.commit import Dataset
from darkroom.dataset.opening import check_unchanged, identify_commit
from darkroom.dataset.tfrecord import read_record_at
from darkroom.errors import DataError, UsageError
from darkroom.reader.draws import Array
from darkroom.reader.index import FACTS, make_texts, read_index
from darkroom.targets.kind import find_kind

_THREADS = 8
# Files that are kept open. Others are opened for each record.
_MOST_OPEN = 256
_OPENED = "_open", "_blocks"
# What is read of a store at once, and how much of it is kept.
_BLOCK_BYTES, _KEPT_BLOCKS = 1 << 20, 256


class Records:
    """The records of a split, numbered from 0 in the order of its files. It can be pickled.

    Attributes:
        split: The split.
        files: The paths of its files, in order.
        counts: Number of records in each file.
        facts: What the index says of each record, by name, int [N] each; see `index.FACTS`.
        numbers: Of each record, what `Kind.make_array` takes.
        names: The label map, or the names of numbers.
        commit: The fingerprints of the datasets.
    """

    def __init__(
        self, split: RecordSplit, folders: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Reads the index, and no record.

        Args:
            split: The split.
            folders: Where to read the files of each of its datasets; see `fetch_records`.

        Raises:
            DataError: The index is missing or damaged, or it is not that of the dataset.
            UsageError: The files are compressed.
        """
        self.split = split
        listed = split.list_files(folders)
        self.files = [each.path for each in listed]
        self._kind = find_kind(split.target.kind)
        self.names = describe_target(split).names
        commits = {root: each for root, each in split.commits.items() if each}
        self.commit = ",".join(dict.fromkeys(commits[each.root].fingerprint for each in listed))
        numbers = {
            (root, shard.file): number
            for root, commit in commits.items()
            for number, shard in enumerate(commit.shards)
        }
        self._read_columns(
            [(root, commits[root], numbers[root, name]) for _, root, name, _ in listed]
        )
        # Arrow would keep the memory of the tables: at a million records, more than all the rest.
        pa.default_memory_pool().release_unused()
        self._states = {root: identify_commit(root) for root in split.commits}
        # The folder of the dataset that each file belongs to; a copy in the cache never changes.
        self._roots = {
            each.path: each.root
            for each in listed
            if each.path == storage.join(each.root, each.name)
        }
        self.__setstate__({})

    def __len__(self) -> int:
        return self._starts[-1]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in _OPENED}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        # Another process opens the files again.
        self._open: dict[str, BinaryIO] = {}
        self._blocks = _Blocks(self._open_file)

    def check_not_replaced(self) -> None:
        """Checks that the datasets are still those that were opened.

        Raises:
            DataError: One was replaced, or is gone.
        """
        check_unchanged(self.split.commits, self._states)

    def reopen(self) -> None:
        """Opens all files again, as each epoch does: a fork may have happened in between.

        Raises:
            DataError: A dataset was replaced or deleted.
        """
        self.check_not_replaced()
        self.__setstate__({})

    def read(self, number: int) -> bytes:
        """Returns a record, after its checksum was checked. Threads may call it at once.

        Raises:
            DataError: It is damaged or missing, or its dataset was replaced.
        """
        path, row = self._find(number)
        offset, length = int(self.facts["offset"][number]), int(self.facts["length"][number])
        try:
            read = self._blocks.read if storage.is_remote(path) else self._read_local
            return read_record_at(path, read(path, offset, length), row)
        except FileNotFoundError as error:
            check_unchanged(self.split.commits)
            raise DataError(
                f"{path} is missing.", "Restore it, or convert the source again."
            ) from error
        except DataError:
            check_unchanged(self.split.commits)
            raise

    def find_image(self, record: bytes, number: int) -> tuple[memoryview, int]:
        """Returns the image of a record, which is its end, and whether it is JPEG, PNG or RAW."""
        size_bytes = int(self.facts["size_bytes"][number])
        return memoryview(record)[len(record) - size_bytes :], int(self.facts["format"][number])

    def build_damage_error(self, number: int, what: str, error: Exception) -> DataError:
        """Returns the error for a record, in which something made a decoder raise any error."""
        path, row = self._find(number)
        said = error.message if isinstance(error, DataError) else str(error)
        why = said.partition("\n")[0].rstrip(".") or type(error).__name__
        return DataError(
            f"{path}: {what} of record {row} cannot be decoded: {why}.",
            "Convert the source again with full checks of images.",
        )

    @contextmanager
    def report_transform(self, number: int) -> Iterator[None]:
        """Names a record whose image a function of the user's fails with in the block.

        Raises:
            UsageError: The block raised an error.
        """
        try:
            yield
        except Exception as error:
            path, row = self._find(number)
            raise UsageError(
                f"transform failed with record {row} of {path}: {type(error).__name__}: {error}."
            ) from error

    def make_labels(self, numbers: Array) -> Array:
        """Returns what records are labelled with, [B] or [B, C]; see `Kind.make_array`."""
        return self._kind.make_array(
            [self.numbers[number].as_py() for number in numbers.tolist()], len(self.names)
        )

    def _read_columns(self, parts: Sequence[tuple[str, Dataset, int]]) -> None:
        """Reads the index of files: the folder and commit of their dataset, and their numbers."""
        self.counts = [dataset.shards[number].records for _, dataset, number in parts]
        self._starts = [*accumulate(self.counts, initial=0)]
        self.facts = {name: np.empty(len(self), kind) for name, kind in FACTS.items()}

        def read(file: int) -> pa.Array:
            """Keeps the facts of a file, and returns its labels."""
            facts, labels = read_index(*parts[file])
            for name, values in facts.items():
                self.facts[name][slice(*self._starts[file : file + 2])] = values
            return labels

        filled = [file for file, count in enumerate(self.counts) if count]
        # On a store, each file takes a request or two.
        with ThreadPoolExecutor(_THREADS) as pool:
            labels = pa.concat_arrays(list(pool.map(read, filled)))
        values, numbers = self._kind.number(labels, make_texts(self.split.labels))
        self.numbers = numbers if self.split.labels else values

    def _find(self, number: int) -> tuple[str, int]:
        """Returns the file of a record, and its number in that file."""
        file = bisect_right(self._starts, number) - 1
        return self.files[file], number - self._starts[file]

    def _read_local(self, path: str, offset: int, length: int) -> bytes:
        file = self._open.get(path)
        if file is None:
            file = self._open_file(path)
            if len(self._open) < _MOST_OPEN:
                # Of two threads that open it at once, both read the same bytes.
                self._open[path] = file
        return os.pread(file.fileno(), length, offset)

    def _open_file(self, path: str) -> BinaryIO:
        """Opens a file of the dataset that the index is of: once it is open, it never changes."""
        file = storage.open_read(path)
        if root := self._roots.get(path):
            check_unchanged({root: self.split.commits[root]}, self._states)
        return file


class _Blocks:
    """Blocks of files in stores, of which the last ones are kept."""

    def __init__(self, open_file: Callable[[str], Any]) -> None:
        self._open_file = open_file
        self._lock = threading.Lock()
        self._files: dict[str, tuple[Any, threading.Lock]] = {}
        self._blocks: OrderedDict[tuple[str, int], Future[bytes]] = OrderedDict()

    def read(self, path: str, offset: int, length: int) -> bytes:
        """Returns bytes of a file. Each block is requested once, by the first thread that asks."""
        first, last = offset // _BLOCK_BYTES, (offset + length - 1) // _BLOCK_BYTES
        found = b"".join(self._find(path, number) for number in range(first, last + 1))
        start = offset - first * _BLOCK_BYTES
        return found[start : start + length]

    def _find(self, path: str, number: int) -> bytes:
        """Returns a block of a file, once the first thread that asked for it has it.

        A request that fails is not kept: the next thread that asks makes another one.
        """
        key = path, number
        with self._lock:
            block = self._blocks.get(key)
            if is_first := block is None:
                block = self._blocks[key] = Future()
                if len(self._blocks) > _KEPT_BLOCKS:
                    self._blocks.popitem(last=False)
            self._blocks.move_to_end(key)
        if is_first:
            try:
                block.set_result(self._request(path, number))
            except BaseException as error:
                with self._lock:
                    self._blocks.pop(key, None)
                block.set_exception(error)
                raise
        return block.result()

    def _request(self, path: str, number: int) -> bytes:
        """Reads a block. Threads share an open file and its position, so they take turns."""
        with self._lock:
            if path not in self._files:
                # Without its buffer, which would read more than a block.
                self._files[path] = self._open_file(path).raw, threading.Lock()
            file, lock = self._files[path]
        with lock:
            file.seek(number * _BLOCK_BYTES)
            return bytes(file.read(_BLOCK_BYTES))
