"""Reads lists of images to leave out: a file from `darkroom duplicates`, or any other list.

A list names an image by its key, its URI, or its path relative to the folder of the source.
"""

from __future__ import annotations

import csv
import hashlib
import os
from collections.abc import Iterable, Iterator
from itertools import islice
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
from darkroom.storage.uris import find_ending

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
            f"{first!r:.80}. A name is a key, a URI, or a path relative to the source."
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
        rows = enumerate(_read_rows(path))
        while part := [*islice(rows, BATCH_ROWS)]:
            names = [
                {"image": image, "name": str(row[column])}
                for image, row in part
                if str(row.get(KEEP_COLUMN)).strip().lower() != "true"
                for column in NAME_COLUMNS
                if row.get(column) not in (None, "")
            ]
            writer.write_table(pa.Table.from_pylist(names, _SCHEMA))


def _read_rows(path: str) -> Iterator[dict[str, Any]]:
    """Yields what a list says of each image, by the names of its columns."""
    ending = find_ending(path)
    message = f"The list {path} cannot be read"
    try:
        with report_damage(message, _HINT):
            yield from _read_parquet(path) if ending == ".parquet" else _read_text(path, ending)
    except csv.Error as error:
        raise DataError(f"{message}: {error}.", _HINT) from error


def _read_parquet(path: str) -> Iterator[dict[str, Any]]:
    with storage.open_read(path) as file:
        names = pq.read_schema(file).names
    if not (found := [name for name in NAME_COLUMNS if name in names]):
        raise DataError(
            f"The list {path} has the columns {names}, expected one of {NAME_COLUMNS}.", _HINT
        )
    for batch in read_batches(path, [*found, *({KEEP_COLUMN} & {*names})]):
        yield from batch.to_pylist()


def _read_text(path: str, ending: str) -> Iterator[dict[str, Any]]:
    """Yields the rows of a CSV, or of a text with one name in each line.

    If the first line names none of `NAME_COLUMNS`, it is a row, and the first column has the names.
    """
    lines = TextFile(path).lines()
    records: Iterable[list[str]] = csv.reader(lines, strict=True)
    if ending != ".csv":
        records = ([line.strip()] for line in lines)
    records = filter(any, records)
    for first in records:
        header = [cell.strip() for cell in first]
        if not {*NAME_COLUMNS} & {*header}:
            header = [*NAME_COLUMNS[:1]]
            yield dict(zip(header, first, strict=False))
        # Cells after the last column are ignored.
        yield from (dict(zip(header, cells, strict=False)) for cells in records)
