"""Finds the records of an index that are near copies, by their perceptual hashes, in a database.

It reads the view `matched` (`dataset.index_queries`). Images with one hash are compared once, and
are near each other unless they have the same pixels. The tables have numbers alone, for which the
memory of the database is enough: the number of a hash is its place among all, sorted.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from darkroom.images.near_pairs import Array, NearPairs, find_near_pairs, list_groups
from darkroom.images.perceptual_hash import HASH_BYTES
from darkroom.storage.database import create_view
from darkroom.storage.parquet import BATCH_ROWS

if TYPE_CHECKING:
    import duckdb

_LOOKS = f"""
SELECT row, perceptual_hash AS look, hash(coalesce(pixels, sha256)) AS content FROM matched
WHERE regexp_full_match(perceptual_hash, '[0-9a-f]{{{2 * HASH_BYTES}}}')
"""


class _Looks(NamedTuple):
    """The records that have a perceptual hash, and the pairs of hashes.

    Attributes:
        row: Row of each record.
        number: Number of its hash.
        content: Hash of its pixels.
        num_hashes: How many hashes there are.
        shared: Numbers of those of images with different pixels.
        pairs: The pairs of hashes.
    """

    row: Array
    number: Array
    content: Array
    num_hashes: int
    shared: Array
    pairs: NearPairs


def create_near_pairs(connection: duckdb.DuckDBPyConnection) -> bool:
    """Creates the tables `near` and `near_looks`.

    The first one has the pairs: `one`, `other` and `difference` in bits. The second one has `row`,
    `content` and the hash, as `number`, of each record that is in a pair.

    Returns:
        Whether these are all pairs: where nearly all images look alike, not all are compared.
    """
    looks = _find_looks(connection)
    columns = {
        "one": np.concatenate([looks.pairs.one, looks.shared]),
        "other": np.concatenate([looks.pairs.other, looks.shared]),
        "difference": np.concatenate([looks.pairs.difference, np.zeros_like(looks.shared)]),
    }
    _create_table(connection, "near", columns)
    is_near = np.zeros(looks.num_hashes, bool)
    is_near[columns["one"]] = is_near[columns["other"]] = True
    _create_looks(connection, looks, np.where(is_near, np.arange(looks.num_hashes), -1))
    return looks.pairs.is_complete


def create_near_groups(connection: duckdb.DuckDBPyConnection) -> bool:
    """Creates the table `near_looks` of the records in groups, of which all are near one of them.

    Its `number` is that of the group.

    Returns:
        Whether all pairs were compared, as by `create_near_pairs`.
    """
    looks = _find_looks(connection)
    groups = np.full(looks.num_hashes, -1)
    groups[looks.shared] = looks.shared
    for members in list_groups(looks.num_hashes, looks.pairs):
        groups[members] = members[0]
    _create_looks(connection, looks, groups)
    return looks.pairs.is_complete


def _find_looks(connection: duckdb.DuckDBPyConnection) -> _Looks:
    found = connection.sql(_LOOKS).to_arrow_reader(BATCH_ROWS).read_all()
    texts = (bytes.fromhex("".join(chunk.to_pylist())) for chunk in found["look"].chunks)
    hashes = np.frombuffer(b"".join(texts), f"V{HASH_BYTES}")
    row, content = found["row"].to_numpy(), found["content"].to_numpy()
    unique, number = np.unique(hashes, return_inverse=True)
    order = np.lexsort((content, number))
    is_other = (np.diff(number[order]) == 0) & (np.diff(content[order]) != 0)
    shared = np.unique(number[order][1:][is_other])
    pairs = find_near_pairs(unique.view(np.uint8).reshape(-1, HASH_BYTES))
    return _Looks(row, number, content, len(unique), shared, pairs)


def _create_looks(connection: duckdb.DuckDBPyConnection, looks: _Looks, numbers: Array) -> None:
    """Creates the table `near_looks` of records by the new number of their hash; -1 is left out."""
    number = numbers[looks.number]
    is_in = number >= 0
    columns = {"row": looks.row[is_in], "number": number[is_in], "content": looks.content[is_in]}
    _create_table(connection, "near_looks", columns)


def _create_table(
    connection: duckdb.DuckDBPyConnection, name: str, columns: Mapping[str, Array]
) -> None:
    # DuckDB takes the tables of some versions of pyarrow only.
    with tempfile.TemporaryDirectory(prefix="darkroom-") as scratch:
        path = os.path.join(scratch, "table.parquet")
        pq.write_table(pa.table(columns), path)
        create_view(connection, f"{name}_file", [path], scratch)
        connection.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM {name}_file")
