"""One shard: its worker reads its own images, checks them, and writes the file.

Threads read, decode and encode the images, and records are written in the manifest's order, so a
shard's bytes do not depend on the number of threads.

A finished shard leaves its report in the work folder. If this run is killed, the next run of the
same plan does not write the shard again. A shard that is linked leaves none: linking it again takes
less time than checking it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import astuple, dataclass, replace
from itertools import chain
from typing import NamedTuple

import pyarrow as pa

from darkroom import storage
from darkroom.conversion.shards.encode import (
    EncodedRows,
    ImageReaders,
    cut_batches,
    encode_rows,
)
from darkroom.conversion.shards.old_records import OldDataset, OldRecords
from darkroom.dataset.checksums import FileSum
from darkroom.dataset.columns import list_values
from darkroom.dataset.commit import Shard
from darkroom.dataset.index import IndexWriter
from darkroom.dataset.layout import Folders, index_file, shard_file
from darkroom.dataset.manifest import list_rows, read_manifest_tables
from darkroom.dataset.objects import ObjectCounts, add_objects
from darkroom.dataset.rejects import RejectsWriter
from darkroom.dataset.tfrecord import GZIP_SUFFIX, RecordWriter
from darkroom.options.conversion import DEFAULT_STORE_PATIENCE_SECONDS
from darkroom.options.image import ImageOptions
from darkroom.storage.parquet import KeptTables
from darkroom.targets.kind import find_kind

_BATCH_ROWS = 256
_REJECTS, REPORT_SUFFIX = ".rejects.parquet", ".json"
MAX_REPORT_BYTES = 1 << 20


@dataclass(frozen=True)
class ShardTask:
    """Everything that a worker needs to write one shard; a few hundred bytes.

    Attributes:
        range: Its rows in the manifest.
        folders: Where everything is.
        check_current: Checks that no later attempt has taken the output; must be picklable.
        plan: Name of the folder, in that of the attempt, for the shard's rejects and report.
        inputs: Kind of every input column by name.
        has_images: Whether rows name images.
        kind: What they are labelled with; see `darkroom.targets`.
        image: How images are checked and stored.
        compressed: Whether the file is gzip.
        total: Rows of the whole manifest, for progress.
        source: Fingerprint of the source, stored in the index so that a later run recognises it.
        patience_seconds: How long a store that does not answer is asked again.
        earlier: The folders of earlier attempts of the plan, on a store, that may have finished it.
        old: The dataset whose unchanged images are taken.
        linked: Its shard that has the very records of this one.
        optional: The optional columns of the index.
    """

    range: ShardRange
    folders: Folders
    check_current: Callable[[], None]
    plan: str
    inputs: Mapping[str, str]
    has_images: bool
    kind: str
    image: ImageOptions
    compressed: bool
    total: int
    source: str
    patience_seconds: float = DEFAULT_STORE_PATIENCE_SECONDS
    earlier: tuple[Folders, ...] = ()
    old: OldDataset | None = None
    linked: Shard | None = None
    optional: tuple[str, ...] = ()

    def find_in(self, folders: Folders) -> ShardTask:
        """Returns the task of an earlier attempt that wrote the same shard."""
        return replace(self, folders=folders)

    @property
    def file(self) -> str:
        """Path of the shard below the dataset."""
        suffix = GZIP_SUFFIX if self.compressed else ""
        return shard_file(self.range.split, self.range.shard, self.range.num_shards, suffix)

    @property
    def index_file(self) -> str:
        """Path of the shard's index."""
        return storage.join(self.folders.index, index_file(self.range.number, self.range.total))

    @property
    def work(self) -> str:
        """Folder for the rejects and reports of shards; a later attempt of the plan keeps them."""
        return storage.join(self.folders.work, self.plan)

    def work_file(self, suffix: str) -> str:
        """Path of a file of the shard in the work folder."""
        return storage.join(self.work, f"shard-{self.range.number:05d}{suffix}")

    @property
    def results(self) -> list[str]:
        """Paths of the shard and its index."""
        return [storage.join(self.folders.examples, self.file), self.index_file]

    @property
    def files(self) -> list[str]:
        """Paths of all files that its worker writes; the journal names these, and no others."""
        return [*self.results, *map(self.work_file, (_REJECTS, REPORT_SUFFIX))]


class ShardReport(NamedTuple):
    """The outcome of a shard.

    Attributes:
        number: Its number within the dataset.
        split: Its split.
        file: Its path below the dataset.
        records: Number of its records.
        size_bytes: Length of the file.
        sha256: SHA-256 of the file, hexadecimal.
        rejects: Path of its rejects.
        rejected: Number of its rejects.
        index_bytes: Length of its index.
        index_sha256: SHA-256 of its index, hexadecimal.
        version: The version of the file that was written; it changes when others write it.
        index_version: The version of its index.
        objects: The values of `ObjectCounts` for it; none for targets without objects.
    """

    number: int
    split: str
    file: str
    records: int
    size_bytes: int
    sha256: str
    rejects: str
    rejected: int
    index_bytes: int
    index_sha256: str
    version: str = ""
    index_version: str = ""
    objects: tuple[int, ...] = ()

    @property
    def shard_state(self) -> tuple[int, str, str]:
        """Length, version and SHA-256 of the file, as it was written."""
        return self.size_bytes, self.version, self.sha256

    @property
    def index_state(self) -> tuple[int, str, str]:
        """Length, version and SHA-256 of its index."""
        return self.index_bytes, self.index_version, self.index_sha256

    def to_bytes(self) -> bytes:
        """Returns the report as it is kept in the work folder: a line of JSON, and its hash."""
        text = json.dumps(self)
        return f"{text}\n{hashlib.sha256(text.encode()).hexdigest()}\n".encode()

    @classmethod
    def parse(cls, data: bytes) -> ShardReport:
        """Reads the result of `to_bytes`.

        Raises:
            ValueError: It is not a report, or not as it was written.
            TypeError: It has other fields.
        """
        text = data.partition(b"\n")[0]
        report = cls(*json.loads(text))
        report = report._replace(objects=tuple(report.objects))
        if report.to_bytes() != data:
            raise ValueError("the report does not have its own hash")
        return report


def write_shard(
    task: ShardTask,
    readers: ImageReaders | None,
    tables: KeptTables,
    tick: Callable[[int, int], None] = lambda num_rows, before: None,
) -> ShardReport:
    """Writes a shard, its index and its rejects, unless an earlier run has done so.

    Args:
        task: The shard to write.
        readers: They read and encode images; None where rows have no images.
        tables: Keeps what shards have in common of the manifest, and of the old index.
        tick: Called with the number of rows done since the last call, and how many of them an
            earlier run has done.

    Raises:
        OutputError: A later attempt has taken the output.
    """
    task.check_current()
    done = (
        _link_shard(task, task.old, task.linked, tables)
        if task.old and task.linked
        else _find_finished(task)
    )
    if done:
        tick(task.range.num_rows, task.range.num_rows)
        return done
    kind = find_kind(task.kind)
    finished = [*task.results, task.work_file(_REJECTS)]
    shard_part, index_part, rejects_part = parts = [*map(task.folders.find_part, finished)]
    objects: list[tuple[int, ...]] = []
    with (
        OldRecords(task.old, tables, kind) if task.old else nullcontext() as old,
        storage.open_write(shard_part) as file,
        _open_index(task, index_part) as index,
        RejectsWriter(rejects_part) as rejects,
    ):
        writer = RecordWriter(file, task.compressed)

        def write(encoded: EncodedRows) -> None:
            writer.write_framed(encoded.pieces, len(encoded.index_rows))
            index.add(encoded.index_rows)
            for reject in encoded.rejects:
                rejects.add(reject)
            if encoded.objects:
                objects.append(add_objects(encoded.objects))
            tick(encoded.num_rows, 0)

        found = read_manifest_tables(
            task.folders.manifest, task.range.first_row, task.range.num_rows, tables
        )
        rows = chain.from_iterable(map(old.list_rows if old else list_rows, found))
        if task.has_images:
            if readers is None:
                raise ValueError("a shard with images needs readers")
            readers.encode(rows, kind, write, old.take if old else None)
        else:
            for batch, _ in cut_batches(rows, _BATCH_ROWS):
                write(encode_rows(batch, kind))
        writer.close()
        storage.sync_file(file)
    _give_names(parts, finished)
    shard = Shard(task.file, writer.records, writer.size_bytes, writer.sha256)
    report = _make_report(task, shard, rejects.count, index.sum)
    if kind.objects is not None:
        report = report._replace(objects=add_objects(objects))
    return _keep_report(task, report)


def _open_index(task: ShardTask, path: str) -> IndexWriter:
    return IndexWriter(
        path,
        task.range.shard,
        task.inputs,
        task.source,
        find_kind(task.kind).column,
        is_compressed=task.compressed,
        optional=task.optional,
        listed=find_kind(task.kind).listed,
    )


def _link_shard(
    task: ShardTask, dataset: OldDataset, shard: Shard, tables: KeptTables
) -> ShardReport:
    """Gives a shard of the old dataset its new name, and writes its index with the new rows."""
    path, index_path = task.results
    part = task.folders.find_part(index_path)
    rows = pa.concat_tables(
        read_manifest_tables(
            task.folders.manifest, task.range.first_row, task.range.num_rows, tables
        )
    )
    kind = find_kind(task.kind)
    objects: tuple[int, ...] = ()
    with OldRecords(dataset, tables, kind) as old, _open_index(task, part) as index:
        found = old.find(rows)
        columns = dict(zip(found.column_names, found.columns, strict=True))
        listed = dict(zip(rows.column_names, rows.columns, strict=True))
        if kind.listed is not None:
            listed["listed"] = listed.pop("label")
            counts = [len(numbers or ()) for numbers in list_values(listed["label_id"])]
            objects = astuple(ObjectCounts(sum(counts), most=max(counts, default=0)))
        columns |= listed
        columns |= {"source_size": rows["size"], "source_version": rows["mtime"]}
        index.add_table(pa.table(columns))
    _give_names((part,), (index_path,))
    storage.link_file(storage.join(dataset.folders.examples, shard.file), path)
    return _make_report(task, shard, 0, index.sum)._replace(objects=objects)


def _give_names(parts: Sequence[str], paths: Sequence[str]) -> None:
    """Gives complete files their names; on a store they have them already."""
    for part, path in zip(parts, paths, strict=True):
        if part != path:
            storage.rename(part, path)


def _make_report(task: ShardTask, shard: Shard, rejected: int, index: FileSum) -> ShardReport:
    """Returns the report of a shard, with the versions that its files have now."""
    report = ShardReport(
        number=task.range.number,
        split=task.range.split,
        file=task.file,
        records=shard.records,
        size_bytes=shard.bytes,
        sha256=shard.sha256,
        rejects=task.work_file(_REJECTS),
        rejected=rejected,
        index_bytes=index.size_bytes,
        index_sha256=index.sha256,
    )
    return _add_versions(task, report)


def _add_versions(task: ShardTask, report: ShardReport) -> ShardReport:
    versions = [storage.stat_file(path).version for path in task.results]
    return report._replace(version=versions[0], index_version=versions[1])


def _keep_report(task: ShardTask, report: ShardReport) -> ShardReport:
    """Writes the report of a shard to the work folder."""
    path = task.work_file(REPORT_SUFFIX)
    storage.write_bytes(path, report.to_bytes(), task.folders.find_part(path))
    return report


def _find_finished(task: ShardTask) -> ShardReport | None:
    """Returns the report of a shard that was finished before, also in another attempt's folder."""
    report = find_report(task)
    if report and _has_sums(task, report):
        return report
    for folders in task.earlier:
        before = task.find_in(folders)
        report = find_report(before)
        if report and _has_sums(before, report):
            for source, path in zip(before.results, task.results, strict=True):
                if source != path:
                    storage.copy_in_store(source, path)
            return _keep_report(task, _add_versions(task, report))
    return None


def find_report(task: ShardTask) -> ShardReport | None:
    """Returns the report of a shard that an earlier run of the same plan has finished.

    None when images were rejected: they may have been fixed since.
    """
    try:
        data = storage.read_bytes(task.work_file(REPORT_SUFFIX), MAX_REPORT_BYTES)
        report = ShardReport.parse(data)
        sizes = [storage.stat_file(path).size_bytes for path in task.results]
    except (*storage.UNUSABLE, ValueError, TypeError):
        return None
    is_same = sizes == [report.size_bytes, report.index_bytes]
    return report if is_same and not report.rejected else None


def _has_sums(task: ShardTask, report: ShardReport) -> bool:
    """Tells whether a shard and its index are, bit for bit, as an earlier run wrote them.

    The disk or the store may have lost bits since, or somebody may have changed the files.
    """
    expected = [report.sha256, report.index_sha256]
    with suppress(FileNotFoundError):  # a later attempt has removed it just now
        return all(map(storage.has_hash, task.results, expected))
    return False


@dataclass(frozen=True)
class ShardRange:
    """A shard as a range of the manifest.

    Attributes:
        split: Its split.
        shard: Its number within the split.
        num_shards: Number of shards of the split.
        number: Its number within the dataset.
        total: Number of shards of the dataset.
        first_row: Place of its first row in the manifest.
        num_rows: Number of its rows.
    """

    split: str
    shard: int
    num_shards: int
    number: int
    total: int
    first_row: int
    num_rows: int
