"""Verifies the record index of a dataset: by its hashes, and against the records."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from darkroom import storage
from darkroom.audit.findings import (
    EXTRA,
    MISSING,
    RESTORE,
    REWRITE,
    TABLE,
    FileFinding,
    TableError,
    explain_error,
    format_cause,
)
from darkroom.audit.shards import IndexEntry, ShardDigest
from darkroom.audit.sums import Sums
from darkroom.dataset.commit import Dataset
from darkroom.dataset.example import IMAGE_SHA256, IMAGE_SOURCE_ID, encode_example
from darkroom.dataset.index import check_index
from darkroom.dataset.layout import INDEX_FOLDER, SUMS_FILE
from darkroom.dataset.tfrecord import GZIP_SUFFIX
from darkroom.errors import DataError
from darkroom.storage.parquet import BATCH_ROWS, count_rows, iterate_batches
from darkroom.targets.kind import find_kind

_KEY_LENGTH, _SHA256_LENGTH = 32, 64
_COLUMNS = ("key", "sha256", "split", "label", "shard", "position")
# The index of a shard has less than a kilobyte a record.
_MAX_BYTES = 1 << 31


class IndexCheck:
    """Checks the record index of a dataset while its shards are read.

    Attributes:
        is_here: Whether the index is in the folder; in TFX it is a separate artifact.
    """

    def __init__(self, root: str, dataset: Dataset, sums: Sums) -> None:
        self._root, self._dataset = root, dataset
        self._names = storage.list_folder(storage.join(root, INDEX_FOLDER))
        self._places = _place_index_files(dataset)
        self._findings: list[FileFinding] = []
        prefix = f"{INDEX_FOLDER}/"
        self._hashes = {
            name.removeprefix(prefix): each.sha256
            for name, each in sums.items()
            if name.startswith(prefix)
        }
        # Of a dataset that lists its index, the whole folder may be missing.
        self.is_here = bool(self._names) or bool(self._hashes)
        self._own_files = set(dataset.index_files)

    def read_entries(self, file: str) -> list[IndexEntry] | None:
        """Returns the necessary content of a shard's records; None if the index does not say."""
        place = self._places.get(file)
        if place is None or place.file not in self._names:
            return None
        path = f"{INDEX_FOLDER}/{place.file}"
        try:
            entries = self._read_entries(path, place)
        except TableError as error:
            self._findings.append(FileFinding(path, TABLE, str(error), REWRITE))
            return None
        except OSError as error:
            self._findings.append(explain_error(path, error))
            return None
        # Reading compressed records would take longer than all the rest.
        return None if file.endswith(GZIP_SUFFIX) else entries

    def _read_entries(self, path: str, place: _Place) -> list[IndexEntry] | None:
        try:
            data = storage.read_bytes(storage.join(self._root, path), _MAX_BYTES)
        except storage.FileTooLargeError:
            raise TableError(f"has more than {_MAX_BYTES:,} bytes") from None
        if self._hashes.get(place.file, sha := hashlib.sha256(data).hexdigest()) != sha:
            raise TableError(f"does not have the hash in {SUMS_FILE}")
        return parse_index_entries(data, place, self._dataset)

    def find_all(
        self, digests: Mapping[str, ShardDigest | OSError], damaged: Container[str]
    ) -> list[FileFinding]:
        """Returns the problem with the index, after all shards were read.

        Args:
            digests: Digest of each shard, or the error on reading it, by file.
            damaged: Damaged shards: they say nothing about their index.
        """
        if not self.is_here:
            return []
        findings = list(self._findings)
        for file, place in self._places.items():
            path, digest = f"{INDEX_FOLDER}/{place.file}", digests.get(file)
            if place.file not in self._names:
                findings.append(FileFinding(path, MISSING, "is missing", RESTORE))
            elif isinstance(digest, ShardDigest) and digest.misfits and file not in damaged:
                what = f"does not match the records of {file}, from position {digest.misfits[0]} on"
                findings.append(FileFinding(path, TABLE, what, REWRITE))
        extra = sorted(set(self._names) - self._own_files)
        what = "belongs to no shard of the dataset"
        findings += [
            FileFinding(f"{INDEX_FOLDER}/{n}", EXTRA, what, "Move it elsewhere.") for n in extra
        ]
        return sorted(findings, key=lambda finding: finding.path)


class _Place(NamedTuple):
    """The index file of a shard, and the necessary content of its rows."""

    file: str
    split: str
    shard: int
    records: int


def _place_index_files(dataset: Dataset) -> dict[str, _Place]:
    """Returns the place of the index of each shard, by file of the shard."""
    names = dataset.index_files
    places: dict[str, _Place] = {}
    for name, split in dataset.splits.items():
        for number, shard in enumerate(split.shards):
            places[shard.file] = _Place(names[len(places)], name, number, shard.records)
    return places


def parse_index_entries(data: bytes, place: _Place, dataset: Dataset) -> list[IndexEntry] | None:
    """Checks the index of a shard, and returns the necessary content of its records.

    Args:
        data: The index file.
        place: The shard.
        dataset: The commit.

    Returns:
        The bytes that each record must contain; None if the records have no image.

    Raises:
        TableError: The index is damaged, or belongs to another shard.
    """
    kind, known, names = find_kind(dataset.target.kind), {*dataset.labels}, dataset.target.names
    columns, records = _decode_columns(data, place, kind.column), place.records
    _check_column("split", columns["split"], place.split)
    _check_column("shard", columns["shard"], place.shard)
    _check_column("position", columns["position"], np.arange(records))
    _check_values("label", columns["label"], lambda value: kind.fits(value, known, names))
    if IMAGE_SOURCE_ID not in dataset.features:
        return None
    _check_values("key", columns["key"], lambda key: len(key or "") == _KEY_LENGTH)
    _check_values("sha256", columns["sha256"], lambda sha: len(sha or "") == _SHA256_LENGTH)
    return _make_entries(columns["key"], columns["sha256"])


def _decode_columns(data: bytes, place: _Place, label: pa.DataType) -> dict[str, Any]:
    """Returns the columns to compare, as arrays; raises `TableError` as `parse_index_entries`."""
    try:
        parquet = pq.ParquetFile(pa.BufferReader(data))
        found, num_bytes = count_rows(parquet), _count_bytes(parquet)
        # A few bytes can become many gigabytes, so this comes before anything is decoded.
        if found == place.records and num_bytes <= _MAX_BYTES:
            check_index(place.file, parquet, _COLUMNS, label)
            # All columns are decoded, not only the compared ones, so that damage in any is seen.
            batches = iterate_batches(parquet, None, BATCH_ROWS)
            table = pa.Table.from_batches(batches, parquet.schema_arrow)
            table.validate(full=True)
            found = table.num_rows
    except DataError as error:
        raise TableError(f"is damaged: {error.message}") from error
    except Exception as error:
        raise TableError(f"is damaged: {format_cause(error)}") from error
    if found != place.records:
        raise TableError(f"has {found} rows, but its shard has {place.records} records")
    if num_bytes > _MAX_BYTES:
        raise TableError(f"would have {num_bytes:,} bytes in memory")
    return {name: table[name].to_numpy() for name in _COLUMNS}


def _count_bytes(parquet: pq.ParquetFile) -> int:
    groups = range(parquet.num_row_groups)
    return sum(parquet.metadata.row_group(number).total_byte_size for number in groups)


def _check_column(name: str, found: Any, expected: Any) -> None:
    for row in np.flatnonzero(found != expected):
        other = np.broadcast_to(expected, len(found))[row]
        raise TableError(f"is wrong in row {row}: {name} is {found[row]!r}, expected {other!r}")


def _check_values(name: str, found: Any, is_right: Callable[[Any], bool]) -> None:
    for row, value in enumerate(found):
        if not is_right(value):
            raise TableError(
                f"is wrong in row {row}: {name} is {value!r}, which is not in the dataset"
            )


def _make_entries(keys: Sequence[str], hashes: Sequence[str]) -> list[IndexEntry]:
    """Returns the bytes that each record contains: its SHA-256 and its key, as encoded."""
    hash_head = _encode_head(IMAGE_SHA256, _SHA256_LENGTH)
    key_head = _encode_head(IMAGE_SOURCE_ID, _KEY_LENGTH)
    return [
        (hash_head + sha256.encode(), key_head + key.encode())
        for key, sha256 in zip(keys, hashes, strict=True)
    ]


def _encode_head(name: str, length: int) -> bytes:
    """Returns the bytes before a value of that length in every record."""
    # An example with one short feature is a tag, a length in one byte, and the feature.
    return encode_example({name: bytes(length)})[2:-length]
