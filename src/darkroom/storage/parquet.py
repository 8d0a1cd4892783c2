"""Parquet files read in batches, from any store and in bounded memory."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from darkroom import storage
from darkroom.errors import DarkroomError, DataError

BATCH_ROWS = 8_192
_MAX_KEPT_BYTES = 32 << 20


def leave_pandas_out() -> None:
    """Makes pandas look absent to this process, which must be our own.

    pyarrow imports it where it is installed, in 0.2 s and 40 MB, to ask of a list whether it is one
    of its objects.
    """
    sys.meta_path.insert(0, _PandasHider())


class _PandasHider(MetaPathFinder):
    """Ends each import of pandas at once; newer pyarrow takes a None in `sys.modules` for it."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas was left out of this process", name=fullname)


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


def check_num_rows(path: str, parquet: pq.ParquetFile, most: int, hint: str) -> None:
    """Checks that a Parquet file does not have more rows than it may, before they are read.

    A file of some kilobytes may have billions of equal rows.

    Args:
        path: Its path.
        parquet: The open file.
        most: The most rows.
        hint: What to do.

    Raises:
        DataError: It has more.
    """
    if (found := count_rows(parquet)) > most:
        raise DataError(f"{path} has {found:,} rows, expected {most:,}.", hint)


def count_rows(parquet: pq.ParquetFile) -> int:
    """Returns the most rows that a Parquet file says it has: in all, or in its groups."""
    metadata = parquet.metadata
    # Who reads batches goes by the groups.
    groups = [abs(metadata.row_group(n).num_rows) for n in range(metadata.num_row_groups)]
    return int(max(metadata.num_rows, sum(groups)))


class KeptTables:
    """Tables that threads have read last: shards that are neighbours read the same ones.

    The last one is kept, and those before it while all together take little memory.
    """

    def __init__(self) -> None:
        self._tables: OrderedDict[Hashable, pa.Table] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, key: Hashable, load: Callable[[], pa.Table]) -> pa.Table:
        """Returns the table of a key, which is loaded unless it is kept."""
        with self._lock:
            if key not in self._tables:
                self._tables[key] = load()
            self._tables.move_to_end(key)
            found = self._tables[key]
            while len(self._tables) > 1 and self._num_bytes > _MAX_KEPT_BYTES:
                self._tables.popitem(last=False)
        return found

    @property
    def _num_bytes(self) -> int:
        return sum(table.nbytes for table in self._tables.values())
