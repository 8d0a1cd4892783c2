"""CSV, with or without header, read strictly: one number a record, every cell text."""

from __future__ import annotations

import csv
import io
import posixpath
from collections.abc import Iterator
from itertools import islice

from darkroom import schema as schemas
from darkroom import storage
from darkroom.errors import DataError
from darkroom.schema import Schema
from darkroom.sources.base import BadRow, Row

_SAMPLE_RECORDS = 100
# Python 3.10's csv refuses NUL, later ones take it: a noncharacter stands in for it in both.
_NUL = "\ufdd0"


class CsvSource:
    """Reads a CSV file; see `Source`.

    A first record that names known columns is a header. Without one, the columns are told by what
    they hold, or named in order by the schema.
    """

    def __init__(self, path: str, schema: Schema | None) -> None:
        self.name = path
        self.base = self.identity_base = posixpath.dirname(path)
        records = [record for _, record in islice(self._records(), _SAMPLE_RECORDS)]
        if not records:
            raise DataError(f"{path} is empty.", "Expected a header or rows like split,uri,label.")
        self._check_delimiter(records[0])
        self._names, self._has_header = self._find_names(records, schema)
        if self._has_header:
            self.schema = schema or schemas.infer_schema(self._names, {})
            schemas.check_columns(self.schema, self._names)
        else:
            self.schema = schema or schemas.infer_schema([n for n in self._names if n], {})
        self._places = [self._names.index(name) for name, _ in self.schema.columns]

    def rows(self) -> Iterator[Row | BadRow]:
        """Yields the records after the header."""
        records = self._records()
        header = next(records)[1] if self._has_header else None
        width = len(self._names)
        for row, (line, cells) in enumerate(records, start=1):
            if len(cells) == width and cells != header:
                values: list[str | int | float | None] = [cells[i] for i in self._places]
                if any(_NUL in cell for cell in cells):
                    yield BadRow(row, "nul_byte", f"line {line} holds a NUL byte", values)
                elif any(cell and not name for name, cell in zip(self._names, cells, strict=True)):
                    yield self._bad_labels(row, cells)
                else:
                    yield Row(row, values)
            elif cells == header:
                yield BadRow(row, "repeated_header", f"line {line} repeats the header", [])
            else:
                yield self._ragged(row, line, cells)

    def _ragged(self, row: int, line: int, cells: list[str]) -> Row | BadRow:
        padded = cells + [""] * (len(self._names) - len(cells))
        values: list[str | int | float | None] = [padded[i] for i in self._places]
        if not self._has_header:
            # AutoML's rows end where the labels do, so their length says how many there are.
            if any(cells[len(self._names) :]):
                return self._bad_labels(row, cells)
            return Row(row, values)
        expected = len(self._names)
        detail = f"line {line} has {len(cells)} cells, the header {expected}"
        return BadRow(row, "ragged_row", detail, values)

    def _bad_labels(self, row: int, cells: list[str]) -> BadRow:
        label = self._names.index("label")
        labels = [cell for cell in [cells[label], *cells[label + 1 :]] if cell]
        values: list[str | int | float | None] = [cells[i] for i in self._places]
        return BadRow(row, "multi_label", f"{len(labels)} labels: {labels}", values)

    def _find_names(
        self, records: list[list[str]], schema: Schema | None
    ) -> tuple[list[str], bool]:
        first = [cell.strip() for cell in records[0]]
        if schema is None:
            if schemas.is_header(first):
                return first, True
            return schemas.infer_roles(records), False
        names = [name for name, _ in schema.columns]
        if set(names) <= set(first):
            return first, True
        if set(names).isdisjoint(first) and len(names) == len(first):
            return names, False
        schemas.check_columns(schema, first)
        return first, True

    def _check_delimiter(self, first: list[str]) -> None:
        if len(first) > 1:
            return
        for delimiter in (";", "\t", "|"):
            if delimiter in first[0]:
                raise DataError(
                    f"{self.name} seems to be separated by {delimiter!r}, expected ','.",
                    "Save it with commas.",
                )

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Yields the line on which each record that is not blank ends, and its cells."""
        with storage.open_read(self.name) as binary:
            text = io.TextIOWrapper(binary, encoding=self._encoding(), newline="")
            lines = (line.replace("\0", _NUL) if "\0" in line else line for line in text)
            reader = csv.reader(lines, strict=True)
            try:
                for cells in reader:
                    if cells:
                        yield reader.line_num, cells
            except UnicodeDecodeError as error:
                raise self._not_utf8(error) from error
            except csv.Error as error:
                raise DataError(
                    f"{self.name}, line {reader.line_num}: {error}.",
                    "Check the quotes there: a quoted cell must end, and quotes in it be doubled.",
                ) from error

    def _encoding(self) -> str:
        with storage.open_read(self.name) as file:
            if file.read(2) in (b"\xff\xfe", b"\xfe\xff"):
                raise DataError(
                    f"{self.name} is UTF-16.", "Save it as UTF-8: iconv -f UTF-16 -t UTF-8."
                )
        return "utf-8-sig"

    def _not_utf8(self, error: UnicodeDecodeError) -> DataError:
        with storage.open_read(self.name) as file:
            for line, text in enumerate(file, start=1):
                if "\ufffd" in text.decode("utf-8-sig", errors="replace"):
                    where = f"line {line}: {text[:60]!r}"
                    break
            else:
                where = str(error)
        return DataError(
            f"{self.name} is not UTF-8, {where}.",
            "Save it as UTF-8: iconv -f WINDOWS-1252 -t UTF-8 (or whatever it is in).",
        )
