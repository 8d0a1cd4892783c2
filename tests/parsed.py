"""Rows and cells as they are parsed, one by one."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from darkroom.dataset.rejects import Reject
from darkroom.manifest.label_map import resolve
from darkroom.manifest.rows import COLUMNS, parse_blocks
from darkroom.manifest.sources.base import Source
from darkroom.options.manifest import ManifestOptions
from darkroom.targets.boxes.kind import KIND
from darkroom.targets.form import Form
from darkroom.targets.kind import Lost

# A row that can be used.
Entry = namedtuple("Entry", COLUMNS)


def parse_rows(sources: Sequence[Source], options: ManifestOptions) -> Iterator[Entry | Reject]:
    """Yields what becomes of each row, in their order; lost objects follow their row."""
    for block in parse_blocks(sources, resolve(options)):
        rows = [*map(Entry, *block.columns.values()), *block.rejects]
        yield from sorted(rows, key=lambda row: row.row)


class ParsedCell(NamedTuple):
    """What a cell of objects holds: see `darkroom.targets.kind.Parsed`."""

    value: Any
    lost: Sequence[Lost]


def parse_objects(cell: Any, form: Form) -> ParsedCell:
    """Returns the objects of a cell.

    Raises:
        RejectError: It cannot be used.
    """
    found = KIND.parse([[cell]], form)
    for error in found.faults.values():
        raise error
    [value] = found.values
    return ParsedCell(value, [*found.lost.get(0, ())])
