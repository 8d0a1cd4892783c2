"""Reads lists of images to leave out: a file from `darkroom duplicates`, or any other list.

A list names an image by its key, its URI, or its path relative to the folder of the source.
"""

from __future__ import annotations

import csv
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from darkroom import storage
from darkroom.errors import DataError
from darkroom.manifest.sources.text import TextFile
from darkroom.runtime import progress
from darkroom.runtime.text import format_count
from darkroom.storage.database import create_view
from darkroom.storage.parquet import BATCH_ROWS, read_batches, report_damage
from darkroom.storage.uris import MAX_PATH_CHARACTERS

# Columns that name images. If there is a column `keep`, too, rows in which it is true are kept.
NAME_COLUMNS = ("key", "uri", "image_uri", "id")
KEEP_COLUMN = "keep"
_EXCLUDED = """
CREATE TEMP TABLE excluded AS
SELECT row FROM staged SEMI JOIN names ON staged.key = names.name
UNION SELECT row FROM staged SEMI JOIN names ON staged.uri = names.name
UNION SELECT row FROM staged SEMI JOIN names ON staged.id = names.name
"""
# Of the several names of an image one is enough. Only excluded rows can have one of the names, so
# the source is not read again.
_UNKNOWN_NAMES = """
WITH known AS (SELECT key, uri, id FROM staged SEMI JOIN excluded USING (row)),
listed AS (
    SELECT min(name) AS name FROM names GROUP BY image HAVING NOT bool_or(name IN (
        SELECT key FROM known UNION SELECT uri FROM known UNION SELECT id FROM known
    ))
)
SELECT count(DISTINCT name), min(name) FROM listed
"""
_SCHEMA = pa.schema([("image", pa.int64()), ("name", pa.string())])
_HINT = "Give a Parquet file, a CSV or a text file with the keys or paths of images."


def hash_exclusions(path: str) -> str:
    """Returns the BLAKE2b-128 of the bytes of a list, 32 hexadecimal digits.

    Raises:
        OSError: It cannot be read.
    """
    digest = hashlib.blake2b(digest_size=16)
    with storage.open_read(path) as file:
        while data := file.read(1 << 20):
            digest.update(data)
    return digest.hexdigest()


def find_excluded(connection: duckdb.DuckDBPyConnection, path: str, scratch: str) -> None:
    """Creates the table `excluded` of the rows that a list names.

    Args:
        connection: A database with the view `staged`.
        path: The list.
        scratch: A local folder.

    Raises:
        DataError: The list is damaged, or no column names images.
        OSError: It cannot be read.
    """
    table = os.path.join(scratch, "names.parquet")
    write_names(path, table)
    create_view(connection, "names", [table], scratch)
    connection.execute(_EXCLUDED)
    count, first = connection.execute(_UNKNOWN_NAMES).fetchall()[0]
    if count:
        progress.note(
            f"Warning: {format_count(count, 'name')} in {path} not found in the source, as "
            f"{first!r}. A name is a key, a URI, or a path relative to the source."
        )
    [(excluded,)] = connection.execute("SELECT count(*) FROM excluded").fetchall()
    if excluded:
        rows, them = format_count(excluded, "row"), "it" if excluded == 1 else "them"
        progress.note(f"{rows} left out, because {path} lists {them}.")


def write_names(path: str, table: str) -> None:
    """Writes the names of a list to a local Parquet file, each with the number of its image.

    Raises:
        DataError: The list is damaged, or no column names images.
        OSError: It cannot be read.
    """
    with pq.ParquetWriter(table, _SCHEMA) as writer:
        first = 0
        for images in _read_images(path):
            _check_names(path, images)
            numbers = [n for n, names in enumerate(images, first) for _ in names]
            names = [name for names in images for name in names]
            writer.write_table(pa.table([numbers, names], schema=_SCHEMA))
            first += len(images)


def _check_names(path: str, images: Iterable[Iterable[str]]) -> None:
    longest = max((name for names in images for name in names), key=len, default="")
    if len(longest) > MAX_PATH_CHARACTERS:
        raise DataError(
            f"The list {path} has a name of {len(longest):,} characters, expected at most "
            f"{MAX_PATH_CHARACTERS:,}: {longest:.40}…",
            _HINT,
        )


def _read_images(path: str) -> Iterator[list[list[str]]]:
    """Yields the names of each listed image, in parts of the list."""
    ending = os.path.splitext(path)[1].lower()
    message = f"The list {path} cannot be read"
    try:
        with report_damage(message, _HINT):
            yield from _read_parquet(path) if ending == ".parquet" else _read_text(path, ending)
    except csv.Error as error:
        raise DataError(f"{message}: {error}.", _HINT) from error


def _read_parquet(path: str) -> Iterator[list[list[str]]]:
    """Yields the names of each image in a Parquet file, by its columns `NAME_COLUMNS`."""
    with storage.open_read(path) as file:
        schema = pq.ParquetFile(file).schema_arrow
    naming = [field for field in schema if field.name in NAME_COLUMNS]
    if not naming:
        raise DataError(
            f"The list {path} has the columns {schema.names}, expected one of {NAME_COLUMNS}.",
            _HINT,
        )
    for field in naming:
        if not _can_name(field):
            raise DataError(
                f"The column {field.name} of the list {path} is {field.type}, expected text.", _HINT
            )
    columns = [name for name in schema.names if name in (*NAME_COLUMNS, KEEP_COLUMN)]
    for batch in read_batches(path, columns):
        yield list(_find_names(batch.to_pylist()))


def _can_name(field: pa.Field) -> bool:
    kind = field.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    # The id of a row may be a number; of an empty column nothing is known.
    is_number = field.name == "id" and pa.types.is_integer(kind)
    return bool(is_text or is_number or pa.types.is_null(kind))


def _read_text(path: str, ending: str) -> Iterator[list[list[str]]]:
    """Yields the names of each image in a CSV, or in a text with one name in each line.

    If the first line names none of `NAME_COLUMNS`, it is a row, and the first column has the names.
    """
    lines = _read_lines(path)
    records: Iterable[list[str]] = csv.reader(lines, strict=True)
    if ending != ".csv":
        records = ([line.strip()] for line in lines)
    header: Sequence[str] | None = None
    rows: list[dict[str, Any]] = []
    for cells in filter(any, records):
        if header is None:
            is_header = any(cell.strip() in NAME_COLUMNS for cell in cells)
            header = [cell.strip() for cell in cells] if is_header else NAME_COLUMNS[:1]
            if is_header:
                continue
        # Cells after the last column are ignored.
        rows.append(dict(zip(header, cells, strict=False)))
        if len(rows) == BATCH_ROWS:
            yield list(_find_names(rows))
            rows = []
    yield list(_find_names(rows))


def _read_lines(path: str) -> Iterator[str]:
    try:
        yield from TextFile(path).lines()
    except DataError as error:
        raise DataError(f"The list {error.message}", _HINT) from error


def _find_names(rows: Iterable[dict[str, Any]]) -> Iterator[list[str]]:
    for row in rows:
        if str(row.get(KEEP_COLUMN, False)).strip().lower() != "true":
            yield [str(row[name]) for name in NAME_COLUMNS if row.get(name) not in (None, "")]
