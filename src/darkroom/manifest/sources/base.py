"""The common part of all readers of sources: rows, and the protocol of a reader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from darkroom.dataset.schema import Schema

Value = str | int | float | None


class Row(NamedTuple):
    """A row of a source.

    Attributes:
        row: Its number, from 1, in the source; header lines do not count.
        values: One value for every column of the source's schema, in its order. Text from text
            formats, typed values from typed ones; None for an empty cell.
    """

    row: int
    values: list[Value]


class BadRow(NamedTuple):
    """A row that the reader itself rejects.

    Attributes:
        row: Its number, from 1, in the source.
        reason: Reason code.
        detail: The problem, in words for a person.
        values: As in `Row`, as far as they are known.
    """

    row: int
    reason: str
    detail: str
    values: list[Value]


class Source(Protocol):
    """A reader of a source.

    Attributes:
        name: Path of the source, or a name for it in messages.
        base: Folder against which relative image paths are resolved.
        identity_base: Folder below which an image's key depends only on its path there; empty when
            the source has no folder.
        schema: Kind of every column that `rows` yields.
    """

    name: str
    base: str
    identity_base: str
    schema: Schema

    def rows(self) -> Iterator[Row | BadRow]:
        """Yields every row of the source, once, in its order."""
        ...
