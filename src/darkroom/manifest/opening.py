"""Opens a source: finds the reader of its form, by its ending, its content, or what a user says."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from darkroom import storage
from darkroom.dataset.schema import SINGLE_TARGETS, TARGETS, Columns, Kind
from darkroom.dataset.splits import find_splits, list_below
from darkroom.errors import DataError, UsageError
from darkroom.manifest.sources import SPAN_MARK, AnySource, Source, find_sources
from darkroom.manifest.sources.csv import CsvSource
from darkroom.manifest.sources.dataframe import DataFrame, DataFrameSource, is_dataframe
from darkroom.manifest.sources.folder import FolderSource
from darkroom.manifest.sources.forms import (
    JSON_LINES_ENDINGS,
    find_form,
    find_object_columns,
    name_form,
    read_evidence,
)
from darkroom.manifest.sources.jsonl import JsonlSource
from darkroom.manifest.sources.parquet import ParquetSource
from darkroom.options.manifest import ManifestOptions, parse_source_encoding
from darkroom.options.source import AUTO_FORMAT, FORMATS, REFUSE_MERGE

_LIST_ENDINGS = (".csv", *JSON_LINES_ENDINGS, ".parquet")


def open_sources(source: AnySource, options: ManifestOptions | None = None) -> list[Source]:
    """Returns the reader of a source; one for each file when `source` is a pattern.

    Args:
        source: Path of a CSV, JSONL or Parquet file, a pattern of such files, a folder of images,
            a DataFrame, or annotations of a known format: a file, or the folder of a dataset.
        options: How its rows are read; the defaults if None.

    Raises:
        UsageError: The kind of the source or the encoding is unknown.
        DataError: No file matches the pattern, or the columns do not fit.
        OSError: The source cannot be read.
    """
    options = options or ManifestOptions()
    if is_dataframe(source):
        _check_one_row(source, options)
        return [DataFrameSource(source, options.columns)]
    if not isinstance(source, str | os.PathLike):
        raise UsageError(
            f"The source is of type {type(source).__name__}, expected a path or a DataFrame.",
            "Give the path of a CSV, JSONL or Parquet file, or of a folder of images.",
        )
    sources = [_open(path, options) for path in find_sources(source)]
    _check_alike(sources)
    if SPAN_MARK in os.fspath(source):
        for each in sources:
            each.span = _read_span(os.fspath(source), each.name)
    if options.split_ratios is None and all(each.schema.split is None for each in sources):
        _name_splits(sources)
    return sources


def _name_splits(sources: Sequence[Source]) -> None:
    """Gives each list the split that its name means; a single folder is not a list."""
    found = find_splits(list_below([each.name for each in sources]))
    if any(found) and (len(sources) > 1 or not storage.is_folder(sources[0].name)):
        for each, split in zip(sources, found, strict=True):
            each.split = split


def _check_one_row(frame: DataFrame, options: ManifestOptions) -> None:
    """Checks that a DataFrame has not a row for each box, where nothing says what that means."""
    found = find_object_columns(names := [*map(str, frame.columns)])
    if not found or options.columns != Columns() or options.merge_rows != REFUSE_MERGE:
        return
    if len({*map(str, frame.iloc[:, names.index(found["image"])])}) < len(frame):
        raise DataError(
            "The DataFrame has a row for each box, and an image in several rows.",
            'Write it as a CSV, and convert that: df.to_csv("boxes.csv", index=False).',
        )


def _read_span(pattern: str, path: str) -> int:
    """Returns the number in a path where a pattern has `{SPAN}`."""
    form = re.escape(pattern.rpartition("/")[2]).replace(r"\*", ".*").replace(r"\?", ".")
    form = form.replace(re.escape(SPAN_MARK), "([0-9]{1,18})")
    if found := re.fullmatch(form, path.rpartition("/")[2]):
        return int(found[1])
    raise DataError(
        f"{path} has no number where {pattern} has {SPAN_MARK}.",
        "Rename it, or move it elsewhere.",
    )


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


def _open(path: str, options: ManifestOptions) -> Source:
    """Opens one file or folder as annotations of a known format, or else by its ending.

    An error names the known form that it has.
    """
    ending, columns = os.path.splitext(path)[1].lower(), options.columns
    if ending in _LIST_ENDINGS and os.path.isdir(storage.local_path(path)):
        raise UsageError(
            f"{path} is a folder, and its name ends as that of a list.",
            "Give the lists in it by a pattern, or rename a folder of images.",
        )
    if name := _find_format(path, options):
        # Most sources have none, and need none of their readers.
        from darkroom.manifest.formats import open_format

        return open_format(name, path, options)
    if ending in (".csv", *JSON_LINES_ENDINGS):
        with name_form(path):
            opened = CsvSource if ending == ".csv" else JsonlSource
            return opened(path, columns, parse_source_encoding(options.source_encoding))
    if ending == ".parquet":
        return ParquetSource(path, columns)
    if storage.is_folder(path):
        return FolderSource(path, columns, options.subfolders, options.accept)
    if ending in (".tsv", ".tab"):
        raise UsageError(
            f"{path} is separated by tabs, not by commas.",
            "Save it with commas, as .csv: "
            f'pandas.read_csv("{path}", sep="\\t").to_csv("list.csv", index=False)',
        )
    form = find_form(read_evidence(path))
    formats = ", ".join(FORMATS[1:])
    raise UsageError(
        f"{path} is {form.name}." if form else f"The kind of the source {path} is unknown.",
        form.format_advice(path)
        if form
        else f"Known: {', '.join(_LIST_ENDINGS)}, a folder of images, a DataFrame, and annotations "
        f"of boxes ({formats}). If it is one of these, name it with --format (format= in Python). "
        "Unpack an archive first.",
    )


def _find_format(path: str, options: ManifestOptions) -> str:
    """Returns the name of the format of annotations; empty for a list, or a folder of images."""
    if options.format != AUTO_FORMAT:
        return options.format
    ending = os.path.splitext(path)[1].lower()
    # Who names the columns has a list.
    if options.schema is not None or ending == ".parquet":
        return ""
    if ending not in _LIST_ENDINGS and storage.is_folder(path):
        from darkroom.manifest.formats import find_layout

        return find_layout(path)
    form = find_form(read_evidence(path))
    return form.format if form else ""
