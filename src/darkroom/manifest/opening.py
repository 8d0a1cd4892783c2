"""Opens a source: finds the reader of its form, by its ending, its content, or what a user says."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace

from darkroom import storage
from darkroom.dataset.schema import COLUMN_TARGETS, SINGLE_TARGETS, Kind
from darkroom.dataset.sources import SPAN_MARK, AnySource, find_sources, is_dataframe
from darkroom.dataset.splits import find_splits, list_below
from darkroom.errors import DataError, UsageError
from darkroom.manifest.formats import find_form, list_formats, load_format
from darkroom.manifest.formats.form import AnnotationForm
from darkroom.manifest.sources.base import Source
from darkroom.manifest.sources.dataframe import DataFrameSource
from darkroom.manifest.sources.evidence import read_evidence
from darkroom.manifest.sources.folder import FolderSource
from darkroom.manifest.sources.layouts import doubt_splits
from darkroom.manifest.sources.listing import Listing
from darkroom.manifest.sources.lists import LIST_ENDINGS, open_list
from darkroom.manifest.sources.roots import check_found, list_roots
from darkroom.options.manifest import ManifestOptions
from darkroom.options.source import AUTO_FORMAT, SOURCE_FORMATS, TASK_CLASS
from darkroom.runtime import by_name
from darkroom.storage.uris import find_ending, relative_identity


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
        return [_join_objects(DataFrameSource(source, options.columns), options)]
    if not isinstance(source, str | os.PathLike):
        package, name = type(source).__module__.partition(".")[0], type(source).__name__
        raise UsageError(
            f"The source is of type {f'{package}.{name}'.removeprefix('builtins.')}, expected a "
            "path or a DataFrame of pandas.",
            "Give the path of a CSV, JSONL or Parquet file, or of a folder of images. Other "
            "DataFrames have .to_pandas().",
        )
    sources = [each for path in find_sources(source) for each in _open(path, options)]
    _check_alike(sources)
    if SPAN_MARK in os.fspath(source):
        for each in sources:
            each.span = _read_span(os.fspath(source), each.name)
    if options.split_ratios is None and all(each.schema.split is None for each in sources):
        _name_splits(sources)
    return sources


def _name_splits(sources: Sequence[Source]) -> None:
    """Gives each list the split that its name means, or the doubt that only some mean one."""
    paths = [each.name for each in sources]
    listing = sources[0].listing
    if len(paths) == 1 and storage.is_folder(paths[0]):
        return  # Its files belong together.
    below = list_below(paths)
    if listing:
        below = [relative_identity(path, listing.path) for path in paths]
    found = find_splits(below)
    for each, split in zip(sources, found, strict=True):
        each.split = split
    if len(paths) > 1:
        first = sources[0]
        doubts = (*first.read_as.doubts, *doubt_splits(below, found))
        first.read_as = replace(first.read_as, doubts=doubts)


def _join_objects(table: Source, options: ManifestOptions) -> Source:
    """Returns the reader of a table; of its images where it has a row for each object."""
    if table.schema.objects is None:
        return table
    joined: Source = by_name.find("ObjectRows")(table, table.schema.objects, options)
    return joined


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
    return [each for each in written if each[1] in (*unnamed, *COLUMN_TARGETS)] + [
        *source.schema.inputs
    ]


def _open(path: str, options: ManifestOptions) -> list[Source]:
    """Opens one file or folder as annotations of a known form, or else by its ending.

    An error names the known form that it has.
    """
    ending = find_ending(path)
    if ending in LIST_ENDINGS and os.path.isdir(storage.local_path(path)):
        raise UsageError(
            f"{path} is a folder, and its name ends as that of a list.",
            "Give the lists in it by a pattern, or rename a folder of images.",
        )
    if ending not in LIST_ENDINGS and storage.is_folder(path):
        return _open_folder(Listing(path), options)
    form = _find_form(path, ending, options)
    if form and form.of_file:
        return [by_name.load_place(form.of_file)(path, options)]
    if form and options.format != AUTO_FORMAT:
        raise UsageError(
            f"{path} is a file, and a source of the format {options.format} is a folder.",
            "Give the folder with the annotations.",
        )
    if ending in LIST_ENDINGS:
        return [_join_objects(open_list(path, options), options)]
    if ending in (".tsv", ".tab"):
        raise UsageError(
            f"{path} is separated by tabs, not by commas.",
            "Save it with commas, as .csv: "
            f'pandas.read_csv("{path}", sep="\\t").to_csv("list.csv", index=False)',
        )
    formats = ", ".join(SOURCE_FORMATS[1:])
    raise UsageError(
        f"{path} is {form.title}." if form else f"The kind of the source {path} is unknown.",
        form.format_advice(path)
        if form
        else f"Known: {', '.join(LIST_ENDINGS)}, a folder of images, a DataFrame, and annotations "
        f"of boxes ({formats}). If it is one of these, name it with --format (format= in Python). "
        "Unpack an archive first.",
    )


def _find_form(path: str, ending: str, options: ManifestOptions) -> AnnotationForm | None:
    """Returns the form of a file, as the user says it or as its content tells it."""
    if options.format != AUTO_FORMAT:
        return load_format(options.format)
    # Who names the columns has a list.
    is_list = ending in LIST_ENDINGS and options.schema is not None
    return None if is_list or ending == ".parquet" else find_form(read_evidence(path))


def _open_folder(listing: Listing, options: ManifestOptions) -> list[Source]:
    """Opens a folder: as the first form of which there are annotations below it, else of images.

    The user may say that its folders are classes.
    """
    is_named = options.format != AUTO_FORMAT
    likely = () if TASK_CLASS in options.accept else list_formats()
    for form in [load_format(options.format)] if is_named else likely:
        files = form.find_files(listing)
        if files or is_named:
            found = _open_annotations(form, files, listing, options)
            for each in found:
                each.listing = listing
            return found
    return [FolderSource(listing, options.columns, options.subfolders, options.accept)]


def _open_annotations(
    form: AnnotationForm, files: Sequence[str], listing: Listing, options: ManifestOptions
) -> list[Source]:
    """Opens the annotations of a folder."""
    if form.of_folder:
        return [by_name.load_place(form.of_folder)(listing, options)]
    if not files:
        raise DataError(
            f"Nothing below {listing.path} is {form.title}.",
            "Name the file that has the annotations.",
        )
    listing.taken.update(files)
    roots = list_roots(listing.path, options)
    paths = [check_found(listing.join(file), roots) for file in files]
    reader = by_name.load_place(form.of_file)
    found: list[Source] = [reader(path, options, listing) for path in paths]
    if len(found) > 1:
        # Two files may have images of one name.
        for each in found:
            each.identity_base = listing.path
    return found
