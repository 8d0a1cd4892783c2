"""Which image of an older dataset one of a newer list is.

It is that with the same id, else with the same path, else with the bytes of its record. A row
without an image is none.
"""

from __future__ import annotations

# Of several alike, the nth is the nth, by paths without endings, read from the end: images that
# were written into another folder keep the ends of theirs.
_OTHERS = """
SELECT {name}, {by}, row_number() OVER (
    PARTITION BY {by} ORDER BY reverse(regexp_replace(uri, '[.][^./]*$', '')), uri
) AS nth FROM {side} ANTI JOIN {other} USING ({name}) WHERE uri <> ''
"""


def pair_others(old: str, new: str, name: str, by: str) -> str:
    """Returns SQL of the pairs of images that have no common name: `{name}`, and `old_{name}`.

    Args:
        old: The table or view of the older dataset, with the columns `uri`, `name` and `by`.
        new: The same of the newer one.
        name: The column of names; equal ones are of one image.
        by: The column in which the others are equal if they are of one image.
    """
    mine, theirs = (
        _OTHERS.format(by=by, name=name, side=side, other=other)
        for side, other in ((new, old), (old, new))
    )
    return (
        f"SELECT mine.{name} AS {name}, theirs.{name} AS old_{name} "
        f"FROM ({mine}) AS mine JOIN ({theirs}) AS theirs USING ({by}, nth)"
    )
