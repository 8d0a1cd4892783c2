"""The check for labels that look alike: to a model they are different classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from darkroom.dataset.labels import find_lookalikes, show_label
from darkroom.runtime.text import MAX_LISTED_ROWS
from darkroom.validation.context import Context
from darkroom.validation.findings import Finding, Row


def check_similar_labels(context: Context) -> Iterator[Finding]:
    """Finds labels that a person may take for the same label."""
    counts = context.counts
    records: Counter[str] = Counter()
    for found in counts.classes.values():
        records.update(found)
    groups = find_lookalikes({*counts.labels, *records} - {""})
    rows: list[Row] = []
    for group in groups[:MAX_LISTED_ROWS]:
        # The most frequent label comes first: the others can be changed to it.
        ordered = sorted(group, key=lambda label: -records[label])
        first, *others = (f"{show_label(label)} ({records[label]:,})" for label in ordered)
        rows.append({"label": first, "looks_like": ", ".join(others)})
    if groups:
        verb = "group of labels looks" if len(groups) == 1 else "groups of labels look"
        yield Finding(
            "similar_labels",
            context.options.policies["similar_labels"],
            len(groups),
            f"{len(groups):,} {verb} alike.",
            "If they mean the same, write all of them in the source like the first one.",
            tuple(rows),
        )
