"""Checks for near copies: images that look alike, and do not have the same pixels.

Pairs are found by the perceptual hashes of the index, and by features where they are there, and are
verified on the pixels of the records (`images.near_records`). A hash alone may be wrong: pairs that
are not verified can warn and never stop a run, so they are a finding of their own. Each finding
counts pairs, and lists the ones that are most alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from darkroom.images.alignment import COVERED
from darkroom.options.validation import FAIL, WARN
from darkroom.runtime.text import format_count
from darkroom.validation.context import Context
from darkroom.validation.counts import fetch_number, fetch_rows
from darkroom.validation.report.findings import MAX_RANKED_ROWS, Finding

_NEVER_STOPS = (
    "The policy fail has no effect: pairs that are not verified on pixels never stop a run."
)
_INSTALL = " Pairs are verified where records and OpenCV are there: the extra `reader`."


def _check_near(
    context: Context, name: str, condition: str, where: str, hint: str
) -> Iterator[Finding]:
    """Yields a finding for the verified pairs of a kind, and one for those that are not.

    Args:
        context: What is checked.
        name: The name of the check.
        condition: Which pairs, in SQL; `a` and `b` are the two sides, with split and label.
        where: The same in words, for the message.
        hint: What to do.
    """
    leaves = "near_leakage", "near_conflicts"
    # A pair is in one finding: whoever keeps one of two copies has one label, too.
    if name == leaves[context.tells_of_both(*leaves)]:
        [other] = {_LEAKS, _CONFLICTS} - {condition}
        condition += f" AND ({other}) IS NOT TRUE"
    compared = context.near_pairs  # makes the tables of pairs
    context.connection.execute(_CREATE_SIDES)
    policy = context.options.policies[name]
    for is_verified in (True, False):
        query = _PAIRS.format(condition=condition, kind="NOT NULL" if is_verified else "NULL")
        count = fetch_number(context.connection, f"SELECT count(*) FROM ({query})")
        if not count:
            continue
        is_lowered = policy == FAIL and not is_verified
        how = "verified" if is_verified else "by perceptual hash, not verified"
        images = format_count(count, "pair of images", "look")
        said = f"{images} alike, {where} ({how} on pixels)."
        remarks = compared.left_out, _NEVER_STOPS if is_lowered else ""
        measure = f"difference, {_MEASURED}" if is_verified else "difference"
        first = _FIRST.format(pairs=query, condition=condition, measure=measure, covered=COVERED)
        yield Finding(
            name,
            WARN if is_lowered else policy,
            count,
            " ".join(filter(None, (said, *remarks))),
            hint + ("" if compared.is_verified else _INSTALL),
            fetch_rows(context.connection, first, [MAX_RANKED_ROWS]),
        )


# A record without a label conflicts with no other.
_LEAKS, _CONFLICTS = "a.split <> b.split", "a.label <> b.label"
_LIST = "All groups are listed by darkroom duplicates DATASET --near."
check_near_leakage = partial(
    _check_near,
    name="near_leakage",
    condition=_LEAKS,
    where="in different splits",
    hint="Look at the pairs: if they are copies, keep each image in one split, or scores on eval "
    f"or test are too high. {_LIST}",
)
check_near_conflicts = partial(
    _check_near,
    name="near_conflicts",
    condition=_CONFLICTS,
    where="with different labels",
    hint=f"Look at the pairs: if they are copies, one of the labels is wrong. {_LIST}",
)
check_near_duplicates = partial(
    _check_near,
    name="near_duplicates",
    condition="a.split = b.split AND a.label IS NOT DISTINCT FROM b.label",
    where="in one split with one label",
    hint="Look at the pairs: copies count several times in training or in the scores. " + _LIST,
)

# What the images of one number are, by split and label. The first and the last content is kept of
# each, because images with the same pixels are not near copies.
_CREATE_SIDES = """
CREATE TEMP TABLE IF NOT EXISTS sides AS
SELECT number, split, label, min(content) AS low, max(content) AS high
FROM near_looks JOIN records USING (row) GROUP BY number, split, label
"""
_PAIRS = """
SELECT DISTINCT correlation, difference, one, other
FROM near JOIN sides AS a ON a.number = one JOIN sides AS b ON b.number = other
WHERE correlation IS {kind} AND {condition} AND (a.low <> b.high OR a.high <> b.low)
"""
# The pairs are chosen first, and only they are joined with their records.
_FIRST = """
WITH listed AS (
    SELECT * FROM ({pairs}) ORDER BY correlation % {covered} DESC, difference, one, other LIMIT ?
), ends AS (
    SELECT number, split, label, min({{'content': content, 'row': row}}) AS low,
        max({{'content': content, 'row': row}}) AS high
    FROM near_looks JOIN records USING (row)
    WHERE number IN (SELECT one FROM listed UNION SELECT other FROM listed)
    GROUP BY number, split, label
), pairs AS (
    SELECT correlation, difference, min(CASE
        WHEN a.low.content <> b.high.content
        THEN {{'one': least(a.low.row, b.high.row), 'other': greatest(a.low.row, b.high.row)}}
        ELSE {{'one': least(a.high.row, b.low.row), 'other': greatest(a.high.row, b.low.row)}}
    END) AS rows
    FROM listed JOIN ends AS a ON a.number = one JOIN ends AS b ON b.number = other
    WHERE {condition} AND (a.low.content <> b.high.content OR a.high.content <> b.low.content)
    GROUP BY one, other, difference, correlation
)
SELECT one.row AS row, one.uri AS uri, one.split AS split, one.label AS label,
    other.row AS other_row, other.uri AS other_uri, other.split AS other_split,
    other.label AS other_label, {measure}
FROM pairs JOIN records AS one ON one.row = rows.one
    JOIN records AS other ON other.row = rows.other
ORDER BY pairs.correlation % {covered} DESC, difference, row, other_row
"""
_MEASURED = f"""round(correlation % {COVERED}, 3) AS correlation,
    CASE WHEN correlation > {COVERED} THEN 'something covers a part of one' END AS edit"""
