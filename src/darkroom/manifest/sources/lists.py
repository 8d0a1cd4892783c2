"""Opens lists by their endings: CSV, JSON Lines and Parquet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from darkroom.dataset.schema import Schema
from darkroom.errors import DataError
from darkroom.manifest.formats import name_form
from darkroom.manifest.sources.base import Source
from darkroom.manifest.sources.csv import CsvSource
from darkroom.manifest.sources.jsonl import JsonlSource
from darkroom.manifest.sources.listing import Listing
from darkroom.manifest.sources.parquet import ParquetSource, read_arrow_schema
from darkroom.options.manifest import ManifestOptions
from darkroom.storage.uris import find_ending

_JSON_LINES_ENDINGS = (".jsonl", ".ndjson")
LIST_ENDINGS = (".csv", *_JSON_LINES_ENDINGS, ".parquet")


def open_list(path: str, options: ManifestOptions) -> Source:
    """Returns the reader of a list, whose ending is one of `LIST_ENDINGS`; others are read as CSV.

    Raises:
        DataError: It cannot be used; the error names the known form that it has.
        OSError: It cannot be read.
    """
    ending = find_ending(path)
    if ending == ".parquet":
        return ParquetSource(path, options.columns)
    is_jsonl = ending in _JSON_LINES_ENDINGS
    opened = JsonlSource if is_jsonl else CsvSource
    with name_form(path, is_jsonl=is_jsonl):
        return opened(path, options.columns, options.source_encoding)


def find_lists(listing: Listing, fits: Callable[[str, Schema], bool]) -> Iterator[str]:
    """Yields the lists below a folder that fit, by their paths and their columns.

    Raises:
        DataError: A Parquet file is damaged.
        OSError: A list cannot be read.
    """

    def has(file: str) -> bool:
        # Each form that is known by columns asks, and what nobody took is counted by them.
        if file not in listing.schemas:
            listing.schemas[file] = _find_schema(listing.join(file))
        schema = listing.schemas[file]
        return schema is not None and fits(file, schema)

    return listing.find_by(LIST_ENDINGS, has)


def _find_schema(path: str) -> Schema | None:
    """Returns the columns of a list; None for a file that is not a list of images."""
    if path.endswith(".parquet"):
        read_arrow_schema(path)
    with suppress(DataError):
        return open_list(path, ManifestOptions()).schema
    return None
