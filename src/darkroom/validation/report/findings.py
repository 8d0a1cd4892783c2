"""The findings of the checks of validation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from darkroom.runtime.text import MAX_LISTED_ROWS, make_visible
from darkroom.targets.checks import list_all_checks

__all__ = ["Finding"]

# Rows of a finding that is ranked, worst first: programs get all, people the first ten.
MAX_RANKED_ROWS = 1_000

CHECK_TITLES: Mapping[str, str] = {
    "accounting": "Rows not accounted for",
    "rejects": "Too many rejected rows",
    "rejected": "Rejected rows",
    "leakage": "Equal pixels in more than one split",
    "group_leakage": "Groups in more than one split",
    "label_conflicts": "Equal pixels that are labelled differently",
    "duplicates": "Equal pixels more than once in a split",
    "near_leakage": "Images that look alike in different splits",
    "near_conflicts": "Images that look alike with different labels",
    "near_duplicates": "Images that look alike in a split",
    "suspect_labels": "Labels that are probably wrong",
    "mistakes": "Images that a model labels differently",
    "drift": "Splits or datasets that differ",
    "location_data": "Places and numbers of cameras in images",
    "quality": "Images that differ from the others in quality",
    "missing_splits": "Splits without records",
    "missing_classes": "Classes without records in a split",
    "small_classes": "Classes with few images",
    "similar_labels": "Labels that look alike",
    "unknown_labels": "Labels outside the label map",
    "anomalies": "Data that does not match the schema",
    **{check.name: check.title for check in list_all_checks()},
    "test_frozen": "Changes of the test split",
    "class_loss": "Classes that lost images",
    "test_to_train": "Images of test in train",
    "first": "The first dataset",
    "added": "Added",
    "removed": "Removed",
    "moved": "In another split",
    "relabelled": "With another label",
    "redrawn": "With other pixels",
    "encoded": "In other bytes",
    "objects_added": "Objects added",
    "objects_gone": "Objects gone",
    "objects_relabelled": "Objects relabelled",
    "objects_moved": "Objects moved",
    "objects_marked": "Objects with other marks",
    "other_columns": "With other values in the index",
    "renumbered": "Labels with another number",
}

FindingRow = Mapping[str, Any]
_RECORD = ("row", "uri", "split", "label", "other_row", "other_uri", "other_split", "other_label")
# What is drawn over the picture of a record: left, top, right and bottom, in shares of the image.
BOX = "box"
# Which object of a record: its `number`, from 1, or None for a result of a detector, and its `box`.
OBJECT = "object"
# What splits are compared by.
MEASURES = ("size", "aspect", "brightness", "features")
# What people read for values that their names alone do not explain.
_VALUE_NAMES = {
    "difference": "hash difference (of 256 bits)",
    "correlation": "correlation of pixels",
    "probability": "probability of its label",
    "z": "distance (standard deviations)",
    "features": "probability of this side",
    "records": "records of this image",
}


@dataclass(frozen=True)
class Anomaly:
    """An anomaly that TFDV found, as plain text.

    Attributes:
        split: The split in which it was found.
        feature: Name of the feature; empty for an anomaly of the whole dataset.
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
        policy: "fail" (stops the run) or "warn"; "model" where a model says it.
        count: How many images, rows or classes it is about; `message` says which.
        message: The finding, in one sentence.
        hint: What to do about it.
        rows: The first ten, or of pairs and of what is ranked the first thousand, as dicts for
            JSON. A record has `row`, `uri`, `split` and `label`; the other record of a pair has the
            same names with the prefix `other_`. An object has `object`: its `number` in the image,
            from 1, and its `box`, left, top, right and bottom in pixels of the image as it is
            shown; a result that matches no object has no number. If two copies have different
            objects, `objects` says which. Pairs that look alike have their `difference`, in bits of
            256, and begin with the least. A label that is probably wrong has `suggested`, and its
            `probability`, or for numbers `z`, the distance in standard deviations.
        measured: Of a difference, how much was `found` and `allowed`, by what was measured.
        next_rows: Of labels that are probably wrong the next ones by doubt, for people who look on.
    """

    check: str
    policy: str
    count: int
    message: str
    hint: str = ""
    rows: tuple[FindingRow, ...] = ()
    next_rows: tuple[FindingRow, ...] = ()
    measured: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What people read above it."""
        what = ", ".join(self.measured)
        return CHECK_TITLES.get(self.check, self.check) + (f": {what}" if what else "")

    @property
    def first_rows(self) -> tuple[FindingRow, ...]:
        """The rows that pages and texts show."""
        return self.rows[:MAX_LISTED_ROWS]


def name_value(name: str) -> str:
    """Returns the name of a value of a row as people read it."""
    return _VALUE_NAMES.get(name, name.replace("_", " "))


def format_more(finding: Finding) -> str:
    """Returns how many rows follow the first ones, and where they are; empty for none."""
    shown, listed = len(finding.first_rows), len(finding.rows)
    # An image may have several pairs.
    count = max(finding.count, listed)
    if not shown or count <= shown:
        return ""
    more = f"{count - shown:,} more"
    if listed == shown:
        return more
    which = "all" if listed >= count else f"the first {listed:,}"
    return f"{more}: {which} are in report.json and --json"


def format_finding_row(row: FindingRow) -> str:
    """Returns a row of a finding as one line of text, with both records of a pair."""
    if "other_row" in row:
        sign = "~" if {"difference", "group"} & {*row} else "="
        text = f"  {sign}  ".join(map(format_record, list_sides(row)))
        text += f"  (move to {row['move_to']})" if "move_to" in row else ""
        text += f"  ({row['objects']})" if row.get("objects") else ""
        return text + (f"  ({row['records']:,} records)" if row.get("records", 2) > 2 else "")
    if "uri" in row:
        extra = [format_object(row[OBJECT])] if row.get(OBJECT) else []
        extra += [row[name] for name in ("reason", "problem", "detail") if row.get(name)]
        extra += [f"probably {row['suggested']}"] if "suggested" in row else []
        extra += [f"{name} {row[name]}" for name in MEASURES if name in row]
        return ": ".join([format_record(row), *(make_visible(str(each)) for each in extra)])
    # An anomaly, a split or a class. What a single number is, the check says.
    numbers = [name for name, value in row.items() if isinstance(value, int)]
    named = numbers if len(numbers) > 1 else ()
    values = ((f"{name_value(name)} " if name in named else "", each) for name, each in row.items())
    return ": ".join(make_visible(f"{name}{value}") for name, value in values if value)


def list_sides(row: FindingRow) -> tuple[FindingRow, FindingRow]:
    """Returns the two records of a pair."""
    return row, {name[6:]: value for name, value in row.items() if name.startswith("other_")}


def list_record_facts(row: FindingRow) -> dict[str, Any]:
    """Returns what a finding says of its records besides what they are, by names for people."""
    # That there are two records goes without saying.
    known = {
        name: value
        for name, value in row.items()
        if value is not None and (name, value) != ("records", 2)
    }
    if OBJECT in known:
        known[OBJECT] = format_object(known[OBJECT])
    return {name_value(name): value for name, value in known.items() if name not in (*_RECORD, BOX)}


def format_object(each: Mapping[str, Any]) -> str:
    """Returns an object of a row as text: its number, and its corners in pixels."""
    left, top, right, bottom = (f"{side:g}" for side in each["box"])
    name = f"object {each['number']:,}" if each["number"] else "a result"
    return f"{name} from ({left}, {top}) to ({right}, {bottom})"


def format_record(record: FindingRow) -> str:
    """Returns a record as text: its row, its URI, and its split and label."""
    place = ", ".join(
        make_visible(str(record[name])) for name in ("split", "label") if record.get(name)
    )
    uri = make_visible(record["uri"] or "")
    return f"row {record['row']:,} {uri}" + (f" ({place})" if place else "")
