"""DuckDB for data larger than memory: it sorts, compares and joins on local disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types

from darkroom import storage
from darkroom.errors import DataError, StorageError
from darkroom.storage.parquet import report_damage

_HINT = "List all faults with darkroom verify, or run the step that writes this file again."
# Of one thread: more would need a higher limit, and write a manifest no sooner.
_MEMORY = "112MB"
# 2,048 rows are read at a time, with all their objects.
_NESTED_MEMORY = "200MB"
# The allowed types of a column, by DuckDB's type for it. Casting anything else may give nonsense;
# that of lists in lists takes longer the deeper they are, twice as long for each.
_ACCEPTED: Mapping[str, Callable[[pa.DataType], bool]] = {
    "VARCHAR": lambda kind: (
        _is_plain(kind) or (types.is_list(kind) and all(map(_is_plain, _list_parts(kind))))
    ),
    "BIGINT": types.is_integer,
    "STRUCT": lambda kind: (
        types.is_struct(kind)
        and all(_is_plain(field.type) or types.is_integer(field.type) for field in kind)
    ),
    "DOUBLE": lambda kind: (
        types.is_floating(kind) or types.is_integer(kind) or types.is_decimal(kind)
    ),
}


def _is_plain(kind: pa.DataType) -> bool:
    is_text = types.is_string(kind) or types.is_large_string(kind)
    return bool(is_text or types.is_boolean(kind) or types.is_floating(kind))


def _list_parts(kind: pa.DataType) -> list[pa.DataType]:
    """Returns the types of the values of a list, or of the fields of its structs."""
    value = kind.value_type
    return [field.type for field in value] if types.is_struct(value) else [value]


@contextmanager
def open_database(
    scratch: str, *, has_objects: bool = False
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Opens an empty database that uses at most 112 MB of memory; the rest goes to `scratch`.

    Args:
        scratch: A local folder.
        has_objects: Rows have lists of objects: then it uses at most 200 MB.

    Raises:
        StorageError: There is not enough memory or disk.
        DataError: A file that it reads is damaged.
    """
    config = {
        "temp_directory": os.path.join(scratch, "duckdb"),
        "memory_limit": _NESTED_MEMORY if has_objects else _MEMORY,
        "threads": "1",
        # Else each of thousands of files that are read into a table takes memory of its own.
        "preserve_insertion_order": "false",
        "enable_external_file_cache": "false",
        "autoinstall_known_extensions": "false",  # Never download anything.
        "autoload_known_extensions": "false",
    }
    with duckdb.connect(":memory:", config=config) as connection:
        try:
            yield connection
        except (duckdb.OperationalError, duckdb.IOException) as error:
            raise StorageError(f"DuckDB cannot continue: {error}.") from error
        except (duckdb.InvalidInputException, duckdb.DataError) as error:
            raise DataError(f"A file cannot be read: {error}.", "Create it again.") from error


@contextmanager
def name_damage(what: str) -> Iterator[None]:
    """Says that data is damaged where DuckDB cannot read it in the block; `what` are the words.

    Raises:
        DataError: DuckDB raised an error that is not about memory or disk.
    """
    try:
        yield
    except duckdb.OperationalError:
        raise
    except duckdb.Error as error:
        raise DataError(f"{what} damaged: {error}.", "Convert the source again.") from error


def create_view(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    paths: Sequence[str],
    scratch: str,
    columns: Mapping[str, str] | None = None,
    newer: Collection[str] = (),
    hint: str = _HINT,
) -> None:
    """Makes Parquet files a view; remote ones are copied to `scratch` first.

    Args:
        connection: From `open_database`.
        name: Name of the view.
        paths: The files.
        scratch: A local folder.
        columns: DuckDB's type of each column of the view; all columns as they are when None. Where
            text is expected, a list becomes its JSON, and stays itself in a column NAME_list. A
            STRUCT of texts and numbers stays itself, too.
        newer: Columns that older files do not have; they are null there.
        hint: What to do about a file that cannot be used.

    Raises:
        DataError: A file does not have these columns, or is not a Parquet file.
        OSError: A file cannot be read.
    """
    files = []
    for number, path in enumerate(paths):
        if storage.is_remote(path):
            local = os.path.join(scratch, f"{name}-{number}.parquet")
            storage.copy_file(path, local)
        else:
            local = storage.absolute(path)
        if columns:
            _check_columns(f"The {name} at {path}", local, columns, newer, hint)
        # DuckDB takes a path for a pattern.
        files.append("".join(f"[{char}]" if char in "*?[" else char for char in local))
    relation = connection.read_parquet(files)
    if columns:
        lists = {
            name
            for name, kind in zip(relation.columns, relation.types, strict=True)
            if str(kind).endswith("[]")
        }
        values = {
            name: f"to_json({_quote(name)})" if name in lists else _quote(name) for name in columns
        }
        values |= dict.fromkeys(set(newer) - {*relation.columns}, "NULL")
        casts = [
            f"{values[name] if kind == 'STRUCT' else f'CAST({values[name]} AS {kind})'} "
            f"AS {_quote(name)}"
            for name, kind in columns.items()
        ]
        casts += [
            f"{_quote(name)} AS {_quote(name + '_list')}" for name in columns if name in lists
        ]
        relation = relation.project(", ".join(casts))
    relation.create_view(name)


def _check_columns(
    what: str, local: str, columns: Mapping[str, str], newer: Collection[str], hint: str
) -> None:
    """Checks that a Parquet file has columns of types from which the view can make its own."""
    with report_damage(f"{what} cannot be used", hint):
        found = pq.read_schema(local)
    for name, kind in columns.items():
        # A column that occurs twice has no place.
        place = found.get_field_index(name)
        if name in newer and name not in found.names:
            continue
        actual = found.field(place).type if place >= 0 else "missing"
        # A column without any value may have lost its type.
        if place < 0 or not (_ACCEPTED[kind](actual) or types.is_null(actual)):
            raise DataError(
                f"{what} cannot be used: its column {name} is {actual}, expected {kind}.", hint
            )


def _quote(name: str) -> str:
    return f'"{name}"'
