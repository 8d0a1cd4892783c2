"""The records of the dataset that an update starts from, for whoever writes new shards of them."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from darkroom import storage
from darkroom.dataset.example import IMAGE_ENCODED, IMAGE_SOURCE_ID, decode_example
from darkroom.dataset.index import IndexRow, read_index_batches
from darkroom.dataset.layout import Folders, index_file, shard_file
from darkroom.dataset.tfrecord import read_record_at
from darkroom.errors import DataError
from darkroom.images.prepare import PreparedImage
from darkroom.manifest.table import ManifestRow
from darkroom.runtime import progress

_BATCH_ROWS = 8_192
# What the new list says; all else is about the image, which is the same.
_RENEWED = ("row", "uri", "split", "span", "label")
_KNOWN = tuple(name for name in IndexRow._fields if name not in ("extra", *_RENEWED))
_PLACE = ("shard", "position", "offset")


@dataclass(frozen=True)
class OldDataset:
    """The dataset that an update starts from; a worker finds its files by it.

    Attributes:
        folders: Where its files are.
        shards: The number of its shards by split.
        suffix: What the names of its shards end in.
    """

    folders: Folders
    shards: Mapping[str, int]
    suffix: str

    def shard_path(self, split: str, shard: int) -> str:
        """Returns the path of a shard."""
        name = shard_file(split, shard, self.shards[split], self.suffix)
        return storage.join(self.folders.examples, name)

    def index_path(self, split: str, shard: int) -> str:
        """Returns the path of the index of a shard."""
        before = [*self.shards][: [*self.shards].index(split)]
        number = sum(self.shards[name] for name in before) + shard
        return storage.join(self.folders.index, index_file(number, sum(self.shards.values())))


class OldRecords:
    """Reads records and rows of the index of an old dataset; a context manager.

    Args:
        dataset: The dataset.
    """

    def __init__(self, dataset: OldDataset) -> None:
        self._dataset = dataset
        self._rows: dict[tuple[str, int], list[dict[str, Any]]] = {}
        self._files: dict[tuple[str, int], int] = {}
        self._stack = ExitStack()
        self._lock = threading.Lock()

    def __enter__(self) -> OldRecords:
        return self

    def __exit__(self, *_: Any) -> None:
        self._stack.close()

    def renew(self, split: str, shard: int, rows: pa.Table) -> pa.Table:
        """Returns the rows of the index of a shard, with what the rows of a new manifest say."""
        path, names = self._dataset.index_path(split, shard), (*_KNOWN, *_RENEWED, *_PLACE)
        found = pa.concat_tables(read_index_batches(path, names, _BATCH_ROWS, optional=("extra",)))
        for place, name in enumerate(found.column_names):
            if name in (*_RENEWED, "extra"):
                found = found.set_column(place, name, rows[name])
        return found

    def take(self, row: ManifestRow) -> PreparedImage | None:
        """Returns the image of a row; None if it changed, or its record is damaged."""
        # A compressed shard has no places.
        if row.old is None or row.old["offset"] is None:
            return None
        old = self._find(row.old)
        path = self._dataset.shard_path(row.old["split"], row.old["shard"])
        try:
            found: Any = decode_example(
                read_record_at(path, self._read(row.old), row.old["position"])
            )
            if found[IMAGE_SOURCE_ID] != [row.key.encode()]:
                raise DataError(f"{path} has another record at the place of {row.id}.")
        except (DataError, KeyError) as error:
            progress.note(f"Read from the source instead: {error}")
            return None
        return PreparedImage(
            found[IMAGE_ENCODED][0],
            old["format"],
            old["height"],
            old["width"],
            old["channels"],
            tuple(filter(None, old["changes"].split(","))),
            old["source_format"],
            old["source_height"],
            old["source_width"],
            old["pixel_hash"],
            old["decoded_hash"],
            old["luminance"],
        )

    def _find(self, old: dict[str, Any]) -> dict[str, Any]:
        """Returns the row of the old index."""
        place = old["split"], old["shard"]
        with self._lock:
            if place not in self._rows:
                path = self._dataset.index_path(*place)
                batches = read_index_batches(path, (*_KNOWN, "row"), _BATCH_ROWS)
                self._rows[place] = [each for batch in batches for each in batch.to_pylist()]
        found: dict[str, Any] = self._rows[place][old["position"]]
        return found

    def _read(self, old: dict[str, Any]) -> bytes:
        """Returns the bytes of a record with its frame."""
        place = old["split"], old["shard"]
        with self._lock:
            if place not in self._files:
                path = self._dataset.shard_path(*place)
                if storage.is_remote(path):
                    # One request for all of its records.
                    folder = self._stack.enter_context(
                        tempfile.TemporaryDirectory(prefix="darkroom-")
                    )
                    local = os.path.join(folder, "shard")
                    storage.copy_file(path, local)
                    path = local
                descriptor = os.open(storage.local_path(path), os.O_RDONLY)
                self._stack.callback(os.close, descriptor)
                self._files[place] = descriptor
        return os.pread(self._files[place], old["length"], old["offset"])
