"""Checks for records with the same pixels, or with the same bytes where pixels are unknown.

A JPEG and the PNG that was made of it have the same pixels.

Two records of one image are a duplicate if they have the same split and label, a label conflict if
the labels differ, and leakage if the splits differ. An image with both is in one finding: that of
its labels, because whoever keeps the right row settles both. Each finding counts images. It lists
pairs of their records: one record, which may stay, with each of the others.
"""

from __future__ import annotations

from collections.abc import Iterator

from darkroom.dataset.index_queries import select_twins
from darkroom.dataset.splits import SPLITS
from darkroom.runtime.text import format_count
from darkroom.validation.context import Context
from darkroom.validation.counts import fetch_number, fetch_rows
from darkroom.validation.report.findings import MAX_RANKED_ROWS, Finding, FindingRow


def check_leakage(context: Context) -> Iterator[Finding]:
    """Finds images that are in more than one split."""
    tells_both = not context.tells_of_both("label_conflicts", "leakage")
    count, both, rows = _fetch_differing(context, _LEAKS, _CONFLICTS, tells_both)
    if count:
        also = f" Of these, {both:,} with {_name_conflict(context)}: look at them." if both else ""
        yield context.report(
            "leakage",
            count,
            f"{format_count(count, 'image', 'are')} in more than one split, so scores on eval or "
            f"test are too high.{also}",
            "Keep each image in one split: delete its row in the other split. Or list them with "
            "darkroom duplicates DATASET --output FILE, and convert again with --exclude FILE.",
            rows,
        )


def check_label_conflicts(context: Context) -> Iterator[Finding]:
    """Finds images that have more than one label, or copies with other objects."""
    tells_both = context.tells_of_both("label_conflicts", "leakage")
    count, both, rows = _fetch_differing(context, _CONFLICTS, _LEAKS, tells_both)
    if count:
        also = f" Of these, {both:,} in more than one split: scores are too high." if both else ""
        yield context.report(
            "label_conflicts",
            count,
            f"{format_count(count, 'image', 'have')} {_name_conflict(context)}.{also}",
            f"Look at the image, keep the row with the right {_name(context)}, and delete the "
            "others.",
            rows,
        )


def check_duplicates(context: Context) -> Iterator[Finding]:
    """Finds images that occur more than once in a split with the same label."""
    context.connection.execute(_CREATE_TWINS)
    count, rows = _fetch_pairs(context, _DUPLICATES, _ARE_DUPLICATES)
    if count:
        surplus = fetch_number(context.connection, _COUNT_SURPLUS)
        yield context.report(
            "duplicates",
            count,
            f"{format_count(count, 'image', 'occur')} more than once in a split with the same "
            f"{_name(context)}: {format_count(surplus, 'record')} too many.",
            "Delete the copies: each of them counts again in training or in the scores.",
            rows,
        )


def _name(context: Context) -> str:
    return "objects" if context.kind.changes else "label"


def _name_conflict(context: Context) -> str:
    return "copies with other objects" if context.kind.changes else "more than one label"


def _fetch_differing(
    context: Context, having: str, other: str, tells_both: bool
) -> tuple[int, int, tuple[FindingRow, ...]]:
    """Returns how many images differ in what a check asks, and of these in the other, and pairs.

    Args:
        context: What is checked.
        having: How their records differ, in SQL.
        other: The same of the other check.
        tells_both: Whether images that differ in both are among them.
    """
    context.connection.execute(_CREATE_TWINS)
    groups = f"{_GROUPS} GROUP BY content HAVING {having}"
    both = fetch_number(context.connection, f"SELECT count(*) FROM ({groups} AND {other})")
    if both and not tells_both:
        groups, both = f"{groups} AND ({other}) IS NOT TRUE", 0
    count, rows = _fetch_pairs(context, groups, _DIFFER)
    return count, both, _tell_objects(context, rows)


def _tell_objects(context: Context, rows: tuple[FindingRow, ...]) -> tuple[FindingRow, ...]:
    """Adds to pairs of records which of their objects differ."""
    if not (context.kind.changes and rows):
        return rows
    context.connection.execute(_AS_OLD_AND_NEW)
    names = [[row[name] for row in rows] for name in ("row", "other_row")]
    context.connection.execute(_AS_PAIRS, names)
    told: dict[int, dict[str, list[str]]] = {}
    sql = _COUNT_CHANGES.format(changes=context.kind.changes)
    for row, change, objects in context.connection.execute(sql).fetchall():
        told.setdefault(row, {}).setdefault(_CHANGES[change], []).append(objects)
    texts = {
        row: "; ".join(f"{what} {', '.join(each)}" for what, each in found.items())
        for row, found in told.items()
    }
    return tuple({**row, "objects": texts.get(row["other_row"])} for row in rows)


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
# The first record of a group is one that is held out of training, if there is one.
_GROUPS = f"""
SELECT content, count(*) AS records, min(row) AS least,
    max_by(row, [list_position({[*SPLITS]}, split), -row]) AS first
FROM twins
"""
# A record without a label conflicts with no other, because min, max and <> leave nulls out.
_LEAKS, _CONFLICTS = "min(split) <> max(split)", "min(said) <> max(said)"
_DIFFER = "one.split <> other.split OR one.said <> other.said"
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
_COUNT_SURPLUS = f"SELECT sum(records - 1) FROM ({_DUPLICATES})"
# What `TargetKind.changes` reads: the one record is the old one, and each other is in one pair.
_AS_OLD_AND_NEW = """
CREATE OR REPLACE TEMP VIEW old AS FROM records; CREATE OR REPLACE TEMP VIEW new AS FROM records
"""
_AS_PAIRS = """
CREATE OR REPLACE TEMP TABLE pairs AS
SELECT unnest(?::BIGINT[]) AS other_row, unnest(?::BIGINT[]) AS row, TRUE AS relabelled
"""
_CHANGES = {
    "objects_gone": "only the first has",
    "objects_added": "only the second has",
    "objects_relabelled": "of another class:",
    "objects_moved": "at another place:",
    "objects_marked": "with other marks:",
}
_COUNT_CHANGES = f"""
SELECT row, change, printf('%d %s', count(*), label) FROM ({{changes}})
GROUP BY row, change, label ORDER BY list_position({[*_CHANGES]}, change), label
"""
