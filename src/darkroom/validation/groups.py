"""The check for groups, as the images of a patient, that are in more than one split.

Groups are those of the index, where rows were placed by groups or classes.
"""

from __future__ import annotations

from collections.abc import Iterator

from darkroom.runtime.text import format_count
from darkroom.validation.context import Context
from darkroom.validation.counts import fetch_number, fetch_rows
from darkroom.validation.report.findings import MAX_RANKED_ROWS, Finding


def check_group_leakage(context: Context) -> Iterator[Finding]:
    """Finds groups that are in more than one split; lists the rows to move, and where to."""
    context.connection.execute(_CREATE_SPREAD)
    count = fetch_number(context.connection, "SELECT count(*) FROM spread")
    if count:
        num_rows = fetch_number(context.connection, "SELECT sum(to_move) FROM spread")
        yield context.report(
            "group_leakage",
            count,
            f"{format_count(count, 'group')} in more than one split, so scores on eval or test are "
            f"too high: {format_count(num_rows, 'record')} to move.",
            "Give each record in the list of images the split that most of its group has.",
            fetch_rows(context.connection, _FIRST, [MAX_RANKED_ROWS]),
        )


# Of splits with equally many records, the first of train, eval and test: as new rows are placed.
_CREATE_SPREAD = """
CREATE TEMP TABLE IF NOT EXISTS spread AS
SELECT "group", min_by(split, weight) AS move_to, min_by(first, weight) AS other,
    sum(records) - max(records) AS to_move
FROM (
    SELECT "group", split, count(*) AS records, min(row) AS first,
        list_position(['train', 'eval', 'test'], split) - 4 * count(*) AS weight
    FROM records WHERE "group" IS NOT NULL GROUP BY "group", split
) GROUP BY "group" HAVING count(*) > 1
"""
_FIRST = """
WITH listed AS (
    SELECT row, "group", move_to, other FROM records JOIN spread USING ("group")
    WHERE split <> move_to ORDER BY row LIMIT ?
)
SELECT one.row AS row, one.uri AS uri, one.split AS split, one.label AS label,
    other.row AS other_row, other.uri AS other_uri, other.split AS other_split,
    other.label AS other_label, listed."group" AS "group", move_to
FROM listed JOIN records AS one ON one.row = listed.row
    JOIN records AS other ON other.row = listed.other
ORDER BY row
"""
