"""Which file an image is, where its path below the folder of its list does not tell.

Lists of several folders may have images of the same relative path: they are different images. And
an update may find the images of its dataset by other paths than the list that it was made from, or
copies of them, as they were written for other tools. So that a list which works keeps its keys,
only the rows in question get other ids.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Sequence

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from darkroom.dataset import keys, splits
from darkroom.dataset.manifest import MAX_ROW_GROUP_ROWS
from darkroom.dataset.same_images import pair_others
from darkroom.decisions.files import hash_files
from darkroom.manifest.sources.base import Source
from darkroom.options.manifest import ManifestOptions
from darkroom.runtime import progress
from darkroom.runtime.text import format_count
from darkroom.storage import uris
from darkroom.storage.database import create_view

# Number, new id, declared split and URI of a row, and the state of that file if it is another one.
_Renamed = tuple[int, str, str, str, int | None, str | None]

# Numbers find them with a fraction of the memory that ids need: equal ids have an equal order.
_SHARED = """
SELECT row, id, declared, uri FROM parsed WHERE "order" IN (
    SELECT "order" FROM parsed GROUP BY ALL HAVING min(hash(uri)) <> max(hash(uri))
)
"""
# Rows of other images that have one of these ids.
_TAKEN = """
SELECT row, id, declared, uri FROM parsed WHERE id IN (SELECT unnest(?::VARCHAR[]))
"""
_KNOWN = """
SELECT uri, any_value(id) FROM base_index
WHERE uri IN (SELECT unnest(?::VARCHAR[])) GROUP BY uri
"""
# Of an append, the rows of the dataset come first: `own`. `given` are those of the list.
_SIDES = (
    "CREATE TEMP VIEW own AS FROM parsed WHERE row <= {old_rows}",
    "CREATE TEMP VIEW given AS FROM parsed WHERE row > {old_rows}",
)
# Files of the dataset under an id that the list does not have.
_MOVED = """
SELECT given.row, any_value(base_index.id), any_value(given.declared), uri, NULL, NULL
FROM given JOIN base_index USING (uri)
WHERE uri <> '' AND hash(base_index.id) NOT IN (SELECT hash(id) FROM given) GROUP BY ALL
"""
# Images of the dataset whose ids the list lacks, and new files of the size of one of them.
_LACKING = """
CREATE TEMP TABLE lacking AS SELECT id, uri, sha256, size_bytes AS size FROM base_index
WHERE size_bytes IN (SELECT size FROM given) AND hash(id) NOT IN (SELECT hash(id) FROM given)
"""
_LIKE_LACKING = """
SELECT DISTINCT id, uri FROM given WHERE uri <> '' AND size IN (SELECT size FROM lacking)
    AND hash(id) NOT IN (SELECT hash(id) FROM base_index)
"""
# An image to which rows are appended stays at its place.
_COPIED = f"""
SELECT given.row, old_id, given.declared, coalesce(own.uri, given.uri), own.size, own.mtime
FROM given JOIN ({pair_others("lacking", "hashed", "id", "sha256")}) USING (id)
LEFT JOIN own ON own.id = old_id
"""
_RENAMED = """
CREATE TEMP VIEW parsed AS SELECT before.* REPLACE (
    coalesce(renamed.id, before.id) AS id, coalesce(renamed.key, before.key) AS key,
    coalesce(renamed.uri, before.uri) AS uri, coalesce(renamed.split, before.split) AS split,
    coalesce(renamed.size, before.size) AS size, coalesce(renamed.mtime, before.mtime) AS mtime,
    coalesce(renamed."order", before."order") AS "order"
) FROM before_{which} AS before LEFT JOIN renamed_{which} AS renamed USING (row)
"""


def tell_shared_apart(
    connection: duckdb.DuckDBPyConnection,
    sources: Sequence[Source],
    options: ManifestOptions,
    scratch: str,
    *,
    has_base: bool,
) -> None:
    """Gives other ids to images that share theirs in lists of several folders.

    An image that the updated dataset has keeps the id there. The others have their path below the
    folder that the lists share.

    Args:
        connection: Has the rows of all lists, as the view `parsed`, which is replaced; and
            `base_index` if there is a base.
        sources: The lists that the user gave.
        options: How rows become entries.
        scratch: A local folder.
        has_base: Whether a dataset is updated.
    """
    found = connection.execute(_SHARED).fetchall()
    folders = [uris.normalise_uri(each.identity_base).split("/") for each in sources]
    common = "/".join(posixpath.commonprefix(folders))
    renamed: dict[int, tuple[str, str, str]] = {}
    files: dict[str, str] = {}
    while found:
        paths = list({uri for *_, uri in found})
        known = dict(connection.execute(_KNOWN, [paths]).fetchall()) if has_base else {}
        for row, old, declared, uri in found:
            new = known.get(uri) or uris.relative_identity(uris.normalise_uri(uri), common)
            if new == old and uri not in known and old in known.values():
                # The list that is appended to a dataset has that folder itself: one folder more.
                new = "/".join(uri.split("/")[-old.count("/") - 2 :])
            renamed[row], files[new] = (new, declared, uri), uri
        # The new id of a file may be that of another one.
        taken = connection.execute(_TAKEN, [list(files)]).fetchall()
        found = [each for each in taken if each[0] not in renamed and files[each[1]] != each[3]]
    if renamed:
        rows = ((row, *new, None, None) for row, new in renamed.items())
        _rename(connection, "shared", rows, options, scratch)


def keep_known(
    connection: duckdb.DuckDBPyConnection, options: ManifestOptions, old_rows: int, scratch: str
) -> bool:
    """Gives files of the updated dataset, and copies, their ids there; returns whether any has one.

    Args:
        connection: Has the rows of the list, as the view `parsed`, which is replaced; and
            `base_index`; and the table `known_rows`, which gets the numbers of these rows.
        options: How rows became entries.
        old_rows: Number of rows of the dataset to which rows are appended, which come first.
        scratch: A local folder.
    """
    is_any = False
    for view in _SIDES:
        connection.execute(view.format(old_rows=old_rows))
    for which, find in (("moved", _find_moved), ("copied", _find_copied)):
        if found := find(connection, scratch):
            _rename(connection, which, found, options, scratch)
            connection.execute(f"INSERT INTO known_rows SELECT row FROM renamed_{which}")
            is_any = True
    return is_any


def _find_moved(connection: duckdb.DuckDBPyConnection, _: str) -> list[_Renamed]:
    """Returns row, id in the dataset, declared split and URI of its files."""
    found: list[_Renamed] = connection.execute(_MOVED).fetchall()
    return found


def _find_copied(connection: duckdb.DuckDBPyConnection, scratch: str) -> list[_Renamed]:
    """Returns the same of files that have the bytes of a record.

    Only files of the size of an image that the list lacks are read.
    """
    connection.execute(_LACKING)
    alike = connection.sql(_LIKE_LACKING).to_arrow_table()
    if not len(alike):
        return []
    path = os.path.join(scratch, "hashed.parquet")
    with pq.ParquetWriter(path, alike.schema.append(pa.field("sha256", pa.string()))) as writer:
        for first in range(0, len(alike), MAX_ROW_GROUP_ROWS):
            part = alike.slice(first, MAX_ROW_GROUP_ROWS)
            hashes = hash_files([(uri, None) for uri in part["uri"].to_pylist()])
            writer.write_table(part.append_column("sha256", [hashes]))
    create_view(connection, "hashed", [path], scratch)
    found: list[_Renamed] = connection.execute(_COPIED).fetchall()
    if found:
        count = len({known for _, known, *_ in found})
        progress.note(f"Known by their bytes: {format_count(count, 'image')} of the list.")
    return found


def _rename(
    connection: duckdb.DuckDBPyConnection,
    which: str,
    renamed: Iterable[_Renamed],
    options: ManifestOptions,
    scratch: str,
) -> None:
    """Replaces the view `parsed`, at most once for `which` rows."""
    hash_order, ratios = keys.make_order_hash(options.seed), options.ratios
    numbers, ids, declared, files, sizes, versions = zip(*renamed, strict=True)
    made = [*map(keys.make_key, ids)]
    split = [
        each or splits.assign_split(key, options.seed, ratios)
        for each, key in zip(declared, made, strict=True)
    ]
    states = {"size": pa.array(sizes, pa.int64()), "mtime": pa.array(versions, pa.string())}
    rows = {"row": numbers, "id": ids, "key": made, "uri": files, "split": split, **states}
    path = os.path.join(scratch, f"renamed-{which}.parquet")
    pq.write_table(pa.table({**rows, "order": [*map(hash_order, made)]}), path)
    create_view(connection, f"renamed_{which}", [path], scratch)
    connection.execute(f"ALTER VIEW parsed RENAME TO before_{which}")
    connection.execute(_RENAMED.format(which=which))
