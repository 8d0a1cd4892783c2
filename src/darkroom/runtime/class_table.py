"""How many records each class has in each split, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from darkroom.runtime.result import Fact
from darkroom.runtime.table import Cell, Table
from darkroom.runtime.text import NOT_ANNOTATED, make_visible

# Records by split, then by label; "" means no label.
ClassCounts = Mapping[str, Mapping[str, int]]

# With more classes, the largest and the smallest are shown, and a line between them.
_MAX_CLASSES = 10
NUM_LARGEST = 5
_MAX_LABEL_CHARACTERS = 24
_MAX_MISSING = 5


def describe_classes(
    classes: ClassCounts, labels: Sequence[str], numbers: Sequence[str] = ()
) -> Fact:
    """Returns the number of labels, with a table of the largest and smallest classes.

    Args:
        classes: Records by split, then by label.
        labels: The label map.
        numbers: The names of the numbers, where images are labelled with numbers.
    """
    names = list_classes(classes, labels)
    head = Fact("Labels", f"{len(names):,}")
    if numbers:
        head = Fact("Numbers", ", ".join(make_visible(each) for each in numbers))
    if not names or not classes:
        return head
    splits = classes.values()
    totals = {name: sum(counts.get(name, 0) for counts in splits) for name in names}
    shown = _choose(totals)
    rows: list[list[Cell]] = [[name, *(found.get(name, 0) for found in splits)] for name in shown]
    if any(unknown := [found.get("", 0) for found in splits]):
        rows.append([NOT_ANNOTATED, *unknown])
    more = len(names) - len(shown)
    largest = max(*totals.values(), 1)
    table = Table(
        "",
        ["", *classes],
        rows,
        more=f"{more:,} more between these" if more else "",
        gap=NUM_LARGEST,
        shares=[totals[name] / largest for name in shown],
    )
    return head._replace(table=table)


def list_classes(classes: ClassCounts, labels: Sequence[str]) -> list[str]:
    """Returns the labels of the label map, then those that records have beside it."""
    seen = (label for counts in classes.values() for label in counts if label)
    return list(dict.fromkeys((*labels, *seen)))


def _choose(totals: Mapping[str, int]) -> list[str]:
    """Returns all classes in order, or the largest and the smallest if there are too many."""
    if len(totals) <= _MAX_CLASSES:
        return [*totals]
    by_size = sorted(totals, key=lambda name: -totals[name])
    return by_size[:NUM_LARGEST] + by_size[NUM_LARGEST - _MAX_CLASSES + 1 :]


def format_missing_classes(
    classes: ClassCounts, labels: Sequence[str], numbers: Sequence[str] = ()
) -> str:
    """Returns which classes have no records in a split, in one line; empty when all have some.

    A split for the evaluation that is missing altogether is named, too. Numbers have no classes.
    """
    if numbers:
        return ""
    lacking = "No records in eval." if "train" in classes and "eval" not in classes else ""
    return " ".join(filter(None, (lacking, _format_missing(classes, labels))))


def _format_missing(classes: ClassCounts, labels: Sequence[str]) -> str:
    """Returns, as in "No records of cat, dog in eval.", the first labels that each split lacks."""
    parts = []
    for split, counts in classes.items():
        missing = [label for label in labels if label not in counts]
        more = len(missing) - _MAX_MISSING
        if missing:
            first = (make_visible(each, _MAX_LABEL_CHARACTERS) for each in missing[:_MAX_MISSING])
            also = f" and {more:,} more" if more > 0 else ""
            parts.append(f"{', '.join(first)}{also} in {split}")
    return f"No records of {'; of '.join(parts)}." if parts else ""
