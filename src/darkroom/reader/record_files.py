"""The files of the records of a split, and the bytes at places in them."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

from darkroom import storage
from darkroom.data.splits import RecordFile, RecordSplit
from darkroom.dataset.opening import check_unchanged, identify_commit
from darkroom.dataset.tfrecord import read_record_at
from darkroom.errors import DataError, UsageError

# Files that are kept open. Others are opened for each record.
_MOST_OPEN = 256
_OPENED = "_open", "_blocks"
# What is read of a store at once, and how much of it is kept.
_BLOCK_BYTES, _KEPT_BLOCKS = 1 << 20, 256


@dataclass(frozen=True)
class Places:
    """Where some records are, and what the index says of them; small enough to be sent.

    Attributes:
        files: The numbers of their files, [N].
        rows: Their numbers within these, [N].
        facts: What the index says, by name, [N] each; see `index.FACTS`.
    """

    files: Sequence[int]
    rows: Sequence[int]
    facts: Mapping[str, Sequence[int]]

    def take(self, some: slice) -> Places:
        """Returns some of them."""
        facts = {name: values[some] for name, values in self.facts.items()}
        return Places(self.files[some], self.rows[some], facts)


class RecordFiles:
    """The files of the records of a split. It can be pickled.

    Attributes:
        paths: Their paths, in order.
        are_local: None is read from a store.
    """

    def __init__(self, split: RecordSplit, files: Sequence[RecordFile]) -> None:
        """Opens no file.

        Args:
            split: The split.
            files: Its files, in order.
        """
        self.paths = [each.path for each in files]
        self.are_local = not any(map(storage.is_remote, self.paths))
        self._commits = split.commits
        self._states = {root: identify_commit(root) for root in split.commits}
        # The folder of the dataset that each file belongs to; a copy in the cache never changes.
        self._roots = {
            path: root for path, root, name, _ in files if path == storage.join(root, name)
        }
        self.__setstate__({})

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
        check_unchanged(self._commits, self._states)

    def reopen(self) -> None:
        """Opens all files again, as each epoch does: a fork may have happened in between.

        Raises:
            DataError: A dataset was replaced or deleted.
        """
        self.check_not_replaced()
        self.__setstate__({})

    def read(self, places: Places, number: int) -> bytes:
        """Returns a record, after its checksum was checked. Threads may call it at once.

        Raises:
            DataError: It is damaged or missing, or its dataset was replaced.
        """
        path, row = self._find(places, number)
        offset, length = places.facts["offset"][number], places.facts["length"][number]
        try:
            read = self._blocks.read if storage.is_remote(path) else self._read_local
            return read_record_at(path, read(path, offset, length), row)
        except FileNotFoundError as error:
            check_unchanged(self._commits)
            raise DataError(
                f"{path} is missing.", "Restore it, or convert the source again."
            ) from error
        except DataError:
            check_unchanged(self._commits)
            raise

    def build_damage_error(
        self, places: Places, number: int, what: str, error: Exception
    ) -> DataError:
        """Returns the error for a record, in which something made a decoder raise any error."""
        path, row = self._find(places, number)
        said = error.message if isinstance(error, DataError) else str(error)
        why = said.partition("\n")[0].rstrip(".") or type(error).__name__
        return DataError(
            f"{path}: {what} of record {row} cannot be decoded: {why}.",
            "Convert the source again with full checks of images.",
        )

    @contextmanager
    def report_transform(self, places: Places, number: int) -> Iterator[None]:
        """Names a record whose image a function of the user's fails with in the block.

        Raises:
            UsageError: The block raised an error.
        """
        try:
            yield
        except Exception as error:
            path, row = self._find(places, number)
            raise UsageError(
                f"transform failed with record {row} of {path}: {type(error).__name__}: {error}."
            ) from error

    def _find(self, places: Places, number: int) -> tuple[str, int]:
        """Returns the file of a record, and its number in that file."""
        return self.paths[places.files[number]], places.rows[number]

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
            check_unchanged({root: self._commits[root]}, self._states)
        return file


def find_image_bytes(record: bytes, places: Places, number: int) -> tuple[memoryview, int]:
    """Returns the image of a record, which is its end, and whether it is JPEG, PNG or RAW."""
    size_bytes = places.facts["size_bytes"][number]
    return memoryview(record)[len(record) - size_bytes :], places.facts["format"][number]


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
