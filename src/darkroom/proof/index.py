"""Verifies the record index of a dataset: by its hashes, and against the records."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from itertools import repeat

import pyarrow as pa

from darkroom import storage
from darkroom.dataset.checksums import find_changed
from darkroom.dataset.columns import list_values
from darkroom.dataset.commit import Dataset
from darkroom.dataset.example import (
    IMAGE_SHA256,
    IMAGE_SOURCE_ID,
    encode_feature,
    encode_source_id,
)
from darkroom.dataset.index import read_index_batches
from darkroom.dataset.layout import INDEX_FOLDER
from darkroom.dataset.tfrecord import GZIP_SUFFIX
from darkroom.errors import DataError
from darkroom.proof.findings import (
    EXTRA,
    MISSING,
    RESTORE,
    REWRITE,
    TABLE,
    FileFinding,
    explain_change,
    explain_error,
)
from darkroom.proof.shards import IndexEntry, ShardDigest
from darkroom.proof.sums import Sums
from darkroom.storage.parquet import BATCH_ROWS
from darkroom.targets.kind import find_kind


class IndexCheck:
    """Checks the record index of a dataset while its shards are read.

    Attributes:
        is_here: Whether the index is in the folder; in TFX it is a separate artifact.
    """

    def __init__(self, root: str, dataset: Dataset, sums: Sums) -> None:
        self._root, self._sums = root, sums
        self._shards = {shard.file: shard for shard in dataset.shards}
        paths = [f"{INDEX_FOLDER}/{name}" for name in dataset.index_files]
        self._paths = dict(zip(self._shards, paths, strict=True))
        names = storage.list_folder(storage.join(root, INDEX_FOLDER))
        self._found = {f"{INDEX_FOLDER}/{name}" for name in names}
        self._has_images = IMAGE_SOURCE_ID in dataset.features
        self._kind, self._labels = find_kind(dataset.target.kind), pa.array(dataset.labels, "str")
        self._findings: list[FileFinding] = []
        # Of a dataset that lists its index, the whole folder may be missing.
        self.is_here = bool(self._found) or not sums.keys().isdisjoint(paths)

    def read_entries(self, file: str) -> list[IndexEntry] | None:
        """Returns the necessary content of a shard's records; None if the index does not say."""
        path = self._paths.get(file)
        if path is None or path not in self._found:
            return None
        try:
            changed = [*find_changed(self._root, self._sums, [path] if path in self._sums else [])]
            self._findings += [explain_change(path, what) for _, what in changed]
            # Reading compressed records would take longer than all the rest.
            if changed or not self._has_images or file.endswith(GZIP_SUFFIX):
                return None
            return self._read(storage.join(self._root, path), self._shards[file].records)
        except DataError as error:
            what = error.message.removeprefix(f"{storage.join(self._root, path)} ").rstrip(".")
            self._findings.append(FileFinding(path, TABLE, what, REWRITE))
        except OSError as error:
            self._findings.append(explain_error(path, error))
        return None

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
        for file, path in self._paths.items():
            digest = digests.get(file)
            if path not in self._found:
                findings.append(FileFinding(path, MISSING, "is missing", RESTORE))
            elif isinstance(digest, ShardDigest) and digest.misfits and file not in damaged:
                what = f"does not match the records of {file}, from position {digest.misfits[0]} on"
                findings.append(FileFinding(path, TABLE, what, REWRITE))
        what = "belongs to no shard of the dataset"
        extra = self._found.difference(self._paths.values())
        findings += [FileFinding(path, EXTRA, what, "Move it elsewhere.") for path in extra]
        return sorted(findings, key=lambda finding: finding.path)

    def _read(self, path: str, num_records: int) -> list[IndexEntry]:
        """Returns the bytes that each record contains, as encoded: SHA-256, id and objects."""
        entries: list[IndexEntry] = []
        names = ("sha256", "key", "source_id", "label")
        # A few bytes can become millions of rows, so these are counted before any is decoded.
        for table in read_index_batches(path, names, BATCH_ROWS, num_rows=num_records):
            # What is not known is in no record, as text.
            columns = (table[name].to_pylist() for name in names[:3])
            targets = self._encode_targets(table["label"])
            for sha256, key, number, target in zip(*columns, targets, strict=True):
                own = {
                    IMAGE_SHA256: f"{sha256}".encode(),
                    IMAGE_SOURCE_ID: encode_source_id(key, number),
                }
                entries.append((*(encode_feature(*each) for each in own.items()), *target))
        return entries

    def _encode_targets(self, labels: pa.ChunkedArray) -> Iterator[IndexEntry]:
        """Yields the features of the objects of each record, as encoded; none without objects."""
        if self._kind.objects is None:
            yield from repeat((), len(labels))
            return
        values, numbers = self._kind.number(labels.combine_chunks(), self._labels)
        for value, own in zip(list_values(values), list_values(numbers), strict=True):
            features = self._kind.encode(value, own)
            yield tuple(encode_feature(name, each) for name, each in features.items())
