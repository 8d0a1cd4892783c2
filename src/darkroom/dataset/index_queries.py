"""Questions to a record index: how many records a class has, and which images are the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from darkroom.dataset.index import (
    INDEX_COLUMNS,
    NEVER_NULL,
    find_index_files,
    list_index_files,
    read_index_batches,
)
from darkroom.dataset.splits import SPLITS
from darkroom.errors import DataError
from darkroom.storage.parquet import BATCH_ROWS

if TYPE_CHECKING:
    import duckdb

# Types are given because a column without any value may come back from Parquet with another one.
ROW_COLUMNS = {"row": "BIGINT", "uri": "VARCHAR", "split": "VARCHAR", "label": "VARCHAR"}
_TYPES = {pa.string(): "VARCHAR", pa.int64(): "BIGINT", pa.float64(): "DOUBLE"}
_COLUMNS = {
    **{name: _TYPES[kind] for name, kind in INDEX_COLUMNS if kind},
    "label": "VARCHAR",
    "extra": "STRUCT",
}
# What checks ask for: an index without one of these is not one.
_NEEDED = frozenset(
    {*ROW_COLUMNS, "key", "sha256", "pixel_hash", "decoded_hash", "height", "width"}
    | {"luminance", "changes"}
)
_CREATE_VIEW = """
ALTER VIEW {view} RENAME TO {view}_file;
CREATE VIEW {view} AS SELECT * REPLACE ({told} AS label), label AS written, {said} AS said
FROM {view}_file
"""
# A JPEG's second hash is that of its pixels where another record has it, too. Comparing 64-bit
# hashes takes a fraction of the memory; those that are equal by chance change no group. Of JPEGs
# with one first and several second hashes, which are tiny images, the smallest counts.
_CREATE_COPIES = """
CREATE TEMP TABLE copies AS
SELECT pixel_hash AS first, min(decoded_hash) AS pixels FROM records
WHERE decoded_hash IS NOT NULL AND hash(decoded_hash) IN (
    SELECT hash(pixels) FROM (
        SELECT pixel_hash AS pixels FROM records UNION ALL SELECT decoded_hash FROM records
    ) WHERE pixels IS NOT NULL GROUP BY ALL HAVING count(*) > 1
)
GROUP BY pixel_hash
"""
_CREATE_MATCHED = """
CREATE TEMP VIEW {view} AS
SELECT records.*, coalesce(copies.pixels, pixel_hash) AS pixels
FROM records LEFT JOIN copies ON pixel_hash = copies.first
"""
_CREATE_PLAIN = "CREATE TEMP VIEW {view} AS SELECT *, pixel_hash AS pixels FROM records"
_TWINS = """
SELECT {columns} FROM matched
WHERE hash(coalesce(pixels, sha256)) IN (
    SELECT hash(coalesce(pixels, sha256)) FROM matched
    WHERE coalesce(pixels, sha256) IS NOT NULL GROUP BY ALL HAVING count(*) > 1
)
"""


def create_index_view(
    connection: duckdb.DuckDBPyConnection,
    view: str,
    index_dir: str,
    scratch: str,
    told: str = "label",
    said: str = "label",
) -> None:
    """Makes the index of a dataset a view with all its columns but `listed`.

    Args:
        connection: From `open_database`.
        view: Its name.
        index_dir: The folder of the index.
        scratch: A local folder, for the files of a store.
        told: SQL of what images are labelled with as text for people, the column `label`; all that
            the index says of it is text in the column `written`.
        said: SQL of what is the same for images that are labelled with the same, the column `said`.

    Raises:
        DataError: The index is missing, does not have these columns, or lacks a value of those
            that each record has.
        OSError: It cannot be read.
    """
    # Readers that only count do not load DuckDB.
    from darkroom.storage.database import create_view, name_damage

    files = find_index_files(index_dir)
    create_view(connection, view, files, scratch, _COLUMNS, _COLUMNS.keys() - _NEEDED)
    connection.execute(_CREATE_VIEW.format(view=view, told=told, said=said))
    names = [name for name in NEVER_NULL if name in _NEEDED]
    counts = ", ".join(f"count({name})" for name in ("*", *names))
    with name_damage(f"The index in {index_dir} is"):
        [(total, *found)] = connection.execute(f"SELECT {counts} FROM {view}").fetchall()
    for name, count in zip(names, found, strict=True):
        if count < total:
            message = f"The index in {index_dir} has records without {name}."
            raise DataError(message, "Convert the source again.")


def match_decoded_copies(connection: duckdb.DuckDBPyConnection, view: str = "matched") -> None:
    """Creates a view: the view `records` of an index with the column `pixels`.

    It is a hash of the pixels that is the same for a JPEG and for the images made of it.
    """
    has_second = connection.execute("SELECT count(decoded_hash) FROM records").fetchall()[0][0]
    if has_second:
        connection.execute(_CREATE_COPIES)
    connection.execute((_CREATE_MATCHED if has_second else _CREATE_PLAIN).format(view=view))


def select_twins(columns: str) -> str:
    """Returns the SQL of the records of `matched` whose image is there more than once.

    They have equal pixels, or equal bytes where the pixels are not known. It compares 64-bit
    hashes, so a few others are among them.
    """
    return _TWINS.format(columns=columns)


def _name_labels(table: pa.Table, list_names: Callable[[pa.Array], pa.ListArray]) -> pa.Table:
    """Returns a row for each label, and one without a label where that is not known."""
    names, splits = list_names(table["label"].combine_chunks()), table["split"].combine_chunks()
    unknown = splits.filter(names.is_null())
    parts = {
        "split": [unknown, splits.take(pc.list_parent_indices(names))],
        "label": [pa.nulls(len(unknown), pa.string()), pc.list_flatten(names)],
    }
    return pa.table({name: pa.chunked_array(arrays) for name, arrays in parts.items()})


def count_classes(
    index_dir: str, labels: Sequence[str], list_names: Callable[[pa.Array], pa.ListArray]
) -> dict[str, dict[str, int]]:
    """Counts the records of an index by split and label; one with several counts for each.

    Records without names, as those with numbers, are only counted where nothing is known.

    Args:
        index_dir: Folder of the index's Parquet files.
        labels: The label map, for the order.
        list_names: Returns the names in each value of the column `label`, as the kind of target
            does.

    Returns:
        Each split that has records, in the order train, eval, test: also one whose images show
        nothing. In it, the labels that have records, in the order of the label map.

    Raises:
        DataError: A file is damaged, or not an index.
        OSError: A file cannot be read.
    """
    # In the order of the splits.
    counts: dict[str, Counter[str]] = {split: Counter() for split in SPLITS}
    seen: set[str] = set()
    names = ["split", "label"]
    for path in list_index_files(index_dir):
        for rows in read_index_batches(path, names, BATCH_ROWS):
            seen.update(pc.unique(rows["split"]).to_pylist())
            grouped = _name_labels(rows, list_names).group_by(names).aggregate([("split", "count")])
            columns = (grouped[name].to_pylist() for name in (*names, "split_count"))
            for split, label, count in zip(*columns, strict=True):
                counts.setdefault(split, Counter())[label or ""] += count
    order = {label: number for number, label in enumerate(labels)}
    return {
        split: dict(sorted(found.items(), key=lambda item: (order.get(item[0], -1), item[0])))
        for split, found in counts.items()
        if split in seen
    }
