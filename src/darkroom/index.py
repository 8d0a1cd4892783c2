"""The record index: one row for every written record, beside the records.

Statistics, leakage, reports and reruns read the index, never the images.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from darkroom import storage
from darkroom.schema import Kind

INDEX_PATTERN = "index-*.parquet"
_SOURCE = b"darkroom.source"

_COLUMNS = (
    ("key", pa.string()),
    ("row", pa.int64()),
    ("uri", pa.string()),
    ("split", pa.string()),
    ("label", pa.string()),
    ("sha256", pa.string()),
    ("pixel_hash", pa.string()),
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
    ("shard", pa.int64()),
    ("position", pa.int64()),
)
_INPUT_TYPES = {Kind.INTEGER: pa.int64(), Kind.FLOAT: pa.float64(), Kind.STRING: pa.string()}


def index_schema(inputs: Mapping[str, str]) -> pa.Schema:
    """Returns the columns of an index.

    Args:
        inputs: Kind of every input column by name; they stand in the struct `extra`, so that no
            name of the user's can meet one of ours.
    """
    fields = [pa.field(name, kind) for name, kind in _COLUMNS]
    if inputs:
        extra = [pa.field(name, _INPUT_TYPES[Kind(kind)]) for name, kind in inputs.items()]
        fields.append(pa.field("extra", pa.struct(extra)))
    return pa.schema(fields)


def write_index(
    path: str, rows: Sequence[Mapping[str, Any]], inputs: Mapping[str, str], source: str
) -> None:
    """Writes the index of a shard, and the fingerprint of its source in the file's metadata."""
    schema = index_schema(inputs).with_metadata({_SOURCE: source.encode()})
    table = pa.Table.from_pylist(list(rows), schema=schema)
    with storage.open_write(path) as file:
        pq.write_table(table, file)


def list_index_files(folder: str) -> list[str]:
    """Returns the paths of a folder's index files in order."""
    return storage.match_pattern(storage.join(folder, INDEX_PATTERN))


def read_source_fingerprint(folder: str) -> str:
    """Returns the fingerprint of the source that an index was made from; empty when unknown."""
    for path in list_index_files(folder)[:1]:
        with storage.open_read(path) as file:
            metadata = pq.read_schema(file).metadata or {}
            return str(metadata.get(_SOURCE, b"").decode())
    return ""


def read_index(folder: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Reads a whole index.

    Raises:
        FileNotFoundError: The folder has no index files.
    """
    paths = list_index_files(folder)
    if not paths:
        raise FileNotFoundError(f"{folder} has no {INDEX_PATTERN}")
    tables = []
    for path in paths:
        with storage.open_read(path) as file:
            tables.append(pq.read_table(file, columns=columns))
    return pa.concat_tables(tables)
