"""The check for images that say where they were taken, or with which camera."""

from __future__ import annotations

from collections.abc import Iterator

from darkroom.images.metadata import LOCATION, SERIAL
from darkroom.runtime.text import format_count
from darkroom.validation.context import Context
from darkroom.validation.counts import fetch_number, fetch_rows
from darkroom.validation.report.findings import MAX_RANKED_ROWS, Finding


def check_location_data(context: Context) -> Iterator[Finding]:
    """Finds stored images with a GPS position, or the serial number of a camera or lens."""
    count = fetch_number(context.connection, _COUNT)
    if not count:
        return
    num_places = fetch_number(context.connection, f"{_COUNT} AND private LIKE '%{LOCATION}%'")
    yield context.report(
        "location_data",
        count,
        f"{format_count(count, 'stored image', 'tell')} a position or the serial number of a "
        f"camera or lens: {format_count(num_places, 'position')}.",
        "Whoever gets the records can read them. Take them out with the option strip_metadata "
        "(darkroom convert --strip-metadata). Pixels stay as they are.",
        fetch_rows(context.connection, _FIRST, [MAX_RANKED_ROWS]),
    )


_COUNT = "SELECT count(*) FROM matched WHERE private <> ''"
# Positions come first.
_FIRST = f"""
SELECT row, uri, split, label,
    replace(replace(private, '{LOCATION}', 'GPS position'), '{SERIAL}', 'serial number') AS problem
FROM matched WHERE private <> '' ORDER BY private, row LIMIT ?
"""
