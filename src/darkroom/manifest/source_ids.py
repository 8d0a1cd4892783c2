"""Chooses the numbers that records have as `image/source_id`, by one rule for a whole dataset.

TensorFlow's Model Garden makes an int64 of it when it evaluates a detector.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from darkroom.runtime import progress

# Null for what is not a whole number of 63 bits.
_OF_LIST = "CASE WHEN regexp_full_match({id}, '0|[1-9][0-9]*') THEN try_cast({id} AS BIGINT) END"
# The first 63 bits of its 128.
_OF_KEY = "(('0x' || key[:16])::UBIGINT >> 1)::BIGINT"
_ARE_UNIQUE = "SELECT count(*) = count(DISTINCT {number}) FROM placed"
# Where they are not, the first rows that show it: one without a number, or two with one number.
_WHY = """
SELECT id, {image_id}, {number} FROM placed WHERE row IN (
    SELECT unnest([first, last]) FROM (
        SELECT min(row) AS first, max(row) AS last
        FROM (SELECT row, {number} AS number FROM placed)
        GROUP BY number HAVING number IS NULL OR count(*) > 1 ORDER BY first LIMIT 1
    )
) ORDER BY row
"""


def select_source_id(connection: duckdb.DuckDBPyConnection, image_id: str, *, had_own: bool) -> str:
    """Returns the SQL of the number of a row.

    That is the id that the list has for the image, if each row has a whole number of its own, also
    among those of other splits and files. Else it is made of the key, for all rows.

    Args:
        connection: Has the view `placed` of all rows that become records.
        image_id: The SQL of the id that the list has for the image of a row.
        had_own: Whether records of the dataset that is updated have the ids of its list.
    """
    number = _OF_LIST.format(id=image_id)
    are_unique = connection.execute(_ARE_UNIQUE.format(number=number)).fetchall()[0][0]
    if had_own and not are_unique:
        rows = connection.execute(_WHY.format(image_id=image_id, number=number)).fetchall()
        progress.warn(
            "image/source_id of every record is another one now, made of its key: "
            f"{_explain(rows)}. Results of a model with the ids of before do not fit. To keep "
            "them, give each new image a whole number that no other image has."
        )
    return number if are_unique else _OF_KEY


def _explain(rows: Sequence[tuple[str, str | None, int | None]]) -> str:
    """Returns why the ids of a list are not used, by the images of `_WHY`."""
    (name, image_id, number), (other, *_) = rows[0], rows[-1]
    if image_id is None:
        return f"{name} has no id"
    if number is None:
        return f"{name} has the id {image_id!r}, which is not a whole number of 63 bits"
    return f"{name} and {other} both have the id {image_id!r}"
