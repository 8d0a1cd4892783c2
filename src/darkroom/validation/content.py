"""Checks for records with the same pixels, or with the same bytes where pixels are unknown.

A JPEG and the PNG that was made of it have the same pixels.

Two records of one image are a duplicate if they have the same split and label, a label conflict if
only the labels differ, and leakage if only the splits differ. If both differ, they are reported as
both, because fixing one does not fix the other. Each finding counts images, and lists one pair of
records for each image.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from darkroom.dataset.index_queries import select_twins
from darkroom.runtime.text import MAX_LISTED_ROWS, format_count
from darkroom.validation.context import Context
from darkroom.validation.counts import fetch_number, fetch_rows
from darkroom.validation.report.findings import Finding, Row


def check_leakage(context: Context) -> Iterator[Finding]:
    """Finds images that are in more than one split."""
    count, rows = _fetch_twins(context, "split")
    if count:
        verb = "image is" if count == 1 else "images are"
        yield Finding(
            "leakage",
            context.options.policies["leakage"],
            count,
            f"{count:,} {verb} in more than one split, so scores on eval or test are too high.",
            "Keep each image in one split: delete its row in the other split. Or list them with "
            "darkroom duplicates DATASET --output FILE, and convert again with --exclude FILE.",
            rows,
        )


def check_label_conflicts(context: Context) -> Iterator[Finding]:
    """Finds images that have more than one label."""
    count, rows = _fetch_twins(context, "said")
    if count:
        verb = "image has" if count == 1 else "images have"
        num_leaks = fetch_number(context.connection, _COUNT_LEAKING_CONFLICTS)
        also = f" Of these, {num_leaks:,} in more than one split: see leakage." if num_leaks else ""
        yield Finding(
            "label_conflicts",
            context.options.policies["label_conflicts"],
            count,
            f"{count:,} {verb} more than one label.{also}",
            "Look at the image, keep the row with the right label, and delete the others.",
            rows,
        )


def check_duplicates(context: Context) -> Iterator[Finding]:
    """Finds images that occur more than once in a split with the same label."""
    context.connection.execute(_CREATE_TWINS)
    count = fetch_number(context.connection, _COUNT_DUPLICATES)
    if count:
        surplus = fetch_number(context.connection, _COUNT_SURPLUS)
        verb = "image occurs" if count == 1 else "images occur"
        yield Finding(
            "duplicates",
            context.options.policies["duplicates"],
            count,
            f"{count:,} {verb} more than once in a split with the same label: "
            f"{format_count(surplus, 'record')} too many.",
            "Delete the copies: each of them counts again in training or in the scores.",
            fetch_rows(context.connection, _FIRST_DUPLICATES, [MAX_LISTED_ROWS]),
        )


def _fetch_twins(
    context: Context, differing: Literal["split", "said"]
) -> tuple[int, tuple[Row, ...]]:
    """Returns how many images differ in a column, and two records of each of the first ten."""
    context.connection.execute(_CREATE_TWINS)
    count = fetch_number(context.connection, _COUNT_DIFFERING.format(differing=differing))
    sql = _FIRST_DIFFERING.format(differing=differing)
    return count, fetch_rows(context.connection, sql, [MAX_LISTED_ROWS]) if count else ()


# All records with content that occurs more than once. Usually this table is small.
_TWINS = select_twins("row, uri, split, label, said, coalesce(pixels, sha256) AS content")
_CREATE_TWINS = f"""
CREATE TEMP TABLE IF NOT EXISTS twins AS FROM ({_TWINS}) ANTI JOIN ignored_twins USING (row)
"""
# The listed groups are chosen first, and only they are joined with their records: records of all
# groups would not fit into memory. A record without a label conflicts with no other, because min,
# max and <> leave nulls out.
_TWO_SIDES = """
    one.row AS row, one.uri AS uri, one.split AS split, one.label AS label,
    other.row AS other_row, other.uri AS other_uri, other.split AS other_split,
    other.label AS other_label, records
"""
_COUNT_DIFFERING = """
SELECT count(*) FROM (
    SELECT content FROM twins GROUP BY content HAVING min({differing}) <> max({differing})
)
"""
_FIRST_DIFFERING = (
    """
WITH listed AS (
    SELECT content, count(*) AS records, min(row) AS first FROM twins
    WHERE {differing} IS NOT NULL
    GROUP BY content HAVING min({differing}) <> max({differing}) ORDER BY first LIMIT ?
), sides AS (
    SELECT content, records, row, {differing},
        {{'row': row, 'uri': uri, 'split': split, 'label': label, 'said': said}} AS side
    FROM twins JOIN listed USING (content) WHERE {differing} IS NOT NULL
), firsts AS (
    SELECT content, min_by(side, row) AS one FROM sides GROUP BY content
), pairs AS (
    SELECT one, any_value(records) AS records, min_by(side, row) AS other
    FROM sides JOIN firsts USING (content) WHERE {differing} <> one.{differing}
    GROUP BY content, one
)
SELECT"""
    + _TWO_SIDES
    + "FROM pairs ORDER BY row"
)
_COUNT_LEAKING_CONFLICTS = """
SELECT count(*) FROM (
    SELECT content FROM twins GROUP BY content
    HAVING min(said) <> max(said) AND min(split) <> max(split)
)
"""
_DUPLICATES = """
    SELECT content, split, said, count(*) AS records, min(row) AS first
    FROM twins GROUP BY content, split, said HAVING count(*) > 1
"""
_COUNT_DUPLICATES = f"SELECT count(*) FROM ({_DUPLICATES})"
_COUNT_SURPLUS = f"SELECT sum(records - 1) FROM ({_DUPLICATES})"
_FIRST_DUPLICATES = f"""
WITH listed AS ({_DUPLICATES} ORDER BY first LIMIT ?), pairs AS (
    SELECT sides[1] AS one, sides[2] AS other, records FROM (
        SELECT any_value(records) AS records,
            min({{'row': row, 'uri': uri, 'split': split, 'label': twins.label}}, 2) AS sides
        FROM twins JOIN listed USING (content, split)
        WHERE twins.said IS NOT DISTINCT FROM listed.said
        GROUP BY content, split, twins.said
    )
)
SELECT {_TWO_SIDES} FROM pairs ORDER BY row
"""
