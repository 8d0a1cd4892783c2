"""Verifies the label map and the rejects of a dataset."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import pyarrow.parquet as pq

from darkroom import storage
from darkroom.audit.findings import (
    MISSING,
    REWRITE,
    TABLE,
    FileFinding,
    TableError,
    explain_change,
    explain_error,
    format_cause,
)
from darkroom.audit.sums import Sums
from darkroom.dataset import layout, rejects
from darkroom.dataset.checksums import IS_MISSING, find_changed
from darkroom.dataset.commit import Dataset
from darkroom.dataset.layout import DATASET_FILE, LABELS_FILE
from darkroom.dataset.opening import compare_labels

_REJECTS_FILES = frozenset((layout.REJECTS_FILE, layout.REJECTS_LIST_FILE))
_DESCRIBE = "Delete it if it is there, then write it again with darkroom describe."
_EMBED = "Delete it if it is there, then make it again with darkroom embed."
_BLOCK_BYTES = 1 << 20


def check_labels(root: str, dataset: Dataset) -> Iterator[FileFinding]:
    """Yields the problems with `labels.txt`: it must be the label map of the commit."""
    try:
        what = compare_labels(root, dataset)
    except OSError as error:
        yield explain_error(LABELS_FILE, error)
        return
    if what:
        yield explain_change(LABELS_FILE, what)


def has_rejects(root: str, sums: Sums) -> bool:
    """Tells whether the rejects are in the folder; in TFX they are a separate artifact."""
    names = (*storage.list_folder(root), *sums)
    return not _REJECTS_FILES.isdisjoint(names)


def check_reject_files(root: str, dataset: Dataset, sums: Sums) -> Iterator[FileFinding]:
    """Yields the problems with the rejects, by their hashes if they are known.

    Without them: wrong is a wrong number of rows, or that the two files differ.
    """
    if not has_rejects(root, sums):
        return
    names = sorted(_REJECTS_FILES)
    if not sums:
        yield from _compare_rejects(root, dataset.rejected)
        return
    try:
        for name, what in find_changed(root, sums, names):
            yield explain_change(name, what)
    except OSError as error:
        yield explain_error(layout.REJECTS_FILE, error)


def check_sidecars(root: str, sums: Sums) -> Iterator[FileFinding]:
    """Yields the problems with the files for other readers that are listed, by their hashes."""
    for name in filter(layout.is_sidecar, sums):
        try:
            found = [*find_changed(root, sums, [name])]
        except OSError as error:
            yield explain_error(name, error)
            continue
        for _, what in found:
            kind = MISSING if what == IS_MISSING else TABLE
            hint = _EMBED if name == layout.FEATURES_FILE else _DESCRIBE
            yield FileFinding(name, kind, what, hint)


def _compare_rejects(root: str, expected: int) -> Iterator[FileFinding]:
    """Yields the problems with rejects whose hashes nobody knows."""
    with tempfile.TemporaryDirectory(prefix="darkroom-") as scratch:
        try:
            _check_rows(storage.join(root, layout.REJECTS_FILE), expected)
            _rewrite_rejects(storage.join(root, layout.REJECTS_FILE), scratch)
            _check_form(root, scratch)
        except TableError as error:
            yield FileFinding(layout.REJECTS_FILE, TABLE, str(error), REWRITE)
            return
        except OSError as error:
            yield explain_error(layout.REJECTS_FILE, error)
            return
        try:
            same = os.path.join(scratch, layout.REJECTS_LIST_FILE)
            line = _compare_lines(storage.join(root, layout.REJECTS_LIST_FILE), same)
        except OSError as error:
            yield explain_error(layout.REJECTS_LIST_FILE, error)
            return
    if line:
        what = f"and {layout.REJECTS_FILE} differ in line {line}: one of them is damaged"
        yield FileFinding(layout.REJECTS_LIST_FILE, TABLE, what, REWRITE)


def _check_rows(path: str, expected: int) -> None:
    """Checks the number of rows before any is decoded: a few bytes can be millions of rows."""
    storage.stat_file(path)
    try:
        with storage.open_read(path) as file:
            count = pq.read_metadata(file).num_rows
    except Exception as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise TableError(f"is damaged: {format_cause(error)}") from error
    if count != expected:
        raise TableError(f"has {count} rows, but {DATASET_FILE} says {expected}")


def _rewrite_rejects(path: str, folder: str) -> None:
    """Writes both files of rejects again from the Parquet file."""
    try:
        rejects.write_rejects(folder, [path])
    except Exception as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise TableError(f"is damaged: {format_cause(error)}") from error


def _check_form(root: str, scratch: str) -> None:
    """Checks that the Parquet file is byte for byte as it was written."""
    files = []
    for folder in (root, scratch):
        path = storage.join(folder, layout.REJECTS_FILE)
        with storage.open_read(path) as file:
            writer = pq.read_metadata(file).created_by
        files.append((writer, storage.hash_file(path)))
    # Another version of pyarrow may write other bytes for the same rows.
    (writer, found), (own_writer, expected) = files
    if writer == own_writer and found != expected:
        raise TableError("has the right rows, but not byte for byte as they were written")


def _compare_lines(path: str, other: str) -> int:
    """Returns the number, from 1, of the first line that differs in two files; 0 if none does."""
    number = 1
    with storage.open_read(path) as file, storage.open_read(other) as own:
        # In blocks: a damaged file may be one line of any length.
        while expected := own.read(_BLOCK_BYTES):
            found = file.read(len(expected))
            if found != expected:
                pairs = enumerate(zip(found, expected, strict=False))
                end = next((n for n, (one, two) in pairs if one != two), len(found))
                return number + expected.count(b"\n", 0, end)
            number += expected.count(b"\n")
        return number if file.read(1) else 0
