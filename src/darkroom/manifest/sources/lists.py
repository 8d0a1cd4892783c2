"""Opens lists by their endings: CSV, JSON Lines and Parquet."""

from __future__ import annotations

import os

from darkroom.manifest.sources.base import Source
from darkroom.manifest.sources.csv import CsvSource
from darkroom.manifest.sources.forms import JSON_LINES_ENDINGS, name_form
from darkroom.manifest.sources.jsonl import JsonlSource
from darkroom.manifest.sources.parquet import ParquetSource
from darkroom.options.manifest import ManifestOptions, parse_source_encoding

LIST_ENDINGS = (".csv", *JSON_LINES_ENDINGS, ".parquet")


def find_ending(path: str) -> str:
    """Returns the ending of a path, in lower case."""
    return os.path.splitext(path)[1].lower()


def open_list(path: str, options: ManifestOptions) -> Source:
    """Returns the reader of a list, whose ending is one of `LIST_ENDINGS`; others are read as CSV.

    Raises:
        DataError: It cannot be used; the error names the known form that it has.
        OSError: It cannot be read.
    """
    ending = find_ending(path)
    if ending == ".parquet":
        return ParquetSource(path, options.columns)
    opened = JsonlSource if ending in JSON_LINES_ENDINGS else CsvSource
    with name_form(path):
        return opened(path, options.columns, parse_source_encoding(options.source_encoding))
