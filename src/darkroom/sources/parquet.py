"""Parquet files: typed columns, read in batches."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from darkroom import schema as schemas
from darkroom import storage
from darkroom.batches import read_batches
from darkroom.errors import DataError
from darkroom.schema import Kind, Schema
from darkroom.sources.base import BadRow, Row
from darkroom.sources.typed import as_value


class ParquetSource:
    """Reads a Parquet file; see `Source`."""

    def __init__(self, path: str, schema: Schema | None) -> None:
        self.name = path
        self.base = self.identity_base = posixpath.dirname(path)
        with storage.open_read(path) as file:
            try:
                arrow = pq.ParquetFile(file).schema_arrow
            except pa.ArrowInvalid as error:
                raise DataError(
                    f"{path} is not a Parquet file: {error}.", "Check how it was written."
                ) from error
        self.schema = schema or schemas.infer_schema(arrow.names, arrow_kinds(arrow))
        schemas.check_columns(self.schema, arrow.names)

    def rows(self) -> Iterator[Row | BadRow]:
        """Yields every row."""
        columns = [name for name, _ in self.schema.columns]
        row = 0
        for batch in read_batches(self.name, columns):
            cells = (batch.column(name).to_pylist() for name in columns)
            for values in zip(*cells, strict=True):
                row += 1
                yield make_row(row, values, self.schema)


def arrow_kinds(schema: pa.Schema) -> dict[str, Kind]:
    """Returns the kind of every column of an Arrow schema; what is no number becomes text."""
    kinds = {}
    for field in schema:
        if pa.types.is_integer(field.type) or pa.types.is_boolean(field.type):
            kinds[field.name] = Kind.INTEGER
        elif pa.types.is_floating(field.type):
            kinds[field.name] = Kind.FLOAT
        else:
            kinds[field.name] = Kind.STRING
    return kinds


def make_row(row: int, values: tuple[Any, ...], schema: Schema) -> Row | BadRow:
    """Returns a row of typed values; several labels in one cell make it a bad one."""
    cells = [as_value(value) for value in values]
    for (name, _), value in zip(schema.columns, values, strict=True):
        if name == schema.label and isinstance(value, list | tuple) and len(value) != 1:
            return BadRow(row, "multi_label", f"{len(value)} labels: {list(value)}", cells)
    return Row(row, cells)
