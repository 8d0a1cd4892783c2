"""Chooses the numbers that records have as `image/source_id`, by one rule for a whole dataset.

TensorFlow's Model Garden makes an int64 of it when it evaluates a detector.
"""

from __future__ import annotations

import duckdb

# Null for what is not a whole number of 63 bits.
_OF_LIST = "CASE WHEN regexp_full_match({id}, '0|[1-9][0-9]*') THEN try_cast({id} AS BIGINT) END"
# The first 63 bits of its 128.
_OF_KEY = "(('0x' || key[:16])::UBIGINT >> 1)::BIGINT"
_ARE_UNIQUE = "SELECT count(*) = count(DISTINCT {number}) FROM placed"


def select_source_id(connection: duckdb.DuckDBPyConnection, image_id: str) -> str:
    """Returns the SQL of the number of a row.

    That is the id that the list has for the image, if each row has a whole number of its own, also
    among those of other splits and files. Else it is made of the key, for all rows.

    Args:
        connection: Has the view `placed` of all rows that become records.
        image_id: The SQL of the id that the list has for the image of a row.
    """
    number = _OF_LIST.format(id=image_id)
    are_unique = connection.execute(_ARE_UNIQUE.format(number=number)).fetchall()[0][0]
    return number if are_unique else _OF_KEY
