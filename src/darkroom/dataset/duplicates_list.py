"""Tells a list of duplicates that darkroom wrote from other files, and from one that was edited.

People edit such a list to decide which images go. Then it is theirs, and no command replaces it.
"""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq

from darkroom import storage
from darkroom.dataset.layout import DUPLICATES_SCHEMA
from darkroom.errors import DarkroomError, OutputError
from darkroom.storage.parquet import read_batches

_COLUMNS = ["group", "keep", "labels_differ"]
# What darkroom writes with; pandas adds metadata, and other programs have names of their own.
_WRITER = "parquet-cpp-arrow"


def check_replaceable(path: str) -> None:
    """Checks that a path is free, or has a list of duplicates that nobody changed.

    Raises:
        OutputError: There is another file.
        OSError: The store fails.
    """
    if storage.exists(path) and not is_unchanged(path):
        raise OutputError(
            f"{path} is a file that darkroom did not write, or that changed since.",
            "Move it elsewhere, or choose another file with --output.",
        )


def is_unchanged(path: str) -> bool:
    """Tells whether a file is a list of duplicates that nobody changed, or is empty.

    Raises:
        OSError: The store fails.
    """
    is_local = not storage.is_remote(path)
    if is_local and (os.path.islink(path) or not os.path.isfile(path)):
        return False
    try:
        if not storage.stat_file(path).size_bytes:
            return True
        return _has_our_form(path) and _has_our_rows(path)
    except FileNotFoundError:
        return False  # a prefix of remote files
    except (OSError, pa.ArrowException) as error:
        # Errors of pyarrow have no number.
        if isinstance(error, DarkroomError) or getattr(error, "errno", None) is not None:
            raise
        return False


def _has_our_form(path: str) -> bool:
    with storage.open_read(path) as file:
        footer = pq.ParquetFile(file)
        is_ours = footer.schema_arrow.equals(DUPLICATES_SCHEMA, check_metadata=True)
        return is_ours and str(footer.metadata.created_by).startswith(_WRITER)


def _has_our_rows(path: str) -> bool:
    """Tells whether the groups are numbered, and the images kept, as darkroom does it."""
    previous = 0
    for batch in read_batches(path, _COLUMNS):
        for row in batch.to_pylist():
            is_first = row["group"] != previous
            is_kept = is_first or row["labels_differ"]
            if (row["group"], row["keep"]) != (previous + is_first, is_kept):
                return False
            previous = row["group"]
    return True
