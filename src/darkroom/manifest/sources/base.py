"""The common part of all readers of sources: rows, the protocol, and a check that files stay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from darkroom import storage
from darkroom.dataset.read_as import ReadAs
from darkroom.dataset.schema import Schema
from darkroom.errors import DataError, RejectError

if TYPE_CHECKING:
    from darkroom.manifest.sources.listing import Listing

# Everything else, above all http://, is rejected: a manifest must not make workers call hosts.
ALLOWED_SCHEMES = ("gs", "s3")
# A list is one of labels, or of objects, as is the dict of a form that says more about them.
Value = str | int | float | list[Any] | dict[str, Any] | None


class Row(NamedTuple):
    """A row of a source.

    Attributes:
        row: Its number, from 1, in the source; header lines do not count.
        values: One value for every column of the source's schema, in its order. Text from text
            formats, typed values from typed ones; None for an empty cell. Empty where a row has a
            fault and no cell is known.
        fault: Why it cannot be used, where the reader itself tells.
    """

    row: int
    values: list[Value]
    fault: RejectError | None = None


class Source(Protocol):
    """A reader of a source.

    Attributes:
        name: Path of the source, or a name for it in messages.
        base: Folder against which relative image paths are resolved.
        identity_base: Folder below which an image's key depends only on its path there; empty when
            the source has no folder.
        schema: Kind of every column that `rows` yields.
        span: The span of its rows, unless they have a column of it.
        split: The split that its name means, likewise; empty for none.
        first_row: Number of its first row through all sources, once they are read.
        has_types: Whether its cells have types. Where all are text, a label that is written as
            `1.0` is the whole number, and spaces at the end of a path are not a part of it.
        has_columns: Whether the columns of its schema are its own; else they are ours.
        read_as: What was decided about its form.
        listing: What is below the folder that the user named, where it has annotations.
        classes: The names of classes by their numbers or ids, where it numbers them.
    """

    name: str
    base: str
    identity_base: str
    schema: Schema
    span: int = 0
    split: str = ""
    first_row: int = 1
    has_types: bool = True
    has_columns: bool = True
    read_as: ReadAs
    listing: Listing | None = None
    classes: Mapping[Any, str] = MappingProxyType({})

    def rows(self) -> Iterator[Row]:
        """Yields every row of the source, once, in its order."""
        ...


class SourceState:
    """Size and version of a file at the moment when this object is created.

    A file that changes while it is read would give rows of two versions.

    Raises:
        OSError: The file cannot be looked up.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._found = storage.stat_file(path)

    def check(self) -> None:
        """Checks that the file is the same.

        Raises:
            DataError: It was changed or deleted.
        """
        try:
            found = storage.stat_file(self._path)
        except FileNotFoundError:
            found = None
        if found != self._found:
            raise DataError(
                f"{self._path} was changed while it was read.",
                "Wait until it is complete, then start again.",
            )
