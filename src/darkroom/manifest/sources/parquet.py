"""Parquet files: typed columns, read in batches."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from darkroom import storage
from darkroom.dataset.read_as import ReadAs
from darkroom.dataset.schema import Columns, Kind, Schema
from darkroom.errors import RejectError
from darkroom.manifest.sources.base import Row, Source, SourceState
from darkroom.manifest.sources.embedded import SAMPLE_ROWS, check_cells, list_looked_at
from darkroom.manifest.sources.typed import as_value, find_label_fault, has_text
from darkroom.storage.parquet import read_batches, report_damage

# pandas' name for the column of an index without a name.
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")


class ParquetSource(Source):
    """Reads a Parquet file; see `Source`."""

    def __init__(self, path: str, columns: Columns) -> None:
        self.name = path
        self.base = self.identity_base = posixpath.dirname(path)
        self._state = SourceState(path)
        arrow = read_arrow_schema(path)
        names = [name for name in arrow.names if not _PANDAS_INDEX.fullmatch(name)]
        self.schema = columns.find_schema(names, arrow_kinds(arrow))
        if looked_at := list_looked_at(self.schema):
            with _report_damage(path):
                batch = next(read_batches(path, looked_at, SAMPLE_ROWS), None)
                cells = {name: batch[name].to_pylist() if batch else () for name in looked_at}
            check_cells(path, self.schema, cells, f"pandas.read_parquet({path!r})")
        unread = tuple(name for name in names if name not in dict(self.schema.columns))
        self.read_as = ReadAs("Parquet", unread=unread)

    def rows(self) -> Iterator[Row]:
        """Yields every row."""
        columns = [name for name, _ in self.schema.columns]
        row = 0
        with _report_damage(self.name):
            for batch in read_batches(self.name, columns):
                cells = (batch.column(name).to_pylist() for name in columns)
                for values in zip(*cells, strict=True):
                    row += 1
                    yield make_row(row, values, self.schema)
        self._state.check()


def read_arrow_schema(path: str) -> pa.Schema:
    """Returns the columns of a Parquet file.

    Raises:
        DataError: It is not one, or it is damaged.
        OSError: It cannot be read.
    """
    with _report_damage(path), storage.open_read(path) as file:
        return pq.read_schema(file)


def _report_damage(path: str) -> AbstractContextManager[None]:
    message = f"{path} is not a Parquet file, or it is damaged"
    return report_damage(message, "Check how it was written.")


def arrow_kinds(schema: pa.Schema) -> dict[str, Kind]:
    """Returns the kind of every column of an Arrow schema; all but numbers become text."""
    kinds = {}
    for field in schema:
        if pa.types.is_integer(field.type) or pa.types.is_boolean(field.type):
            kinds[field.name] = Kind.INTEGER
        elif pa.types.is_floating(field.type):
            kinds[field.name] = Kind.FLOAT
        else:
            kinds[field.name] = Kind.STRING
    return kinds


def make_row(row: int, values: Sequence[Any], schema: Schema) -> Row:
    """Returns a row of typed values; it has a fault if the label, or an object, is not a value."""
    fault: RejectError | None = None
    cells = []
    for (name, kind), value in zip(schema.columns, values, strict=True):
        cells.append(as_value(value, kind))
        if name == schema.label:
            fault = find_label_fault(value, kind) or fault
        if kind is not Kind.IGNORED and not has_text(value):
            expected = f"column {name!r}: expected {kind.value}"
            fault = RejectError("bad_value", f"{expected}, got {type(value)}")
    return Row(row, cells, fault)
