"""The record index: one row for every written record, beside the records.

Statistics, leakage, reports and reruns read the index, never the images.

A JPEG has two hashes of its pixels, because decoders differ by a level here and there: `pixel_hash`
is of what TensorFlow decodes by default, `decoded_hash` of what Pillow and OpenCV do. An image that
was made of a JPEG by one of them has that hash as its `pixel_hash`.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import accumulate
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from darkroom import storage
from darkroom.dataset.checksums import SummedTable
from darkroom.dataset.columns import make_column
from darkroom.dataset.commit import Dataset
from darkroom.dataset.layout import INDEX_FOLDER, REJECTS_FILE, index_file
from darkroom.dataset.schema import Kind
from darkroom.errors import DataError
from darkroom.storage.parquet import check_num_rows, iterate_batches, report_damage
from darkroom.version import hash_code

# Columns that an index has where the manifest has them. `ignored`: with which images an image is in
# no finding, because people decided so. `group`: the group of a row, where rows were placed by
# groups or classes. `source_id`: the number that a record has as `image/source_id`, if its kind of
# target has one. `listed`: where objects are as the list says it, if targets are places.
OPTIONAL_COLUMNS = ("ignored", "group", "source_id")
INDEX_PATTERN = "index-*.parquet"
_SOURCE, _CODE = b"darkroom.source", b"darkroom.code"

_LABEL, _LISTED = "label", "listed"
# The caller says of what type the columns of labels are.
INDEX_COLUMNS = (
    ("key", pa.string()),
    ("id", pa.string()),
    ("row", pa.int64()),
    ("uri", pa.string()),
    ("split", pa.string()),
    ("span", pa.int64()),
    (_LABEL, None),
    ("sha256", pa.string()),
    ("pixel_hash", pa.string()),
    ("decoded_hash", pa.string()),
    ("perceptual_hash", pa.string()),
    ("private", pa.string()),
    ("height", pa.int64()),
    ("width", pa.int64()),
    ("channels", pa.int64()),
    ("format", pa.string()),
    ("size_bytes", pa.int64()),
    ("luminance", pa.float64()),
    ("changes", pa.string()),
    ("source_format", pa.string()),
    ("source_height", pa.int64()),
    ("source_width", pa.int64()),
    ("source_size", pa.int64()),
    ("source_version", pa.string()),
    ("shard", pa.int64()),
    ("position", pa.int64()),
    ("offset", pa.int64()),
    ("length", pa.int64()),
    ("ignored", pa.string()),
    ("group", pa.string()),
    ("source_id", pa.int64()),
    (_LISTED, None),
)
# Type of a column in Parquet files, by the kind of input column.
INPUT_TYPES = {Kind.INTEGER: pa.int64(), Kind.FLOAT: pa.float64(), Kind.STRING: pa.string()}
_EXTRA_TYPES = frozenset(INPUT_TYPES.values())
# Columns that have a value for each record.
NEVER_NULL = ("key", "id", "row", "split", "shard", "position")
# Columns that some indexes do not have, as those of an older version; they are null there.
NEWER_COLUMNS = frozenset({"perceptual_hash", "private", *OPTIONAL_COLUMNS})


def index_schema(
    inputs: Mapping[str, str],
    label: pa.DataType,
    optional: Collection[str] = (),
    listed: pa.DataType | None = None,
) -> pa.Schema:
    """Returns the columns of an index.

    Args:
        inputs: Kind of every input column by name; they are in the struct `extra`, so that their
            names cannot clash with ours.
        label: Type of the column `label`, as the kind of target has it.
        optional: Those of `OPTIONAL_COLUMNS` that it has.
        listed: Type of the column `listed`; None if it has none.
    """
    left_out = {*OPTIONAL_COLUMNS} - {*optional}
    types = {**dict(INDEX_COLUMNS), _LABEL: label, _LISTED: listed}
    fields = [pa.field(name, kind) for name, kind in types.items() if name not in left_out and kind]
    if inputs:
        extra = [pa.field(name, INPUT_TYPES[Kind(kind)]) for name, kind in inputs.items()]
        fields.append(pa.field("extra", pa.struct(extra)))
    return pa.schema(fields)


class IndexRow(NamedTuple):
    """The facts in the index about a record, except its place; see `PreparedImage`.

    Attributes:
        key: Key of the example.
        id: The text whose hash the key is.
        row: Its number in the source.
        uri: URI of its image.
        split: Its split.
        span: Its span.
        label: What it is labelled with.
        extra: Its input columns by name.
        group: Its group.
        ignored: The images with which it is in no finding.
        source_id: Its `image/source_id`; None where that is the key.
        listed: What it is labelled with as the list says it, where that is not the label.
        sha256: SHA-256 of the image as written, hexadecimal.
        pixel_hash: Hash of the pixels.
        decoded_hash: Hash of the pixels that Pillow and OpenCV decode.
        perceptual_hash: Hash of how the image looks.
        private: What its bytes say of place and camera.
        height: Height as written, in pixels.
        width: Width as written, in pixels.
        channels: 1 or 3.
        format: `jpeg`, `png` or `RAW`.
        size_bytes: Bytes of the image as written.
        luminance: Mean luminance, 0 to 255.
        changes: Codes of the changes, joined by commas.
        source_format: Format of the file.
        source_height: Height in the file.
        source_width: Width in the file.
        source_size: Bytes of the file, when the list was read; None if that is not known.
        source_version: Its version then: its modification time in nanoseconds, or its etag.
        length: Bytes of the record in its shard, with its frame.
    """

    key: str
    id: str
    row: int
    uri: str
    split: str
    span: int
    label: Any
    extra: Mapping[str, Any] | None = None
    group: str | None = None
    ignored: str | None = None
    source_id: int | None = None
    listed: Any = None
    sha256: str | None = None
    pixel_hash: str | None = None
    decoded_hash: str | None = None
    perceptual_hash: str | None = None
    private: str | None = None
    height: int | None = None
    width: int | None = None
    channels: int | None = None
    format: str | None = None
    size_bytes: int | None = None
    luminance: float | None = None
    changes: str | None = None
    source_format: str | None = None
    source_height: int | None = None
    source_width: int | None = None
    source_size: int | None = None
    source_version: str | None = None
    length: int = 0


# What the index says of an image, whatever the list says of it.
IMAGE_COLUMNS = IndexRow._fields[
    IndexRow._fields.index("sha256") : IndexRow._fields.index("source_size")
]


class IndexWriter(SummedTable):
    """Writes the index of a shard in bounded memory; a context manager.

    Args:
        path: The file.
        shard: Number of the shard within its split.
        inputs: Kind of every input column by name.
        source: Fingerprint of the source, kept in the file's metadata for a rerun.
        label: Type of the column `label`.
        is_compressed: Whether records have no place in the shard that a reader could go to.
        optional: As for `index_schema`.
        listed: As for `index_schema`.
    """

    def __init__(
        self,
        path: str,
        shard: int,
        inputs: Mapping[str, str],
        source: str,
        label: pa.DataType,
        *,
        is_compressed: bool = False,
        optional: Collection[str] = (),
        listed: pa.DataType | None = None,
    ) -> None:
        schema = index_schema(inputs, label, optional, listed).with_metadata(
            {_SOURCE: source.encode(), _CODE: hash_code().encode()}
        )
        super().__init__(path, schema)
        self._shard = shard
        self._position = self._offset = 0
        self._is_compressed = is_compressed

    def add(self, rows: Iterable[IndexRow]) -> None:
        """Adds rows in the order of their records."""
        self._add_rows(rows)

    def add_table(self, rows: pa.Table) -> None:
        """Adds all rows of the index of another shard, which has the same records."""
        rows = rows.set_column(
            rows.column_names.index("shard"), "shard", pa.repeat(self._shard, rows.num_rows)
        )
        self._writer.write_table(rows.select(self._schema.names).cast(self._schema))

    def _make_table(self, rows: Sequence[IndexRow]) -> pa.Table:
        count = len(rows)
        columns: dict[str, Any] = dict(zip(IndexRow._fields, zip(*rows, strict=True), strict=True))
        columns["shard"] = [self._shard] * count
        columns["position"] = range(self._position, self._position + count)
        # Each record begins where the one before it ends; the last sum is for the next rows.
        *columns["offset"], self._offset = accumulate(columns["length"], initial=self._offset)
        if self._is_compressed:
            columns["offset"] = columns["length"] = [None] * count
        self._position += count
        arrays = [make_column(columns[field.name], field.type) for field in self._schema]
        return pa.Table.from_arrays(arrays, schema=self._schema)


def list_index_files(folder: str) -> list[str]:
    """Returns the paths of a folder's index files in order."""
    # Not by a pattern of the whole path: the folder's own name may have a wildcard in it.
    names = fnmatch.filter(storage.list_folder(folder), INDEX_PATTERN)
    return [storage.join(folder, name) for name in names]


def find_index_files(folder: str) -> list[str]:
    """Returns the paths of a folder's index files in order.

    Raises:
        DataError: There are none, or some are missing.
    """
    paths = list_index_files(folder)
    if not paths:
        raise DataError(f"{folder} has no {INDEX_PATTERN}.", "Convert the source again.")
    expected = index_file(len(paths) - 1, len(paths))
    if not paths[-1].endswith(expected):
        raise DataError(
            f"{folder} has {len(paths)} index files, and {paths[-1]} is not the last of them.",
            "Convert the source again.",
        )
    return paths


def check_index(path: str, parquet: pq.ParquetFile, names: Sequence[str]) -> None:
    """Checks that an index file has columns, with the types that `IndexWriter` gives them.

    Args:
        path: The file.
        parquet: Its content.
        names: The columns; `label` may have any type.

    Raises:
        DataError: One is missing, or has another type.
    """
    types, found = {**dict(INDEX_COLUMNS), _LABEL: None}, parquet.schema_arrow
    for name in names:
        kind = found.field(name).type if found.get_field_index(name) >= 0 else "missing"
        if kind == "missing" or types[name] not in (kind, None):
            expected = types[name] or "a column"
            raise DataError(
                f"{path} is not an index: its column {name} is {kind}, expected {expected}.",
                _suggest_verify(path),
            )
    if found.get_all_field_indices("extra"):
        kind = found.field("extra").type if found.get_field_index("extra") >= 0 else "there twice"
        if not isinstance(kind, pa.StructType) or {each.type for each in kind} - _EXTRA_TYPES:
            raise DataError(
                f"{path} is not an index: its column extra is {kind}.", _suggest_verify(path)
            )


def _suggest_verify(path: str) -> str:
    # In TFX, the index has a separate folder.
    folder, inside = os.path.split(os.path.dirname(path))
    return f"List all faults with: darkroom verify {folder if inside == INDEX_FOLDER else 'DIR'}."


def check_index_rows(folder: str, dataset: Dataset, rejects: str | None = None) -> None:
    """Checks that the files of an index do not have too many rows, before they are read.

    Args:
        folder: The folder of the index.
        dataset: The commit.
        rejects: The path of `rejects.parquet`, which is checked, too; None for none.

    Raises:
        DataError: A file is missing, is damaged or has more rows than the commit says.
        OSError: It cannot be read.
    """
    paths = find_index_files(folder)
    if [*map(os.path.basename, paths)] != dataset.index_files:
        raise DataError(
            f"{folder} has {len(paths)} index files, expected {len(dataset.shards)}.",
            "Convert the source again.",
        )
    rows = {path: shard.records for path, shard in zip(paths, dataset.shards, strict=True)}
    if rejects is not None:
        rows[rejects] = dataset.files[REJECTS_FILE].rows
    for path, expected in rows.items():
        with storage.open_read(path) as file, _report_damage(path):
            check_num_rows(path, pq.ParquetFile(file), expected, _suggest_verify(path))


def read_index_batches(
    path: str,
    names: Sequence[str],
    batch_rows: int,
    optional: Sequence[str] = (),
    num_rows: int | None = None,
) -> Iterator[pa.Table]:
    """Yields the rows of an index file in batches, after its columns were checked.

    Args:
        path: The file.
        names: The columns to read.
        batch_rows: Most rows in a batch.
        optional: Columns that are read if they exist.
        num_rows: How many rows it must have, which is compared first; None if that is not known.

    Raises:
        DataError: It is damaged, or not an index.
        OSError: It cannot be read.
    """
    with storage.open_read(path) as file, _report_damage(path):
        parquet = pq.ParquetFile(file)
        if num_rows is not None:
            check_num_rows(path, parquet, num_rows, _suggest_verify(path))
        found = set(parquet.schema_arrow.names)
        newer = [name for name in names if name in NEWER_COLUMNS - found]
        chosen = [name for name in names if name not in newer]
        chosen += [name for name in optional if name in found]
        check_index(path, parquet, [name for name in chosen if name != "extra"])
        count = 0
        for batch in iterate_batches(parquet, chosen, batch_rows):
            if empty := [name for name in NEVER_NULL if name in chosen and batch[name].null_count]:
                raise DataError(f"{path} has records without {empty[0]}.", _suggest_verify(path))
            table = pa.Table.from_batches([batch])
            for name in newer:
                table = table.append_column(name, pa.nulls(len(table), dict(INDEX_COLUMNS)[name]))
            count += len(table)
            yield table
        if num_rows not in (None, count):
            what = f"{count:,} rows, expected {num_rows:,}"
            raise DataError(f"{path} has {what}.", _suggest_verify(path))


def read_source_fingerprint(folder: str) -> str:
    """Returns the fingerprint of the source that an index was made from; empty when unknown."""
    return _read_metadata(folder, _SOURCE)


def read_code(folder: str) -> str:
    """Returns the hash of the code that made an index; empty when unknown."""
    return _read_metadata(folder, _CODE)


def _read_metadata(folder: str, name: bytes) -> str:
    for path in list_index_files(folder)[:1]:
        with storage.open_read(path) as file:
            metadata = pq.read_schema(file).metadata or {}
            return str(metadata.get(name, b"").decode())
    return ""


def read_index_schema(folder: str) -> pa.Schema:
    """Returns the columns of an index."""
    with storage.open_read(find_index_files(folder)[0]) as file:
        return pq.read_schema(file)


def read_index(folder: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Reads a whole index.

    Raises:
        DataError: The folder has no index files, or a damaged one.
        OSError: A file cannot be read.
    """
    tables = []
    for path in find_index_files(folder):
        with storage.open_read(path) as file, _report_damage(path):
            check_index(path, pq.ParquetFile(file), columns or ())
            file.seek(0)
            # `ParquetFile.read` fails in newer versions of pyarrow when there are no rows.
            tables.append(pq.read_table(file, columns=columns))
    return pa.concat_tables(tables)


def _report_damage(path: str) -> AbstractContextManager[None]:
    return report_damage(f"{path} is damaged", _suggest_verify(path))
