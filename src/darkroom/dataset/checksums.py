"""SHA-256 and length of the files of a folder, in a file that `sha256sum --check` reads.

`dataset.json` is equal wherever a dataset is made, so it cannot have the hashes of files that name
URIs, or whose bytes depend on the version of pyarrow. `SHA256SUMS` has those of every file in its
folder but itself. Two comments end it, which `sha256sum` skips: the lengths, so that a file of
another length is found before it is read, and the hash of everything above.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from darkroom import storage
from darkroom.dataset.layout import SUMS_FILE, is_sidecar
from darkroom.errors import DataError
from darkroom.storage.parquet import BATCH_ROWS

IS_MISSING = "is missing"

_LINE = re.compile(r"([0-9a-f]{64})  (.+)")
_SIZES, _OWN = "# bytes", "# sha256"
# A million shards with their index have 160 MB of lines.
_MAX_BYTES = 1 << 28
_Self = TypeVar("_Self", bound="SummedTable")


class FileSum(NamedTuple):
    """The identity of a file's content.

    Attributes:
        size_bytes: Its length.
        sha256: SHA-256 of its bytes, hexadecimal.
    """

    size_bytes: int
    sha256: str


class SummedFile:
    """Passes on the bytes that are written to an open file, and sums them.

    Attributes:
        size_bytes: Bytes written so far.
        closed: Always False: whoever opened the file closes it.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._digest = file, hashlib.sha256()
        self.size_bytes, self.closed = 0, False

    def write(self, data: Any) -> int:
        """Writes to the file."""
        self._digest.update(data)
        self.size_bytes += len(data)
        return self._file.write(data)

    def flush(self) -> None:
        """Does nothing: whoever opened the file flushes it."""

    @property
    def sum(self) -> FileSum:
        """The sum of all that was written."""
        return FileSum(self.size_bytes, self._digest.hexdigest())


class SummedTable:
    """Writes rows to a Parquet file as they come, in bounded memory; a context manager.

    Args:
        path: The file.
        schema: Its columns.
    """

    def __init__(self, path: str, schema: pa.Schema) -> None:
        self._file = storage.open_write(path)
        self._summed = SummedFile(self._file)
        self._writer = pq.ParquetWriter(self._summed, schema)
        self._schema = schema
        self._rows: list[Any] = []

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        if kind is None:
            self._flush()
        self._writer.close()
        if kind is None:
            storage.sync_file(self._file)
        # On an error, no incomplete file appears in a remote store.
        self._file.__exit__(kind, *rest)

    @property
    def sum(self) -> FileSum:
        """Length and SHA-256 of the file; complete once the block has ended."""
        return self._summed.sum

    def _add_rows(self, rows: Iterable[Any]) -> None:
        self._rows.extend(rows)
        if len(self._rows) >= BATCH_ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(self._make_table(self._rows))
            self._rows = []

    def _make_table(self, rows: Sequence[Any]) -> pa.Table:
        """Returns rows that were added as a table."""
        raise NotImplementedError


def sum_bytes(data: bytes) -> FileSum:
    """Returns the sum of a file with this content."""
    return FileSum(len(data), hashlib.sha256(data).hexdigest())


def sum_file(path: str) -> FileSum:
    """Returns the sum of a file.

    Raises:
        OSError: It cannot be read.
    """
    return FileSum(storage.stat_file(path).size_bytes, storage.hash_file(path))


def write_sums(folder: str, sums: Mapping[str, FileSum], part: str | None = None) -> None:
    """Writes the sums of a folder's files, by their paths relative to it."""
    path = storage.join(folder, SUMS_FILE)
    storage.write_bytes(path, format_sums(sums), part or storage.find_part(path))


def format_sums(sums: Mapping[str, FileSum]) -> bytes:
    """Returns the text of a list."""
    names = sorted(sums)
    lines = [f"{sums[name].sha256}  {name}\n" for name in names]
    sizes = " ".join(str(sums[name].size_bytes) for name in names)
    text = f"{''.join(lines)}{_SIZES} {sizes}\n".encode()
    return text + f"{_OWN} {hashlib.sha256(text).hexdigest()}\n".encode()


def read_sums(folder: str) -> dict[str, FileSum]:
    """Reads the sums of a folder's files by name.

    Raises:
        DataError: The file is not as `write_sums` writes it.
        OSError: It is missing or cannot be read.
    """
    path = storage.join(folder, SUMS_FILE)
    data = storage.read_bytes(path, _MAX_BYTES)
    try:
        *lines, sizes, _ = data.decode().splitlines()
        found = [match.groups() for line in lines if (match := _LINE.fullmatch(line))]
        lengths = [int(size) for size in sizes.removeprefix(_SIZES).split()]
        sums = {
            name: FileSum(length, sha256)
            for (sha256, name), length in zip(found, lengths, strict=True)
        }
    except ValueError:
        sums = {}
    if not sums or format_sums(sums) != data:
        raise DataError(
            f"{path} is damaged: it does not have its own checksum.",
            "Restore it from a copy, or convert the source again.",
        )
    return sums


def list_summed_sidecars(folder: str) -> set[str]:
    """Returns the paths of the sidecars that the list in a folder names; none without a list."""
    try:
        return set(filter(is_sidecar, read_sums(folder)))
    except (*storage.UNUSABLE, DataError):
        return set()


def write_sidecars(
    folder: str, contents: Mapping[str, bytes], find_part: Callable[[str], str]
) -> dict[str, FileSum]:
    """Writes sidecars into the folder of a dataset.

    Args:
        folder: The folder.
        contents: Their contents by path.
        find_part: Returns the path for a file until it is complete.

    Returns:
        Their sums by path.
    """
    for path, data in contents.items():
        whole = storage.join(folder, path)
        storage.make_folder(whole.rpartition("/")[0])
        storage.write_bytes(whole, data, find_part(whole))
    return {path: sum_bytes(data) for path, data in contents.items()}


def find_changed(
    folder: str, sums: Mapping[str, FileSum], names: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yields files that do not have their sums: their names, and the problem with each.

    A file of another length is not read.

    Raises:
        OSError: A file cannot be read.
    """
    for name in names:
        if what := _compare(storage.join(folder, name), sums[name]):
            yield name, what


def _compare(path: str, expected: FileSum) -> str:
    """Returns the problem with a file; empty when it has none."""
    try:
        size = storage.stat_file(path).size_bytes
        if size != expected.size_bytes:
            return f"has {size:,} bytes, expected {expected.size_bytes:,}"
        if not size:
            storage.read_bytes(path, 0)  # a FIFO or a device has no length either
        elif not storage.has_hash(path, expected.sha256):
            return f"does not have the hash in {SUMS_FILE}"
    except (FileNotFoundError, NotADirectoryError):
        return IS_MISSING
    except (storage.NotAFileError, IsADirectoryError):
        return "is not a regular file"
    return ""
