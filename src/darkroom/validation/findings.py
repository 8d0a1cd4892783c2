"""What the checks of validation find."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from darkroom.runtime.text import make_visible

CHECK_TITLES: Mapping[str, str] = {
    "accounting": "Rows not accounted for",
    "rejects": "Too many rejected rows",
    "leakage": "Same image in several splits",
    "label_conflicts": "Same image with several labels",
    "duplicates": "Same image several times in a split",
    "missing_splits": "Splits without records",
    "missing_classes": "Classes absent from a split",
    "small_classes": "Classes with few images",
    "similar_labels": "Labels that look alike",
    "unknown_labels": "Labels outside the label map",
    "anomalies": "Anomalies against the schema",
}

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Anomaly:
    """One anomaly of TFDV's, as plain text.

    Attributes:
        split: The split whose statistics show it.
        feature: The feature's name; empty for one of the whole dataset.
        severity: "ERROR" or "WARNING".
        short: Its short description.
        long: Its long description.
    """

    split: str
    feature: str
    severity: str
    short: str
    long: str


@dataclass(frozen=True)
class Finding:
    """One thing that a check found.

    Attributes:
        check: Name of the check.
        policy: "fail" (stops the run) or "warn".
        count: How many things were found: images, rows or classes, as `message` says.
        message: What was found, in one sentence.
        hint: What to do about it.
        rows: The first ten, as JSON-able dicts. A record has `row`, `uri`, `split`, `label`; the
            record that it collides with has the same names after `other_`.
    """

    check: str
    policy: str
    count: int
    message: str
    hint: str = ""
    rows: tuple[Row, ...] = ()


def format_row(row: Row) -> str:
    """Returns one row of a finding as one line of text, both of its sides when it has two."""
    if "other_row" in row:
        other = {name[6:]: value for name, value in row.items() if name.startswith("other_")}
        text = f"{_format_record(row)}  =  {_format_record(other)}"
        return text + (f"  ({row['records']:,} records)" if row.get("records", 2) > 2 else "")
    if "uri" in row:
        extra = [row[name] for name in ("reason", "problem", "detail") if row.get(name)]
        return ": ".join([_format_record(row), *(make_visible(str(each)) for each in extra)])
    # An anomaly, a split or a class: few short values, the name of each is plain from the check.
    return ": ".join(make_visible(f"{value}") for value in row.values() if value)


def _format_record(record: Row) -> str:
    place = ", ".join(
        make_visible(str(record[name])) for name in ("split", "label") if record.get(name)
    )
    uri = make_visible(record["uri"] or "")
    return f"row {record['row']:,} {uri}" + (f" ({place})" if place else "")
