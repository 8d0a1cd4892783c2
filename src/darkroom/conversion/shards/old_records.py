"""The records of the dataset that an update starts from, for whoever writes new shards of them."""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, BinaryIO

import pyarrow as pa

from darkroom import storage
from darkroom.dataset.columns import list_values
from darkroom.dataset.example import (
    IMAGE_ENCODED,
    IMAGE_SOURCE_ID,
    decode_example,
    encode_feature,
    encode_source_id,
)
from darkroom.dataset.index import IMAGE_COLUMNS, index_schema, read_index_batches
from darkroom.dataset.layout import Folders, index_file, shard_file
from darkroom.dataset.manifest import ManifestRow, flatten_old, list_rows
from darkroom.dataset.tfrecord import read_record_at
from darkroom.errors import DataError
from darkroom.images.prepare import PreparedImage
from darkroom.runtime import progress
from darkroom.storage.parquet import BATCH_ROWS, KeptTables
from darkroom.targets.kind import TargetKind

# Of each shard. Those after them are opened for each record, as a process may open few.
_MAX_OPEN_FILES = 64


@dataclass(frozen=True)
class OldDataset:
    """The dataset that an update starts from; a worker finds its files by it.

    Attributes:
        folders: Where its files are.
        shards: The number of its shards by split.
        suffix: What the names of its shards end in.
        recheck: Share of its shards that are read, to see whether they are damaged.
        damaged: Its shards that are known to be.
    """

    folders: Folders
    shards: Mapping[str, int]
    suffix: str
    recheck: float = 0.0
    damaged: frozenset[str] = frozenset()

    def shard_file(self, split: str, shard: int) -> str:
        """Returns the path of a shard below the dataset."""
        return shard_file(split, shard, self.shards[split], self.suffix)

    def shard_path(self, split: str, shard: int) -> str:
        """Returns the path of a shard."""
        return storage.join(self.folders.examples, self.shard_file(split, shard))

    def index_path(self, split: str, shard: int) -> str:
        """Returns the path of the index of a shard."""
        before = [*self.shards][: [*self.shards].index(split)]
        number = sum(self.shards[name] for name in before) + shard
        return storage.join(self.folders.index, index_file(number, sum(self.shards.values())))


class OldRecords:
    """Finds the records of an old dataset that a new shard takes; a context manager.

    Args:
        dataset: The dataset.
        tables: Keeps parts of its index; the rows of new shards are in the same order as the old.
        kind: What images are labelled with.
    """

    def __init__(self, dataset: OldDataset, tables: KeptTables, kind: TargetKind) -> None:
        self._dataset = dataset
        self._tables = tables
        # A list does not say where objects are in the stored image.
        self._says_places = kind.listed is not None
        names = (*IMAGE_COLUMNS, *(("label",) if self._says_places else ()))
        self._schema = pa.schema(map(index_schema({}, kind.column).field, names))
        self._is_remote = storage.is_remote(dataset.folders.examples)
        self._stack = ExitStack()
        self._scratch = ""
        if self._is_remote:
            scratch = tempfile.TemporaryDirectory(prefix="darkroom-")
            self._scratch = self._stack.enter_context(scratch)
        self._files: dict[str, BinaryIO] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> OldRecords:
        return self

    def __exit__(self, *_: Any) -> None:
        self._stack.close()

    def find(self, rows: pa.Table) -> pa.Table:
        """Returns the fields of `old` of a manifest's rows, and what the old index says of them."""
        old = flatten_old(rows)
        places = [*zip(*(list_values(old[name]) for name in ("split", "shard")), strict=True)]
        parts = {
            place: self._read_index(self._dataset.index_path(*place))
            for place in {*places} - {(None, None)}
        }
        starts = dict(zip(parts, accumulate(map(len, parts.values()), initial=0), strict=False))
        numbers = [
            None if position is None else starts[place] + position
            for place, position in zip(places, list_values(old["position"]), strict=True)
        ]
        # Shards of new images alone have no parts.
        found = pa.concat_tables([*parts.values()] or [self._schema.empty_table()])
        found = found.take(pa.array(numbers, pa.int64()))
        for name in self._schema.names:
            old = old.append_column(name, found[name])
        return old

    def list_rows(self, rows: pa.Table) -> Iterator[ManifestRow]:
        """Yields rows of a manifest with all that is found about their old records."""
        table = self.find(rows)
        values = zip(*map(list_values, table.columns), strict=True)
        found = [dict(zip(table.column_names, each, strict=True)) for each in values]
        if self._is_remote:
            self._copy_ranges(found)
        for row, old in zip(list_rows(rows.drop(["old"])), found, strict=True):
            yield row if old["split"] is None else row._replace(old=old)

    def take(self, row: ManifestRow) -> PreparedImage | bytes | None:
        """Returns what the dataset has of a row from `list_rows`.

        Returns:
            The whole record, with its frame, if nothing of it changed, else its image; None if that
            changed, too, or the record is damaged. Of a damaged shard the image, by its hash.
        """
        old = row.old
        # A compressed shard has no places.
        if old is None or old["offset"] is None:
            return None
        file = self._dataset.shard_file(old["split"], old["shard"])
        is_same = old["is_same"] and file not in self._dataset.damaged
        if self._says_places and not is_same:
            return None  # nothing else says where the pixels of the file went
        path = self._dataset.shard_path(old["split"], old["shard"])
        framed = self._read(path, old)
        try:
            record = read_record_at(path, framed, old["position"])
            # It names its row and the hash of its image.
            name = encode_feature(IMAGE_SOURCE_ID, encode_source_id(row.key, row.source_id))
            if name not in record or old["sha256"].encode() not in record:
                raise DataError(f"{path} has another record at the place of {row.id}.")
            if is_same:
                return framed
            image: Any = decode_example(record)[IMAGE_ENCODED][0]
            if file in self._dataset.damaged and hashlib.sha256(image).hexdigest() != old["sha256"]:
                raise DataError(f"{path} has another image at the place of {row.id}.")
        except (DataError, LookupError, TypeError) as error:
            # The hint is for those who read the shard otherwise.
            said = error.message if isinstance(error, DataError) else error
            progress.note(f"Read from the source instead: {said}")
            return None
        facts = {name: old[name] for name in PreparedImage._fields if name in old}
        facts["changes"] = tuple(filter(None, old["changes"].split(",")))
        return PreparedImage(encoded=image, **facts)

    def _read_index(self, path: str) -> pa.Table:
        def load() -> pa.Table:
            batches = read_index_batches(path, self._schema.names, BATCH_ROWS)
            # Columns that the index lacks, because an earlier version wrote it, come last.
            return pa.concat_tables(batches).select(self._schema.names)

        return self._tables.read(path, load)

    def _read(self, path: str, old: dict[str, Any]) -> bytes:
        """Returns the bytes of a record with its frame."""
        local = self._find_copy(old) if self._is_remote else path
        with self._lock:
            if local not in self._files and len(self._files) < _MAX_OPEN_FILES:
                self._files[local] = self._stack.enter_context(storage.open_read(local))
        kept = self._files.get(local)
        with nullcontext(kept) if kept else storage.open_read(local) as file:
            return os.pread(file.fileno(), old["length"], old["offset"])

    def _copy_ranges(self, found: Iterable[dict[str, Any]]) -> None:
        """Copies the ranges of remote shards that have the records to sparse files.

        The rows of both datasets are in one order, so that a range has little else.
        """
        places = defaultdict(list)
        for old in found:
            if old["offset"] is not None:
                places[old["split"], old["shard"]].append(old)
        for place, records in places.items():
            first = min(old["offset"] for old in records)
            stop = max(old["offset"] + old["length"] for old in records)
            copy = self._find_copy(records[0])
            storage.copy_range(self._dataset.shard_path(*place), copy, first, stop)

    def _find_copy(self, old: dict[str, Any]) -> str:
        return os.path.join(self._scratch, f"{old['split']}-{old['shard']}")
