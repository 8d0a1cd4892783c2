"""CSV, with or without header, read strictly: every record has a number, every cell is text."""

from __future__ import annotations

import csv
import posixpath
import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, count, islice, repeat

from darkroom.dataset.read_as import Doubt, ReadAs
from darkroom.dataset.schema import Columns, Kind
from darkroom.errors import DataError, RejectError
from darkroom.manifest.sources import headers
from darkroom.manifest.sources.base import Row, Source, Value
from darkroom.manifest.sources.embedded import check_cells
from darkroom.manifest.sources.objects import as_objects
from darkroom.manifest.sources.text import MAX_LINE_CHARACTERS, TextFile
from darkroom.options.source import DEFAULT_SOURCE_ENCODING, FIRST_LINE
from darkroom.runtime.text import format_count

_SAMPLE_RECORDS = 100
# That are looked at together.
_BLOCK_RECORDS = 128
# Python 3.10's csv rejects NUL, later versions accept it. A noncharacter replaces it for both.
_NUL = "\ufdd0"
# A quote begins a quoted cell only at its start, so the spaces have to go first.
_SPACED_QUOTE = re.compile(r' +"')


class CsvSource(Source):
    """Reads a CSV file; see `Source`.

    A record that names known columns is a header, if no image is before it. Without one, the
    columns are told apart by their content, or named in order by the schema.

    Spaces after a comma are left out in the whole file where the header has them, or a quote
    follows one; else they are a part of the cell.
    """

    has_types = False

    def __init__(
        self,
        path: str,
        columns: Columns,
        encoding: str = DEFAULT_SOURCE_ENCODING,
    ) -> None:
        self.name = path
        self.base = self.identity_base = posixpath.dirname(path)
        self._file = TextFile(path, encoding)
        self._is_spaced = self._has_nul = False
        sample = self._read_sample()
        if not sample:
            raise DataError(f"{path} is empty.", "Expected a header or rows like split,uri,label.")
        found = headers.find_header([cells for _, cells in sample], columns.schema)
        if self._has_spaces([cells for _, cells in sample[found.first :]], found.names):
            self._is_spaced = True
            sample = self._read_sample()
        records = [cells for _, cells in sample]
        self._check_form(records[found.first])
        self._first, self._has_header = found.first, found.names is not None
        if found.names is not None:
            self._names = found.names
        elif columns.schema is not None:
            self._names = [name for name, _ in columns.schema.columns]
        else:
            self._names = headers.infer_roles(records[found.first :])
        # AutoML's rows end after their last label, so their length is the number of labels.
        self._is_open = not self._has_header and columns.schema is None
        named = [name for name in self._names if name]
        self.schema = columns.find_schema(named, {})
        self._places = [self._names.index(name) for name, _ in self.schema.columns]
        self._label = self._names.index(self.schema.label) if self.schema.label else None
        self._has_labels = self.schema.target_kind == "labels"
        kinds = [kind for _, kind in self.schema.columns]
        self._objects = kinds.index(Kind.OBJECTS) if Kind.OBJECTS in kinds else None
        self._unnamed = [
            place
            for place, name in enumerate(self._names)
            if not name and self._label is not None and place > self._label
        ]
        rows = records[found.first + self._has_header :]
        cells = {
            name: [row[place] or None for row in rows if place < len(row)]
            for place, name in enumerate(self._names)
        }
        check_cells(path, self.schema, cells, f"pandas.read_csv({path!r})")
        line = sample[found.first][0] if self._has_header else 0
        self.read_as = ReadAs(
            "CSV",
            encoding=encoding,
            header=line,
            remarks=tuple(self._list_remarks(records)),
            unread=tuple(name for name in named if name not in dict(self.schema.columns)),
            doubts=tuple(self._list_doubts(records, columns)),
        )

    def _read_sample(self) -> list[tuple[int, list[str]]]:
        return list(islice(self._records(), _SAMPLE_RECORDS))

    def _has_spaces(self, records: Sequence[list[str]], header: Sequence[str] | None) -> bool:
        """Tells whether spaces after commas are only there for the eye."""
        cells = [cell for record in records for cell in record[1:]]
        if self._is_spaced:
            return True
        # Without a header, all cells must have one.
        judged = records[0][1:] if header is not None else list(filter(None, cells))
        rule = any if header is not None else all
        return bool(judged) and rule(cell.startswith(" ") for cell in judged)

    def _list_remarks(self, records: Sequence[list[str]]) -> Iterator[str]:
        """Yields what was decided about the form of the file, in words; see `ReadAs.remarks`."""
        if before := records[: self._first]:
            # Not its text, which could say anything.
            yield f"{format_count(len(before), 'line')} before it left out"
        if self._is_spaced:
            yield "spaces after commas left out"
        elif any(cell.startswith(" ") for record in records for cell in record[1:]):
            yield "spaces after commas kept"
        if not self._has_header:
            yield f"its columns are {', '.join(name or 'not read' for name in self._names)}"
        # After the label, a column without a name has more labels.
        elif "" in self._names[: self._label]:
            yield "columns without a name left out"

    def _list_doubts(self, records: Sequence[list[str]], columns: Columns) -> Iterator[Doubt]:
        """Yields a doubt if the first line may be a header, or one that was left out may be a row.

        Args:
            records: The sample, from the first line of the file.
            columns: What the user said about the columns.
        """
        before = [each for each in records[: self._first] if not headers.is_comment(each)]
        if self._has_header:
            is_odd = any(map(headers.looks_like_image, before))
            said = "A line before the header looks like an image" if is_odd else ""
        else:
            first = self._first - len(before)
            odd = "" if columns.schema else headers.find_odd_first(records[first:])
            said = f"The first line {odd}" if odd else ""
        what, hint = "read as a row", "Delete it if it is none. If it is one"
        if before:
            what, hint = (
                "left out",
                "Move it below the header, or complete it, if it is a row. If not",
            )
        if said:
            yield Doubt(
                FIRST_LINE,
                f"{said}; it was {what}.",
                f"{hint}: --accept {FIRST_LINE} (accept= in Python).",
            )

    def rows(self) -> Iterator[Row]:
        """Yields the records after the header."""
        records = islice(self._records(), self._first, None)
        header = next(records)[1] if self._has_header else None
        is_simple = self._places == list(range(len(self._names))) and self._objects is None
        # As Row, in a third of the time.
        make, first = partial(tuple.__new__, Row), 1
        while block := [*islice(records, _BLOCK_RECORDS)]:
            lines, cells = zip(*block, strict=True)
            is_odd = {*map(len, cells)} != {len(self._names)} or header in cells
            if is_simple and not is_odd and not self._has_nul:
                yield from map(make, zip(count(first), cells, repeat(None)))
            else:
                yield from map(self._make_row, count(first), lines, cells, repeat(header))
            first += len(block)

    def _make_row(self, row: int, line: int, cells: list[str], header: list[str] | None) -> Row:
        """Returns the row of a record that ends on a line."""
        if cells == header:
            why = RejectError("repeated_header", f"line {line} repeats the header")
            return Row(row, [], why)
        width = len(self._names)
        padded = cells + [""] * (width - len(cells))
        values: list[Value] = [padded[place] for place in self._places]
        labels = self._list_labels(padded)
        if _NUL in "".join(cells):
            shown = [str(value).replace(_NUL, "\ufffd") for value in values]
            return Row(row, [*shown], RejectError("nul_byte", f"line {line} holds a NUL byte"))
        if self._is_ragged(cells):
            which = "header" if self._has_header else "first row" if self._is_open else "schema"
            detail = f"line {line} has {len(cells)} cells, the {which} {width}"
            return Row(row, values, RejectError("ragged_row", detail))
        if labels and not self._has_labels:
            why = RejectError("multi_label", f"{len(labels)} labels: {labels}")
            return Row(row, values, why)
        if labels:
            values[self._places.index(self._label or 0)] = labels
        if self._objects is not None:
            values[self._objects] = as_objects(values[self._objects])
        return Row(row, values)

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

    def _check_form(self, first: list[str]) -> None:
        """Raises a `DataError` if the first row shows JSON, XML, or another delimiter."""
        if first[0].lstrip().startswith(("{", "[{", "<")):
            raise DataError(f"{self.name} is not a CSV.", "Give it the ending of what it is.")
        for delimiter in (";", "\t", "|"):
            if len(first) == 1 and delimiter in first[0]:
                raise DataError(
                    f"{self.name} seems to be separated by {delimiter!r}, expected ','.",
                    "Save it with commas.",
                )

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Yields the line on which each record that is not blank ends, and its cells."""
        taken: list[str] = []  # Lines, from the record that is read on.
        end = before = 0
        is_plain = True

        def read_blocks() -> Iterator[list[str]]:
            nonlocal taken, before, is_plain
            for block in self._file.blocks():
                if "\0" in "".join(block):
                    block = [line.replace("\0", _NUL) for line in block]
                taken = taken[end - before :] + block
                text, before = "".join(taken), end
                is_plain, self._has_nul = ' "' not in text, self._has_nul or _NUL in text
                yield block

        lines = chain.from_iterable(read_blocks())
        reader = csv.reader(lines, strict=True, skipinitialspace=self._is_spaced)
        # This limit is one for the whole process, and its default is low for text; it only grows.
        csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_CHARACTERS))
        try:
            for cells in reader:
                start, end = end, reader.line_num
                if not is_plain and any(map(_SPACED_QUOTE.match, cells[1:])):
                    # After the sample, a space before a quote is met for the first time.
                    again = taken[start - before : end - before]
                    cells = next(csv.reader(again, strict=True, skipinitialspace=True))
                    self._is_spaced = True
                if cells:
                    yield end, cells
        except csv.Error as error:
            raise DataError(
                f"{self.name}: the record that begins in line {end + 1} does not end correctly: "
                f"{error}.",
                "Check the quotes there: close every quoted cell, and double the quotes inside it.",
            ) from error
