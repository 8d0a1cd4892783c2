"""DuckDB for data larger than memory: it sorts, compares and joins on local disk."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

import duckdb

from darkroom import storage
from darkroom.errors import DataError, StorageError

# Each thread needs memory of its own, so more threads would need a higher limit.
_MEMORY = "112MB"


@contextmanager
def open_database(scratch: str, threads: int = 2) -> Iterator[duckdb.DuckDBPyConnection]:
    """Opens an empty database that uses at most 112 MB of memory; the rest goes to `scratch`.

    Args:
        scratch: A local folder.
        threads: One needs half the memory of two, where large groups are compared.

    Raises:
        StorageError: There is not enough memory or disk.
        DataError: A file that it reads is damaged.
    """
    config = {
        "temp_directory": os.path.join(scratch, "duckdb"),
        "memory_limit": _MEMORY,
        "threads": str(threads),
        "autoinstall_known_extensions": "false",  # Never download anything.
        "autoload_known_extensions": "false",
    }
    with duckdb.connect(":memory:", config=config) as connection:
        try:
            yield connection
        except (duckdb.OperationalError, duckdb.IOException) as error:
            raise StorageError(f"DuckDB cannot continue: {error}.") from error
        except duckdb.InvalidInputException as error:
            raise DataError(f"A file cannot be read: {error}.", "Create it again.") from error


def create_view(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    paths: Sequence[str],
    scratch: str,
    columns: Mapping[str, str] | None = None,
    later: Collection[str] = (),
) -> None:
    """Makes Parquet files a view; remote ones are copied to `scratch` first.

    Args:
        connection: From `open_database`.
        name: Name of the view.
        paths: The files.
        scratch: A local folder.
        columns: DuckDB's type of each column of the view; all columns as they are when None.
        later: Columns that files of older versions lack; they are NULL there.
    """
    files = []
    for number, path in enumerate(paths):
        if storage.is_remote(path):
            local = os.path.join(scratch, f"{name}-{number}.parquet")
            storage.copy_file(path, local)
        else:
            local = storage.absolute(path)
        # DuckDB takes a path for a pattern.
        files.append("".join(f"[{char}]" if char in "*?[" else char for char in local))
    relation = connection.read_parquet(files)
    if columns:
        missing = set(later) - set(relation.columns)
        casts = (
            f"CAST({'NULL' if name in missing else _quote(name)} AS {kind}) AS {_quote(name)}"
            for name, kind in columns.items()
        )
        relation = relation.project(", ".join(casts))
    relation.create_view(name)


def _quote(name: str) -> str:
    return f'"{name}"'
