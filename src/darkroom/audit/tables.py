"""Verifies the label map and the rejects of a dataset."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from itertools import zip_longest

import pyarrow.parquet as pq

from darkroom import storage
from darkroom.audit.findings import (
    REWRITE,
    TABLE,
    FileFinding,
    TableError,
    explain_error,
    format_cause,
)
from darkroom.dataset import layout, rejects
from darkroom.dataset.labels import format_labels
from darkroom.dataset.layout import DATASET_FILE, LABELS_FILE

_REJECTS_FILES = frozenset((layout.REJECTS_FILE, layout.REJECTS_LIST_FILE))


def check_labels(root: str, labels: Sequence[str]) -> Iterator[FileFinding]:
    """Yields what is wrong with `labels.txt`: it must be the label map of the commit."""
    try:
        found = storage.read_bytes(storage.join(root, LABELS_FILE))
    except OSError as error:
        yield explain_error(LABELS_FILE, error)
        return
    expected = format_labels(labels).encode()
    if found != expected:
        lines = zip_longest(found.split(b"\n"), expected.split(b"\n"))
        number = next(n for n, (one, other) in enumerate(lines, 1) if one != other)
        what = f"differs from the label map of {DATASET_FILE} in line {number}"
        yield FileFinding(LABELS_FILE, TABLE, what, REWRITE)


def has_rejects(root: str) -> bool:
    """Tells whether the rejects are in the folder; in TFX they are an artifact of their own."""
    return not _REJECTS_FILES.isdisjoint(storage.list_folder(root))


def check_reject_files(root: str, expected: int) -> Iterator[FileFinding]:
    """Yields what is wrong with the rejects: their number, or that the two files differ."""
    if not has_rejects(root):
        return
    with tempfile.TemporaryDirectory(prefix="darkroom-") as scratch:
        try:
            count = _rewrite_rejects(storage.join(root, layout.REJECTS_FILE), scratch)
            if count != expected:
                raise TableError(f"has {count} rows, but {DATASET_FILE} says {expected}")
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


def _rewrite_rejects(path: str, folder: str) -> int:
    """Writes both files of rejects again from the Parquet file; returns the number of rows."""
    storage.stat_file(path)
    try:
        return rejects.write_rejects(folder, [path])
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
    with storage.open_read(path) as one, storage.open_read(other) as two:
        for number, (first, second) in enumerate(zip_longest(one, two), 1):
            if first != second:
                return number
    return 0
