"""Parquet files read in batches, from any store and in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from darkroom import storage
from darkroom.errors import DarkroomError, DataError

BATCH_ROWS = 8_192


@contextmanager
def report_damage(message: str, hint: str) -> Iterator[None]:
    """Turns any error of pyarrow about a damaged file into a `DataError`.

    Args:
        message: The problem, without the reason and a full stop.
        hint: What to do.
    """
    try:
        yield
    except (pa.ArrowException, OSError, OverflowError, ValueError) as error:
        # Errors of the operating system have a number, and ours a class; pyarrow's have neither.
        is_ours = isinstance(error, DarkroomError | storage.NotAFileError)
        if is_ours or getattr(error, "errno", None) is not None:
            raise
        reason = " ".join(str(error).split()).rstrip(".")
        raise DataError(f"{message}: {reason}.", hint) from error


def read_batches(
    path: str, columns: Sequence[str] | None = None, batch_rows: int = BATCH_ROWS
) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a Parquet file in batches.

    Args:
        path: The file.
        columns: Names of the columns to read; all when None.
        batch_rows: Most rows in a batch.

    Raises:
        OSError: The file cannot be read.
    """
    with storage.open_read(path) as file:
        yield from iterate_batches(pq.ParquetFile(file), columns, batch_rows)


def iterate_batches(
    parquet: pq.ParquetFile, columns: Sequence[str] | None, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Yields the rows of an open Parquet file; see `read_batches`."""
    # A file without rows may have no row groups; newer versions of pyarrow fail there.
    if parquet.num_row_groups:
        yield from parquet.iter_batches(batch_rows, columns=columns)
