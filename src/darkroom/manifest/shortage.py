"""Says what to do where a source needs more memory or disk than there is."""

from __future__ import annotations

import errno
import os

import duckdb

from darkroom.dataset.schema import Schema
from darkroom.errors import DataError, StorageError
from darkroom.runtime.text import format_count


def explain_shortage(error: OSError, schema: Schema, scratch: str) -> None:
    """Raises an error with a hint where another one comes from too little memory or disk.

    Args:
        error: The other one.
        schema: The columns of the source.
        scratch: The folder of temporary files.

    Raises:
        DataError: There are too many columns.
        StorageError: The disk is full, or there is not enough memory.
    """
    is_memory = isinstance(error.__cause__, duckdb.OutOfMemoryException)
    if is_memory and not schema.inputs:
        raise StorageError(
            "There is not enough memory to compare and sort the rows.",
            "Free some. Long labels and paths need more than short ones, and so does an image "
            "with several 100,000 objects.",
        ) from error
    if is_memory:
        raise DataError(
            f"The rows have {format_count(len(schema.inputs), 'further column')}, which is "
            "too many to compare and sort them.",
            "Name those that matter with --columns (columns= in Python): the others are left out.",
        ) from error
    # An error that names no file comes from writing, and all but the result is written here.
    if error.errno in (errno.ENOSPC, errno.EDQUOT) and not error.filename:
        raise StorageError(
            f"There is no space left in {os.path.dirname(scratch)}, or in the output.",
            "Free some, or name another folder for temporary files: TMPDIR=/DIR.",
        ) from error
