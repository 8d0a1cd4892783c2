"""CSV, with or without header, read strictly: every record has a number, every cell is text."""

from __future__ import annotations

import csv
import posixpath
from collections.abc import Iterator
from itertools import islice

from darkroom.dataset.schema import Columns, Schema
from darkroom.errors import DataError
from darkroom.manifest.sources import headers
from darkroom.manifest.sources.base import BadRow, Row, Source, Value
from darkroom.manifest.sources.text import MAX_LINE_CHARACTERS, TextFile
from darkroom.options.source import DEFAULT_SOURCE_ENCODING

_SAMPLE_RECORDS = 100
# Python 3.10's csv rejects NUL, later versions accept it. A noncharacter replaces it for both.
_NUL = "\ufdd0"


class CsvSource(Source):
    """Reads a CSV file; see `Source`.

    A first record that names known columns is a header. Without one, the columns are told apart by
    their content, or named in order by the schema.
    """

    def __init__(
        self, path: str, columns: Columns, encoding: str = DEFAULT_SOURCE_ENCODING
    ) -> None:
        self.name = path
        self.base = self.identity_base = posixpath.dirname(path)
        self._file = TextFile(path, encoding)
        records = [record for _, record in islice(self._records(), _SAMPLE_RECORDS)]
        if not records:
            raise DataError(f"{path} is empty.", "Expected a header or rows like split,uri,label.")
        self._check_delimiter(records[0])
        self._names, self._has_header = _find_names(records, columns.schema)
        # AutoML's rows end after their last label, so their length is the number of labels.
        self._is_open = not self._has_header and columns.schema is None
        named = [name for name in self._names if name]
        self.schema = columns.find_schema(named, {})
        self._places = [self._names.index(name) for name, _ in self.schema.columns]
        self._label = self._names.index(self.schema.label) if self.schema.label else None
        self._has_labels = self.schema.target_kind == "labels"
        self._unnamed = [
            place
            for place, name in enumerate(self._names)
            if not name and self._label is not None and place > self._label
        ]

    def rows(self) -> Iterator[Row | BadRow]:
        """Yields the records after the header."""
        records = self._records()
        header = next(records)[1] if self._has_header else None
        width = len(self._names)
        is_simple = self._places == list(range(width))
        for row, (line, cells) in enumerate(records, start=1):
            if is_simple and len(cells) == width and cells != header and _NUL not in "".join(cells):
                yield Row(row, cells)  # type: ignore[arg-type]
                continue
            if cells == header:
                yield BadRow(row, "repeated_header", f"line {line} repeats the header", [])
                continue
            padded = cells + [""] * (width - len(cells))
            values: list[Value] = [padded[place] for place in self._places]
            labels = self._list_labels(padded)
            if _NUL in "".join(cells):
                shown = [str(value).replace(_NUL, "\ufffd") for value in values]
                yield BadRow(row, "nul_byte", f"line {line} holds a NUL byte", [*shown])
            elif self._is_ragged(cells):
                which = "header" if self._has_header else "first row" if self._is_open else "schema"
                detail = f"line {line} has {len(cells)} cells, the {which} {width}"
                yield BadRow(row, "ragged_row", detail, values)
            elif labels and not self._has_labels:
                yield BadRow(row, "multi_label", f"{len(labels)} labels: {labels}", values)
            else:
                if labels:
                    values[self._places.index(self._label or 0)] = labels
                yield Row(row, values)

    def _is_ragged(self, cells: list[str]) -> bool:
        more = any(cells[len(self._names) :])
        is_fine = self._is_open and (not more or self._label is not None)
        return len(cells) != len(self._names) and not is_fine

    def _list_labels(self, cells: list[str]) -> list[str]:
        """Returns the labels of a record if columns without a name hold more of them."""
        if self._label is None:
            return []
        further = [cells[place] for place in self._unnamed] + cells[len(self._names) :]
        return [cell for cell in (cells[self._label], *further) if cell] if any(further) else []

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
        lines = (s.replace("\0", _NUL) if "\0" in s else s for s in self._file.lines())
        reader = csv.reader(lines, strict=True)
        # This limit is one for the whole process, and its default is low for text; it only grows.
        csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_CHARACTERS))
        end = 0
        try:
            for cells in reader:
                end = reader.line_num
                if cells:
                    yield end, cells
        except csv.Error as error:
            raise DataError(
                f"{self.name}: the record that begins in line {end + 1} does not end correctly: "
                f"{error}.",
                "Check the quotes there: close every quoted cell, and double the quotes inside it.",
            ) from error


def _find_names(records: list[list[str]], schema: Schema | None) -> tuple[list[str], bool]:
    """Returns the names of the columns, and whether the first record gives them."""
    first = [cell.strip() for cell in records[0]]
    if schema is None:
        if headers.is_header(records):
            return first, True
        return headers.infer_roles(records), False
    names = [name for name, _ in schema.columns]
    # With a name in common it is a header, and `check_columns` reports missing columns.
    has_header = len(names) != len(first) or not set(names).isdisjoint(first)
    return (first, True) if has_header else (names, False)
