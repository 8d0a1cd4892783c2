"""Finds labels that look alike: the same class under two names is two classes to a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import duckdb

from darkroom.dataset.labels import find_lookalikes
from darkroom.validation.counts import DatasetCounts
from darkroom.validation.findings import MAX_LISTED_ROWS, Anomaly, Finding, Row

if TYPE_CHECKING:
    from darkroom.validation.validate import ValidationOptions


def check_similar_labels(
    _connection: duckdb.DuckDBPyConnection,
    counts: DatasetCounts,
    _: tuple[Anomaly, ...],
    options: ValidationOptions,
) -> Iterator[Finding]:
    """Finds labels that a person may take for the same."""
    records: Counter[str] = Counter()
    for found in counts.classes.values():
        records.update(found)
    groups = find_lookalikes({*counts.labels, *records} - {""})
    if groups:
        verb = "label looks" if len(groups) == 1 else "labels look"
        yield Finding(
            "similar_labels",
            options.policies["similar_labels"],
            len(groups),
            f"{len(groups):,} {verb} like others.",
            "When they mean the same, write all of them in the source as the first one.",
            tuple(_make_row(group, records) for group in groups[:MAX_LISTED_ROWS]),
        )


def describe_lookalikes(labels: Iterable[str]) -> list[str]:
    """Returns a line for each of the first groups of labels that look alike."""
    groups = find_lookalikes(labels)
    lines = [
        f"labels look alike: {', '.join(map(_show, group))}; write them alike if they mean the same"
        for group in groups[:MAX_LISTED_ROWS]
    ]
    more = len(groups) - len(lines)
    return [*lines, f"and {more:,} more groups of labels that look alike"] if more else lines


def _make_row(group: list[str], records: Mapping[str, int]) -> Row:
    """Returns a group with the most frequent label first, to which the others can be changed."""
    ordered = sorted(group, key=lambda label: -records.get(label, 0))
    first, *others = (f"{_show(label)} ({records.get(label, 0):,})" for label in ordered)
    return {"label": first, "looks_like": ", ".join(others)}


def _show(label: str) -> str:
    # Letters of other scripts look the same, so their code points are what tells them apart.
    return repr(label) if label.isascii() else f"{label!r} = {label!a}"
