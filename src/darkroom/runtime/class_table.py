"""How many records each class has in each split, as text for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from darkroom.runtime.text import make_visible

# Records by split, then by label; "" means no label.
ClassCounts = Mapping[str, Mapping[str, int]]

# With more classes, the largest and the smallest are shown, and a line between them.
MAX_CLASSES = 10
NUM_LARGEST = 5
_MAX_LABEL_CHARACTERS = 24
_MAX_MISSING = 5
_BAR_CHARACTERS = 20
_UNLABELLED = "The records have no labels: no column names them."


def format_class_table(
    classes: ClassCounts, labels: Sequence[str], numbers: Sequence[str] = (), *, bars: bool = False
) -> list[str]:
    """Returns the number of labels and the largest and smallest classes, as lines of a table.

    Args:
        classes: Records by split, then by label.
        labels: The label map.
        numbers: The names of the numbers, where images are labelled with numbers.
        bars: Whether each class gets a bar, as long as its share of the largest.
    """
    names = list_classes(classes, labels)
    head = f"Labels     {len(names):,}"
    if numbers:
        head = f"Numbers    {', '.join(make_visible(each) for each in numbers)}"
    if not names or not classes:
        return [head]
    totals = count_totals(classes, names)
    shown = choose_classes(names, totals)
    rows = [[head, *classes]]
    for name in shown:
        counts = (f"{found.get(name, 0):,}" for found in classes.values())
        rows.append([f"  {make_visible(name, _MAX_LABEL_CHARACTERS)}", *counts])
    if any(unknown := [found.get("", 0) for found in classes.values()]):
        rows.append(["  (not known)", *(f"{count:,}" for count in unknown)])
    lines = align_rows(rows)
    if bars:
        largest = max(*totals.values(), 1)
        lengths = [0, *(round(_BAR_CHARACTERS * totals[name] / largest) for name in shown)]
        lengths += [0] * (len(lines) - len(lengths))
        lines = [f"{line}  {'█' * n}".rstrip() for line, n in zip(lines, lengths, strict=True)]
    if more := len(names) - len(shown):
        lines.insert(NUM_LARGEST + 1, f"  and {more:,} more between these")
    return lines


def list_classes(classes: ClassCounts, labels: Sequence[str]) -> list[str]:
    """Returns the labels of the label map, then those that records have beside it."""
    seen = (label for counts in classes.values() for label in counts if label)
    return list(dict.fromkeys((*labels, *seen)))


def count_totals(classes: ClassCounts, names: Sequence[str]) -> dict[str, int]:
    """Returns the records of each label in all splits."""
    return {name: sum(counts.get(name, 0) for counts in classes.values()) for name in names}


def choose_classes(names: Sequence[str], totals: Mapping[str, int]) -> list[str]:
    """Returns all classes in order, or the largest and the smallest if there are too many."""
    if len(names) <= MAX_CLASSES:
        return list(names)
    by_size = sorted(names, key=lambda name: -totals[name])
    return by_size[:NUM_LARGEST] + by_size[NUM_LARGEST - MAX_CLASSES + 1 :]


def align_rows(rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns rows as lines; all columns but the first are numbers."""
    first, *others = (max(map(len, column)) for column in zip(*rows, strict=True))
    return [
        "".join([name.ljust(first), *(f"  {n:>{w}}" for n, w in zip(cells, others, strict=True))])
        for name, *cells in rows
    ]


def has_no_labels(classes: ClassCounts) -> bool:
    """Tells whether there are records, and none has a label."""
    return bool(classes) and not any(any(counts) for counts in classes.values())


def format_missing_classes(
    classes: ClassCounts, labels: Sequence[str], numbers: Sequence[str] = ()
) -> str:
    """Returns which classes have no records in a split, in one line; empty when all have some.

    A split for the evaluation that is missing altogether is named, too. Numbers have no classes.
    """
    if numbers:
        return ""
    lacking = "No records in eval." if "train" in classes and "eval" not in classes else ""
    found = _UNLABELLED if has_no_labels(classes) else _list_missing(classes, labels)
    return " ".join(filter(None, (lacking, found)))


def _list_missing(classes: ClassCounts, labels: Sequence[str]) -> str:
    parts = []
    for split, counts in classes.items():
        missing = [label for label in labels if label not in counts]
        more = len(missing) - _MAX_MISSING
        if missing:
            first = (make_visible(each, _MAX_LABEL_CHARACTERS) for each in missing[:_MAX_MISSING])
            also = f" and {more:,} more" if more > 0 else ""
            parts.append(f"{', '.join(first)}{also} in {split}")
    return f"No records of {'; of '.join(parts)}." if parts else ""
