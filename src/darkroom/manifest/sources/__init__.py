"""Readers of everything that lists images: CSV, JSONL, Parquet, DataFrames and folders."""

from __future__ import annotations

import os

from darkroom import storage
from darkroom.errors import DataError
from darkroom.manifest.sources.base import BadRow, Row, Source
from darkroom.manifest.sources.dataframe import DataFrame

__all__ = ["SPAN_MARK", "AnySource", "BadRow", "Row", "Source", "find_sources"]

AnySource = str | os.PathLike[str] | DataFrame

# In the name of a pattern of lists: the number there is the span of the rows.
SPAN_MARK = "{SPAN}"


def find_sources(source: str | os.PathLike[str]) -> list[str]:
    """Returns the absolute path of a source, or those of all files that match a pattern.

    Raises:
        DataError: No file matches the pattern.
        UsageError: The source is not a path.
        OSError: It does not exist, or cannot be seen.
    """
    path = storage.absolute(source).replace(SPAN_MARK, "*")
    if storage.exists(path):
        return [path]
    if not storage.is_pattern(path):
        raise storage.build_missing_error(path, "The source")
    if paths := storage.match_pattern(path):
        return paths
    raise DataError(f"No file matches {path}.", "Check the pattern, and quote it.")
