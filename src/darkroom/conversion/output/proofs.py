"""Finds files of an output that darkroom wrote, by their content.

`SHA256SUMS` lists all files of a dataset. Datasets of format 1 have none, and attempts of version
0.1.0 left no journal, so their files prove themselves: the commit implies their content, or only
darkroom writes such content.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from darkroom import storage
from darkroom.conversion.output.listed import Lengths, find_listed
from darkroom.conversion.shard import MAX_REPORT_BYTES, ShardReport
from darkroom.dataset import index, labels, layout, rejects
from darkroom.dataset.checksums import count_plain_bytes, read_plain_sums
from darkroom.dataset.commit import Dataset
from darkroom.dataset.commit_fields import FORMAT_1
from darkroom.dataset.duplicates_list import is_unchanged
from darkroom.dataset.example import IMAGE_SOURCE_ID, decode_example
from darkroom.dataset.journal import PLAN_FOLDER
from darkroom.dataset.layout import Folders
from darkroom.dataset.rejects import MANIFEST_STAGE
from darkroom.dataset.tfrecord import begins_with_record, ends_in_first_record, read_records
from darkroom.errors import DarkroomError, DataError
from darkroom.storage.parquet import read_batches

# The first bytes of a Parquet file. An unfinished file with nothing else has nothing to lose.
_PARQUET_MAGIC = b"PAR1"
_INDEX_NAME = re.compile(r"index-\d{5,}-of-\d{5,}\.parquet")
_SHARD_NAME = r"/Split-([a-z]+)/data_tfrecord-(\d{5,})-of-\d{5,}(?:\.gz)?"
# Files in the folder of a plan. A report that is not finished has a made-up name.
_REPORT, _UNFINISHED_REPORT = r"shard-\d{5,}\.json", r"\.part-\w{8}"
_UNFINISHED_SHARD, _SHARD_REJECTS = r"shard-\d{5,}\.part", r"shard-\d{5,}\.rejects\.parquet"


def find_committed(folders: Folders, dataset: Dataset, found: Lengths) -> Iterator[str]:
    """Yields the files of a dataset that match its commit.

    Shards are compared by length, because reading them all takes as long as writing them. A shard
    of another length counts if it begins with the first record of its index, ends within its first
    record, or is empty: a truncated shard is still darkroom's, another file in its place is not.

    Args:
        folders: The folders of the dataset.
        dataset: Its commit.
        found: The lengths of the files in it, by path.
    """
    yield storage.join(folders.examples, layout.DATASET_FILE)
    label_path = storage.join(folders.examples, layout.LABELS_FILE)
    data = labels.format_labels(dataset.labels).encode()
    if found.get(label_path) == len(data) and storage.read_bytes(label_path) == data:
        yield label_path
    proven = {*find_listed(folders, found)}
    if dataset.format_version == FORMAT_1:
        proven |= {*_find_hashed(folders.index, dataset.index_files, found)}
    if not proven:
        # The list of hashes is missing. Only darkroom writes an index.
        names = (storage.join(folders.index, name) for name in dataset.index_files)
        proven = {path for path in names if path in found and _is_index(path, folders, found)}
    yield from proven
    for shard, name in zip(dataset.shards, dataset.index_files, strict=True):
        path, rows = storage.join(folders.examples, shard.file), f"{folders.index}/{name}"
        length = found.get(path, storage.NOT_REGULAR)
        is_cut = length > 0 and rows in proven
        if length in (shard.bytes, 0) or (is_cut and _begins_with(path, _read_first(rows))):
            yield path
    yield from _find_rejects(folders.rejects, found, dataset.rejected)
    # A record is in one group of equal bytes and in one of equal pixels, at most.
    yield from _find_duplicates(folders, found, 2 * dataset.written)


def find_uncommitted(folders: Folders, found: Lengths) -> Iterator[str]:
    """Yields the files of an attempt by version 0.1.0, which wrote no journal.

    Or those of a dataset that has lost its commit.

    No file counts unless there are signs of the attempt itself: its work folder if it was killed,
    its rejects if it rejected too many rows. The copy of an index alone is not such a sign.

    Args:
        folders: The folders of the output.
        found: The lengths of the files in it, by path.
    """
    reports = dict(_read_reports(folders, found))
    work = set(_find_work(folders, found)) | reports.keys()
    rejected = list(_find_rejects(folders.rejects, found))
    if not work and not rejected:
        return
    yield from work
    yield from rejected
    indexed = [path for path in found if _is_index(path, folders, found)]
    yield from indexed
    yield from _find_hashed(folders.index, [path.rpartition("/")[2] for path in indexed], found)
    written = [path for path in indexed if found[path] > len(_PARQUET_MAGIC)]
    rows = [row for path in written if (row := _read_first(path))]
    firsts = {(row["split"], row["shard"]): row for row in rows}
    sizes = {storage.join(folders.examples, r.file): r.size_bytes for r in reports.values()}
    for path, place in _list_shards(folders, found):
        if found[path] in (sizes.get(path), 0) or _begins_with(path, firsts.get(place)):
            yield path
    yield from _find_duplicates(folders, found)
    label_path = storage.join(folders.examples, layout.LABELS_FILE)
    has_labels = written and found.get(label_path, storage.NOT_REGULAR) >= 0
    if has_labels and _is_label_map(label_path, _read_labels(written, rejected)):
        yield label_path


@contextmanager
def _damage_proves_nothing() -> Iterator[None]:
    """Ends a block when a file is damaged or has another form; storage errors are raised."""
    try:
        yield
    except OSError as error:
        # Errors of pyarrow and gzip have no number.
        if isinstance(error, DarkroomError) or error.errno is not None:
            raise
    except (DataError, pa.ArrowException, ValueError, TypeError, KeyError, AttributeError):
        pass
    except (EOFError, zlib.error, struct.error):
        pass


def _find_hashed(folder: str, names: list[str], found: Lengths) -> Iterator[str]:
    """Yields the list of hashes, if it names just these files, and the files that match it."""
    path = storage.join(folder, layout.SUMS_FILE)
    sums: dict[str, str] = {}
    if found.get(path) == count_plain_bytes(names):
        with _damage_proves_nothing():
            sums = read_plain_sums(folder, names)
    if sorted(sums) != sorted(names):
        return
    yield path
    for name in names:
        each = storage.join(folder, name)
        if found.get(each, storage.NOT_REGULAR) >= 0 and storage.hash_file(each) == sums[name]:
            yield each


def _find_rejects(folder: str, found: Lengths, expected: int | None = None) -> Iterator[str]:
    """Yields the two files of rejects, as far as they have our form and the same content."""
    table, lines = (
        storage.join(folder, n) for n in (layout.REJECTS_FILE, layout.REJECTS_LIST_FILE)
    )
    rows = _count_rows(table, rejects.SCHEMA, found)
    if rows is None or expected not in (None, rows):
        return
    yield table
    if found.get(lines, storage.NOT_REGULAR) >= 0 and _are_lines_of(lines, table):
        yield lines


def _find_duplicates(folders: Folders, found: Lengths, most: int | None = None) -> Iterator[str]:
    """Yields the list of duplicates, unless it has too many rows, or somebody changed it."""
    path = storage.join(folders.examples, layout.DUPLICATES_FILE)
    rows = _count_rows(path, layout.DUPLICATES_SCHEMA, found)
    if rows is not None and (most is None or rows <= most) and is_unchanged(path):
        yield path


def _are_lines_of(path: str, table: str) -> bool:
    """Tells whether a file has the lines for the rejects in a table, byte for byte."""
    with _damage_proves_nothing(), storage.open_read(path) as file:
        for reject in rejects.read_rejects(table):
            line = rejects.format_line(reject)
            if file.read(len(line)) != line:
                return False
        return not file.read(1)
    return False


def _count_rows(path: str, schema: pa.Schema, found: Lengths) -> int | None:
    """Returns the rows of a Parquet file; None for a file of another form."""
    if found.get(path, storage.NOT_REGULAR) > 0:
        with _damage_proves_nothing(), storage.open_read(path) as file:
            footer = pq.ParquetFile(file)
            return footer.metadata.num_rows if footer.schema_arrow.equals(schema) else None
    return None


def _is_nothing_yet(path: str, found: Lengths) -> bool:
    """Tells whether a file is empty, or has only the first bytes of a Parquet file."""
    if found[path] == len(_PARQUET_MAGIC):
        return storage.read_bytes(path) == _PARQUET_MAGIC
    return found[path] == 0


def _is_index(path: str, folders: Folders, found: Lengths) -> bool:
    folder, _, name = path.rpartition("/")
    if folder != folders.index or not _INDEX_NAME.fullmatch(name) or found[path] < 0:
        return False
    if _is_nothing_yet(path, found):
        return True
    with _damage_proves_nothing():
        return index.is_index_file(path)
    return False


def _read_first(path: str) -> dict[str, object] | None:
    """Returns split, shard and key of the first row of an index; None when it has no rows."""
    with _damage_proves_nothing():
        for batch in read_batches(path, ["split", "shard", "key"], 1):
            return dict(batch.to_pylist()[0])
    return None


def _begins_with(path: str, first: Mapping[str, object] | None) -> bool:
    """Tells whether a shard begins with the first record of its index, whole or truncated."""
    if first is not None and ends_in_first_record(path):
        return True
    with _damage_proves_nothing():
        record = next(read_records(path), None)
        if record is None or first is None:
            return record is None and first is None
        return decode_example(record)[IMAGE_SOURCE_ID] == [str(first["key"]).encode()]
    return False


def _list_shards(folders: Folders, found: Lengths) -> Iterator[tuple[str, tuple[str, int]]]:
    """Yields the files with names of shards, with split and number."""
    name = re.compile(re.escape(folders.examples) + _SHARD_NAME)
    for path, length in found.items():
        if length >= 0 and (match := name.fullmatch(path)):
            yield path, (match[1], int(match[2]))


def _list_work(folders: Folders, found: Lengths, name: str) -> Iterator[str]:
    """Yields the files in the folders of plans whose names match a pattern."""
    pattern = re.compile(rf"{re.escape(folders.attempts)}/{PLAN_FOLDER.pattern}/(?:{name})")
    for path, length in found.items():
        if length >= 0 and pattern.fullmatch(path):
            yield path


def _read_reports(folders: Folders, found: Lengths) -> Iterator[tuple[str, ShardReport]]:
    names = re.compile(_SHARD_NAME)
    for path in _list_work(folders, found, f"{_REPORT}|{_UNFINISHED_REPORT}"):
        with _damage_proves_nothing():
            text = storage.read_bytes(path, MAX_REPORT_BYTES).partition(b"\n")[0]
            report = ShardReport(*json.loads(text))
            match = names.fullmatch(f"/{report.file}")
            if match and match[1] == report.split and isinstance(report.size_bytes, int):
                yield path, report


def _find_work(folders: Folders, found: Lengths) -> Iterator[str]:
    """Yields unfinished shards, the shards' rejects, and empty reports."""
    for path in _list_work(folders, found, _UNFINISHED_SHARD):
        if begins_with_record(path) or begins_with_record(path, compressed=True):
            yield path
    for path in _list_work(folders, found, _SHARD_REJECTS):
        is_table = _count_rows(path, rejects.SCHEMA, found) is not None
        if is_table or _is_nothing_yet(path, found):
            yield path
    for path in _list_work(folders, found, f"{_REPORT}|{_UNFINISHED_REPORT}"):
        if not found[path]:
            yield path


def _read_labels(indexed: list[str], rejected: list[str]) -> set[str]:
    """Returns the labels of all records, and of all images that were rejected."""
    known: set[str | None] = set()
    with _damage_proves_nothing():
        for path in indexed:
            for batch in read_batches(path, ["label"]):
                known.update(batch.column(0).unique().to_pylist())
        for path in rejected[:1]:
            known |= {r.label for r in rejects.read_rejects(path) if r.stage != MANIFEST_STAGE}
    return {label for label in known if label is not None}


def _is_label_map(path: str, known: set[str]) -> bool:
    """Tells whether a file lists exactly these labels, or the numbers from 0."""
    *lines, rest = storage.read_bytes(path).decode(errors="replace").split("\n")
    numbers = [str(number) for number in range(len(lines))]
    return not rest and (set(lines) == known or lines == numbers)
