"""Readers of everything that lists images: CSV, JSONL, Parquet, DataFrames and folders."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence

from darkroom import storage
from darkroom.dataset.schema import SINGLE_TARGETS, TARGETS, Columns, Kind
from darkroom.errors import DataError, UsageError
from darkroom.manifest.sources.base import BadRow, Row, Source
from darkroom.manifest.sources.csv import CsvSource
from darkroom.manifest.sources.dataframe import DataFrame, DataFrameSource, is_dataframe
from darkroom.manifest.sources.folder import FolderSource
from darkroom.manifest.sources.forms import JSON_LINES_ENDINGS, find_form, name_form, read_evidence
from darkroom.manifest.sources.jsonl import JsonlSource
from darkroom.manifest.sources.parquet import ParquetSource
from darkroom.options.manifest import parse_source_encoding
from darkroom.options.source import DEFAULT_SOURCE_ENCODING, JOIN_SUBFOLDERS

__all__ = ["AnySource", "BadRow", "Row", "Source", "find_sources", "open_sources"]

AnySource = str | os.PathLike[str] | DataFrame

_ANY_COLUMNS = Columns()
# In the name of a pattern of lists: the number there is the span of the rows.
_SPAN_MARK = "{SPAN}"
_LIST_ENDINGS = (".csv", *JSON_LINES_ENDINGS, ".parquet")


def open_sources(
    source: AnySource,
    columns: Columns = _ANY_COLUMNS,
    encoding: str = DEFAULT_SOURCE_ENCODING,
    subfolders: str = JOIN_SUBFOLDERS,
    accept: Collection[str] = (),
) -> list[Source]:
    """Returns the reader of a source; one for each file when `source` is a pattern.

    Args:
        source: Path of a CSV, JSONL or Parquet file, a pattern of such files, a folder of images,
            or a DataFrame.
        columns: What is known about its columns.
        encoding: How a CSV or JSONL file is encoded.
        subfolders: How to treat images in folders below that of a label.
        accept: Names of doubts for which a source is not refused.

    Raises:
        UsageError: The kind of the source or the encoding is unknown.
        DataError: No file matches the pattern, or the columns do not fit.
        OSError: The source cannot be read.
    """
    if is_dataframe(source):
        return [DataFrameSource(source, columns)]
    if not isinstance(source, str | os.PathLike):
        raise UsageError(
            f"The source is of type {type(source).__name__}, expected a path or a DataFrame.",
            "Give the path of a CSV, JSONL or Parquet file, or of a folder of images.",
        )
    encoding = parse_source_encoding(encoding)
    sources = [_open(path, columns, encoding, subfolders, accept) for path in find_sources(source)]
    _check_alike(sources)
    if _SPAN_MARK in os.fspath(source):
        for each in sources:
            each.span = _read_span(os.fspath(source), each.name)
    return sources


def _read_span(pattern: str, path: str) -> int:
    """Returns the number in a path where a pattern has `{SPAN}`."""
    form = re.escape(pattern.rpartition("/")[2]).replace(r"\*", ".*").replace(r"\?", ".")
    form = form.replace(re.escape(_SPAN_MARK), "([0-9]{1,18})")
    if found := re.fullmatch(form, path.rpartition("/")[2]):
        return int(found[1])
    raise DataError(
        f"{path} has no number where {pattern} has {_SPAN_MARK}.",
        "Rename it, or move it elsewhere.",
    )


def find_sources(source: str | os.PathLike[str]) -> list[str]:
    """Returns the absolute path of a source, or those of all files that match a pattern.

    Raises:
        DataError: No file matches the pattern.
        UsageError: The source is not a path.
        OSError: It does not exist, or cannot be seen.
    """
    path = storage.absolute(source).replace(_SPAN_MARK, "*")
    if storage.exists(path):
        return [path]
    if not storage.is_pattern(path):
        raise storage.build_missing_error(path, "The source")
    if paths := storage.match_pattern(path):
        return paths
    raise DataError(f"No file matches {path}.", "Check the pattern, and quote it.")


def _check_alike(sources: Sequence[Source]) -> None:
    """Checks that all files of a pattern have columns of the same kinds, in any order."""
    first, *others = sources
    for source in others:
        if set(_written_columns(source)) != set(_written_columns(first)):
            raise DataError(
                f"The columns of {source.name} differ from those of {first.name}: "
                f"{source.schema.to_json()}, not {first.schema.to_json()}.",
                "Give the files the same columns, or name those that all have with --columns.",
            )


def _written_columns(source: Source) -> list[tuple[str, Kind]]:
    # Images and labels may have any name here: their features have separate names.
    unnamed = (Kind.IMAGE, *SINGLE_TARGETS)
    written = (
        (kind.value if kind in unnamed else name, kind) for name, kind in source.schema.columns
    )
    return [each for each in written if each[1] in (*unnamed, *TARGETS)] + [*source.schema.inputs]


def _open(
    path: str, columns: Columns, encoding: str, subfolders: str, accept: Collection[str]
) -> Source:
    """Opens one file or folder by its ending; an error names the known form that it has."""
    ending = os.path.splitext(path)[1].lower()
    if ending in _LIST_ENDINGS and os.path.isdir(storage.local_path(path)):
        raise UsageError(
            f"{path} is a folder, and its name ends as that of a list.",
            "Give the lists in it by a pattern, or rename a folder of images.",
        )
    if ending in (".csv", *JSON_LINES_ENDINGS):
        with name_form(path):
            opened = CsvSource if ending == ".csv" else JsonlSource
            return opened(path, columns, encoding)
    if ending == ".parquet":
        return ParquetSource(path, columns)
    if storage.is_folder(path):
        return FolderSource(path, columns, subfolders, accept)
    if ending in (".tsv", ".tab"):
        raise UsageError(
            f"{path} is separated by tabs, not by commas.",
            "Save it with commas, as .csv: "
            f'pandas.read_csv("{path}", sep="\\t").to_csv("list.csv", index=False)',
        )
    form = find_form(read_evidence(path))
    raise UsageError(
        f"{path} is {form.name}." if form else f"The kind of the source {path} is unknown.",
        form.format_advice(path)
        if form
        else f"Known: {', '.join(_LIST_ENDINGS)}, a folder of images, or a DataFrame.",
    )
