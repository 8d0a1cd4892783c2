"""Finds labels that look alike: the same class under two names is two classes to a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from darkroom.dataset.labels import find_lookalikes, show_label
from darkroom.runtime.text import MAX_LISTED_ROWS
from darkroom.validation.context import Context
from darkroom.validation.findings import Finding, Row


def check_similar_labels(context: Context) -> Iterator[Finding]:
    """Finds labels that a person may take for the same."""
    counts = context.counts
    records: Counter[str] = Counter()
    for found in counts.classes.values():
        records.update(found)
    groups = find_lookalikes({*counts.labels, *records} - {""})
    if groups:
        verb = "label looks" if len(groups) == 1 else "labels look"
        yield Finding(
            "similar_labels",
            context.options.policies["similar_labels"],
            len(groups),
            f"{len(groups):,} {verb} like others.",
            "When they mean the same, write all of them in the source as the first one.",
            tuple(_make_row(group, records) for group in groups[:MAX_LISTED_ROWS]),
        )


def _make_row(group: list[str], records: Mapping[str, int]) -> Row:
    """Returns a group with the most frequent label first, to which the others can be changed."""
    ordered = sorted(group, key=lambda label: -records.get(label, 0))
    first, *others = (f"{show_label(label)} ({records.get(label, 0):,})" for label in ordered)
    return {"label": first, "looks_like": ", ".join(others)}
