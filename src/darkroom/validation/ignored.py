"""Hides what people decided to ignore, in one place for all checks that look at images.

Such a check reads the view `matched`, which lacks ignored images. Of an ignored pair with the same
pixels, the table `ignored_twins` has one: whoever compares equal pixels leaves it out. Near pairs
are hidden in their table. The records themselves stay, for everything that is counted.
"""

from __future__ import annotations

import duckdb

_CREATE_TABLES = """
CREATE TEMP TABLE ignored AS
SELECT row, unnest(string_split(ignored, ' ')) AS key FROM records WHERE ignored IS NOT NULL;
CREATE TEMP TABLE ignored_pairs AS
SELECT least(ignored.row, records.row) AS one, greatest(ignored.row, records.row) AS other
FROM ignored JOIN records USING (key) GROUP BY ALL;
CREATE TEMP TABLE hidden AS SELECT row FROM ignored WHERE key = '*';
CREATE TEMP TABLE ignored_twins AS
SELECT DISTINCT other AS row FROM ignored_pairs
    JOIN all_matched AS a ON a.row = one JOIN all_matched AS b ON b.row = other
WHERE coalesce(a.pixels, a.sha256) = coalesce(b.pixels, b.sha256);
"""
# A join takes memory, also with no rows.
_CREATE_MATCHED = "CREATE TEMP VIEW matched AS FROM all_matched"
_CREATE_REST = f"{_CREATE_MATCHED} ANTI JOIN hidden USING (row)"
_HIDE_NEAR_PAIRS = """
DELETE FROM near USING (
    SELECT a.number AS a, b.number AS b FROM ignored_pairs
    JOIN near_looks AS a ON a.row = ignored_pairs.one
    JOIN near_looks AS b ON b.row = ignored_pairs.other
) AS pairs
WHERE near.one = least(a, b) AND near.other = greatest(a, b)
"""
_COUNT = """
SELECT (SELECT count(*) FROM ignored_pairs) + (SELECT count(*) FROM ignored WHERE key = '*')
"""


def hide_ignored(connection: duckdb.DuckDBPyConnection) -> None:
    """Creates the view `matched` of the rows of `all_matched` that are shown.

    The tables `ignored_pairs`, `ignored_twins` and `hidden` have what is not: pairs of rows, one
    row of each of those with equal pixels, and rows.
    """
    connection.execute(_CREATE_TABLES)
    connection.execute(_CREATE_REST if fetch_hidden(connection) else _CREATE_MATCHED)


def fetch_hidden(connection: duckdb.DuckDBPyConnection) -> set[int]:
    """Returns the rows that are not shown, for checks that must see all images to judge any."""
    return {row for (row,) in connection.execute("SELECT row FROM hidden").fetchall()}


def hide_near_pairs(connection: duckdb.DuckDBPyConnection) -> None:
    """Takes pairs that are ignored, and images that look the same, out of the table `near`."""
    connection.execute(_HIDE_NEAR_PAIRS)


def count_ignored(connection: duckdb.DuckDBPyConnection) -> int:
    """Returns how many images and pairs are ignored."""
    return int(connection.execute(_COUNT).fetchall()[0][0])
