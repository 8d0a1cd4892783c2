"""Checks for records with the same pixels, or with the same bytes where pixels are unknown.

A JPEG and the PNG that was made of it have the same pixels.

Two records of one image are a duplicate if they have the same split and label, a label conflict if
only the labels differ, and leakage if only the splits differ. If both differ, they are reported as
both, because fixing one does not fix the other. Each finding counts images. It lists pairs of their
records: one record, which may stay, with each of the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from darkroom.dataset.index_queries import select_twins
from darkroom.dataset.splits import SPLITS
from darkroom.runtime.text import format_count
from darkroom.validation.context import Context
from darkroom.validation.counts import fetch_number, fetch_rows
from darkroom.validation.report.findings import MAX_RANKED_ROWS, Finding, FindingRow

_LIST_THEM = (
    "list them with darkroom duplicates DATASET --output FILE, and convert again with "
    "--exclude FILE."
)


def check_leakage(context: Context) -> Iterator[Finding]:
    """Finds images that are in more than one split."""
    count, rows = _fetch_twins(context, "split")
    if count:
        verb = "image is" if count == 1 else "images are"
        hint = "Keep each image in one split: delete its row in the other split."
        num_conflicts = fetch_number(context.connection, _COUNT_LEAKING_CONFLICTS)
        if num_conflicts < count:
            hint += f" Or {_LIST_THEM}"
        if num_conflicts:
            hint += f" Of {num_conflicts:,} with more than one label, keep the row with the right "
            hint += "one: a list of duplicates keeps all of their rows."
        yield Finding(
            "leakage",
            context.options.policies["leakage"],
            count,
            f"{count:,} {verb} in more than one split, so scores on eval or test are too high.",
            hint,
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
    count, rows = _fetch_pairs(context, _DUPLICATES, _ARE_DUPLICATES)
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
            rows,
        )


def _fetch_twins(
    context: Context, differing: Literal["split", "said"]
) -> tuple[int, tuple[FindingRow, ...]]:
    """Returns how many images differ in a column, and pairs of their records."""
    context.connection.execute(_CREATE_TWINS)
    groups, pairs = _DIFFERING.format(differing=differing), f"one.{differing} <> other.{differing}"
    return _fetch_pairs(context, groups, pairs)


def _fetch_pairs(context: Context, groups: str, pairs: str) -> tuple[int, tuple[FindingRow, ...]]:
    """Returns how many groups of records there are, and pairs: one record of each with the others.

    Args:
        context: What is checked.
        groups: Query of the groups: `content`, `records` and `first`, the row of the one.
        pairs: Which others, in SQL; `one` and `other` are two records with the same content.
    """
    count = fetch_number(context.connection, f"SELECT count(*) FROM ({groups})")
    sql = _PAIRS.format(groups=groups, pairs=pairs)
    return count, fetch_rows(context.connection, sql, [MAX_RANKED_ROWS] * 2) if count else ()


# All records with content that occurs more than once. Usually this table is small.
_TWINS = select_twins("row, uri, split, label, said, coalesce(pixels, sha256) AS content")
_CREATE_TWINS = f"""
CREATE TEMP TABLE IF NOT EXISTS twins AS FROM ({_TWINS}) ANTI JOIN ignored_twins USING (row)
"""
# The first record of a group is one that is held out of training, if there is one. A record without
# a label conflicts with no other, because min, max and <> leave nulls out.
_GROUPS = f"""
SELECT content, count(*) AS records, min(row) AS least,
    max_by(row, [list_position({[*SPLITS]}, split), -row]) AS first
FROM twins
"""
_DIFFERING = (
    _GROUPS
    + "WHERE {differing} IS NOT NULL GROUP BY content HAVING min({differing}) <> max({differing})"
)
_DUPLICATES = _GROUPS + "GROUP BY content, split, said HAVING records > 1"
_ARE_DUPLICATES = (
    "one.row <> other.row AND one.split = other.split AND one.said IS NOT DISTINCT FROM other.said"
)
# The listed groups are chosen first, and only they are joined with their records: records of all
# groups would not fit into memory. First comes a pair of each group, then what else it has.
_PAIRS = """
WITH listed AS ({groups} ORDER BY least LIMIT ?), pairs AS (
    SELECT first, other.row AS other_row, records, least,
        row_number() OVER (PARTITION BY first ORDER BY other.row) AS number
    FROM listed JOIN twins AS one ON one.row = first
        JOIN twins AS other ON other.content = one.content
    WHERE {pairs} ORDER BY number, least LIMIT ?
)
SELECT one.row AS row, one.uri AS uri, one.split AS split, one.label AS label,
    other.row AS other_row, other.uri AS other_uri, other.split AS other_split,
    other.label AS other_label, records
FROM pairs JOIN twins AS one ON one.row = first JOIN twins AS other ON other.row = pairs.other_row
ORDER BY number, least
"""
_COUNT_LEAKING_CONFLICTS = """
SELECT count(*) FROM (
    SELECT content FROM twins GROUP BY content
    HAVING min(said) <> max(said) AND min(split) <> max(split)
)
"""
_COUNT_SURPLUS = f"SELECT sum(records - 1) FROM ({_DUPLICATES})"
