"""The checks of validation. Each yields its findings; bad data never makes a check raise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from heapq import nlargest
from operator import itemgetter
from typing import NamedTuple

import pyarrow as pa

from darkroom.dataset.index import find_index_files, read_index_batches
from darkroom.dataset.labels import find_lookalikes, show_label
from darkroom.dataset.rejects import are_too_many, format_hint
from darkroom.options.validation import FAIL, WARN
from darkroom.runtime.text import MAX_LISTED_ROWS, format_count
from darkroom.storage.parquet import BATCH_ROWS
from darkroom.targets.checks import Found, TargetCheck
from darkroom.targets.checks import list_checks as list_target_checks
from darkroom.targets.kind import TargetKind
from darkroom.validation.content import check_duplicates, check_label_conflicts, check_leakage
from darkroom.validation.context import Context
from darkroom.validation.counts import fetch_number, fetch_rejects, fetch_rows
from darkroom.validation.drift import check_drift
from darkroom.validation.groups import check_group_leakage
from darkroom.validation.location import check_location_data
from darkroom.validation.near import check_near_conflicts, check_near_duplicates, check_near_leakage
from darkroom.validation.quality import check_quality
from darkroom.validation.report.findings import MAX_RANKED_ROWS, Finding, FindingRow
from darkroom.validation.suspects import check_suspect_labels


def check_accounting(context: Context) -> Iterator[Finding]:
    """Finds rows of the source that were lost, or that were written or rejected twice."""
    counts = context.counts
    total = counts.written + counts.num_rejected + counts.deduplicated
    num_stray = fetch_number(context.connection, _COUNT_STRAY)
    if total == counts.rows and not num_stray:
        return
    yield Finding(
        "accounting",
        FAIL,
        num_stray or abs(counts.rows - total),
        f"The source has {format_count(counts.rows, 'row')}, but {counts.written:,} written + "
        f"{counts.num_rejected:,} rejected + {counts.deduplicated:,} deduplicated = {total:,}; "
        f"{format_count(num_stray, 'row')} lost or counted twice.",
        "Index, rejects and manifest are of different runs, or darkroom has a defect. Convert the "
        "source again into an empty folder. If this finding stays, report it.",
        fetch_rows(context.connection, _FIRST_STRAY, [MAX_LISTED_ROWS]),
    )


def check_object_accounting(context: Context) -> Iterator[Finding]:
    """Finds objects that the commit counts, and index and rejects do not have."""
    expected = context.counts.objects
    if expected is None:
        return
    written = fetch_number(context.connection, _COUNT_OBJECTS)
    lost = sum(context.counts.lost.values())
    if (written, lost) != (expected.written, expected.alone):
        yield Finding(
            "accounting",
            FAIL,
            abs(written - expected.written) + abs(lost - expected.alone),
            f"The commit counts {expected.written:,} objects written and {expected.alone:,} "
            f"rejected alone; the index has {written:,}, and the rejects have {lost:,}.",
            "Index, rejects and commit are of different runs. Convert the source again into an "
            "empty folder. If this finding stays, report it.",
        )


def check_rejects(context: Context) -> Iterator[Finding]:
    """Finds that more rows, or more objects, were rejected than the limit allows."""
    counts = context.counts
    yield from _check_share(context, counts.num_rejected, counts.rows, "row", counts.rejected)
    if counts.objects is not None:
        reasons = Counter(counts.rejected) + Counter(counts.lost)
        rejected, read = counts.objects.rejected, counts.objects.read
        yield from _check_share(context, rejected, read, "object", reasons)


def _check_share(
    context: Context, rejected: int, total: int, noun: str, counts: Mapping[str, int]
) -> Iterator[Finding]:
    """Finds that more of a total were rejected than the limit allows.

    Args:
        context: What is checked.
        rejected: How many were rejected.
        total: How many there are.
        noun: What they are: row or object.
        counts: Rejected rows and objects by reason.
    """
    options = context.options
    if not are_too_many(options.max_rejects, rejected, total):
        return
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in counts.items())
    yield context.report(
        "rejects",
        rejected,
        f"{format_count(rejected, noun, 'were', total)} rejected "
        f"({rejected / total:.2%}, allowed {options.max_rejects:.2%}): {reasons}.",
        f"Fix the rows of rejects.jsonl, or allow a larger share of rejected {noun}s.\n"
        f"{format_hint(counts)}".rstrip(),
        fetch_rejects(context.connection),
    )


def check_missing_splits(context: Context) -> Iterator[Finding]:
    """Finds splits that must have records and have none."""
    options = context.options
    # A split is expected, too, if the source has it and all its rows were rejected.
    declared = [row[0] for row in context.connection.execute(_REJECTED_SPLITS).fetchall()]
    wanted = dict.fromkeys((*options.required_splits, *declared))
    missing = [split for split in wanted if not context.counts.splits.get(split)]
    if missing:
        yield context.report(
            "missing_splits",
            len(missing),
            f"{format_count(len(missing), 'split', 'have')} no records: {', '.join(missing)}.",
            "Add rows of this split to the source, or leave the split column empty: rows without a "
            "split are assigned to one.",
            tuple({"split": split} for split in missing),
        )


def check_missing_classes(context: Context) -> Iterator[Finding]:
    """Finds classes that have no records in a split."""
    counts, options = context.counts, context.options
    labels = dict.fromkeys((*counts.labels, *(options.expected_labels or ())))
    lacking = {
        label: [split for split, present in counts.classes.items() if not present.get(label)]
        for label in labels
    }
    missing: list[FindingRow] = [
        {"split": ", ".join(splits), "label": label} for label, splits in lacking.items() if splits
    ]
    if missing:
        yield context.report(
            "missing_classes",
            len(missing),
            f"{format_count(len(missing), 'class', 'have')} no records in a split.",
            "Add images of the class. Training cannot learn a class without records in train, and "
            "evaluation cannot measure one without records in eval.",
            tuple(missing[:MAX_LISTED_ROWS]),
        )


def check_small_classes(context: Context) -> Iterator[Finding]:
    """Finds classes with too few records in train."""
    counts, options = context.counts, context.options
    train = counts.classes.get("train", {})
    small: list[FindingRow] = [
        {"split": "train", "label": label, "records": train[label]}
        for label in counts.labels
        if 0 < train.get(label, 0) < options.min_class_images
    ]
    if small:
        yield context.report(
            "small_classes",
            len(small),
            f"{format_count(len(small), 'class', 'have')} fewer than "
            f"{format_count(options.min_class_images, 'record')} in train.",
            "Add images of the class, or merge it with another class.",
            tuple(small[:MAX_LISTED_ROWS]),
        )


def check_similar_labels(context: Context) -> Iterator[Finding]:
    """Finds labels that a person may take for the same label."""
    counts = context.counts
    records: Counter[str] = Counter()
    for found in counts.classes.values():
        records.update(found)
    groups = find_lookalikes({*counts.labels, *records} - {""})
    rows: list[FindingRow] = []
    for group in groups[:MAX_LISTED_ROWS]:
        # The most frequent label comes first: the others can be changed to it.
        ordered = sorted(group, key=lambda label: -records[label])
        first, *others = (f"{show_label(label)} ({records[label]:,})" for label in ordered)
        rows.append({"label": first, "looks_like": ", ".join(others)})
    if groups:
        yield context.report(
            "similar_labels",
            len(groups),
            f"{format_count(len(groups), 'group of labels', 'look')} alike.",
            "If they mean the same, write all of them in the source like the first one.",
            tuple(rows),
        )


def check_unknown_labels(context: Context) -> Iterator[Finding]:
    """Finds records with a label outside the label map or the expected labels."""
    counts, options = context.counts, context.options
    expected = set(counts.labels if options.expected_labels is None else options.expected_labels)
    known = sorted(expected & set(counts.labels))
    count = fetch_number(context.connection, _COUNT_UNKNOWN, [known])
    if count:
        where = "label map" if options.expected_labels is None else "expected labels"
        yield context.report(
            "unknown_labels",
            count,
            f"{format_count(count, 'record', 'have')} a label outside the {where}.",
            "Correct the label in the source, or add it to the labels.",
            fetch_rows(context.connection, _FIRST_UNKNOWN, [known, MAX_LISTED_ROWS]),
        )


def check_anomalies(context: Context) -> Iterator[Finding]:
    """Finds TFDV's anomalies; its errors get the policy, its warnings always warn."""
    # TFDV itself distinguishes errors and warnings. Its warnings never stop a run.
    for policy, is_warning in ((context.options.policies["anomalies"], False), (WARN, True)):
        found = [
            each for each in context.anomalies if (each.severity.upper() == "WARNING") == is_warning
        ]
        if found:
            names = sorted({each.feature for each in found})
            yield Finding(
                "anomalies",
                policy,
                len(found),
                f"The data does not match the schema: {format_count(len(found), 'anomaly')}, in "
                f"{', '.join(names[:5])}{' and others' if len(names) > 5 else ''}.",
                "Correct the data, or change the schema if the data is right.",
                tuple(vars(each) for each in found[:MAX_LISTED_ROWS]),
            )


def check_target(context: Context, check: TargetCheck) -> Iterator[Finding]:
    """Finds what a check of the kind of target looks for."""
    rows: tuple[FindingRow, ...]
    if check.by_results:
        found = context.doubts.rows[check.name]
        count, rows = len(found), tuple(found[:MAX_RANKED_ROWS])
    elif check.ask:
        rows = tuple(check.ask(context.connection))
        count, rows = len(rows), rows[:MAX_LISTED_ROWS]
    else:
        count, rows = _search(context, check.find) if check.find else _query(context, check)
    if count:
        message = check.message.format(count=count)
        yield context.report(check.name, count, message, check.hint, rows)


def _query(context: Context, check: TargetCheck) -> tuple[int, tuple[FindingRow, ...]]:
    """Returns how many faults a check finds by SQL, and the first of them."""
    count = fetch_number(context.connection, f"SELECT count(*) FROM ({check.sql})")
    return count, fetch_rows(context.connection, f"{check.sql} LIMIT {MAX_RANKED_ROWS}")


def _search(
    context: Context, find: Callable[[pa.Table], Found]
) -> tuple[int, tuple[FindingRow, ...]]:
    """Returns how many faults a check finds in the index itself, and the first of them."""
    count, ranked = 0, list[tuple[float, FindingRow]]()
    for path in find_index_files(context.index_dir):
        for table in read_index_batches(path, _SEARCHED, BATCH_ROWS):
            found = find(table)
            count += found.total
            ranked = nlargest(MAX_LISTED_ROWS, [*ranked, *found.ranked], key=itemgetter(0))
    return count, tuple(row for _, row in ranked)


class DatasetCheck(NamedTuple):
    """A check of any dataset.

    Attributes:
        find: Yields its findings.
        needs_names: Whether it is about labels, which numbers do not have.
        foretells: Whether it foretells what images are labelled with from their features.
    """

    find: Callable[[Context], Iterator[Finding]]
    needs_names: bool = False
    foretells: bool = False


def list_dataset_checks(kind: TargetKind) -> dict[str, Callable[[Context], Iterator[Finding]]]:
    """Returns the checks of a dataset by name: those of all kinds of targets, and of its own."""
    has_names = kind.names is not None
    common = {
        name: check.find
        for name, check in COMMON_CHECKS.items()
        if (has_names or not check.needs_names) and (kind.is_learned or not check.foretells)
    }
    own = list_target_checks(kind.name)
    return {**common, **{check.name: partial(check_target, check=check) for check in own}}


COMMON_CHECKS = {
    "rejects": DatasetCheck(check_rejects),
    "leakage": DatasetCheck(check_leakage),
    "group_leakage": DatasetCheck(check_group_leakage),
    "label_conflicts": DatasetCheck(check_label_conflicts),
    "duplicates": DatasetCheck(check_duplicates),
    "near_leakage": DatasetCheck(check_near_leakage),
    "near_conflicts": DatasetCheck(check_near_conflicts),
    "near_duplicates": DatasetCheck(check_near_duplicates),
    "suspect_labels": DatasetCheck(check_suspect_labels, foretells=True),
    "drift": DatasetCheck(check_drift),
    "location_data": DatasetCheck(check_location_data),
    "quality": DatasetCheck(check_quality),
    "missing_splits": DatasetCheck(check_missing_splits),
    "missing_classes": DatasetCheck(check_missing_classes, needs_names=True),
    "small_classes": DatasetCheck(check_small_classes, needs_names=True),
    "unknown_labels": DatasetCheck(check_unknown_labels, needs_names=True),
    "similar_labels": DatasetCheck(check_similar_labels, needs_names=True),
    "anomalies": DatasetCheck(check_anomalies),
}

_SEARCHED = ("row", "uri", "split", "label", "source_width", "source_height")
# Each row of the manifest must be written or rejected, once. Rows that were rejected while the
# manifest was written are not in the manifest.
_ROWS = """(
    SELECT row, uri, split, label, 0 AS used FROM manifest
    UNION ALL SELECT row, uri, split, label, 1 FROM records
    UNION ALL SELECT row, uri, split, label, 1 FROM rejects
)"""
_STRAY = f"SELECT row, sum(used) AS times FROM {_ROWS} GROUP BY row HAVING sum(used) <> 1"
_COUNT_STRAY = f"SELECT count(*) FROM ({_STRAY})"
# Text is looked up for the listed rows only: the text of all rows would not fit into memory.
_FIRST_STRAY = f"""
WITH listed AS ({_STRAY} ORDER BY row LIMIT ?)
SELECT row, any_value(uri) AS uri, any_value(split) AS split, any_value(label) AS label,
    CASE times WHEN 0 THEN 'neither written nor rejected'
    ELSE 'written or rejected ' || times || ' times' END AS problem
FROM listed JOIN {_ROWS} USING (row) GROUP BY row, times ORDER BY row
"""
_COUNT_OBJECTS = "SELECT sum(len(label_list)) FROM records"
_REJECTED_SPLITS = "SELECT DISTINCT split FROM rejects WHERE split <> '' ORDER BY split"
# Records of a source without labels have none, which is not an unknown one.
_UNKNOWN = "FROM named WHERE label <> '' AND label NOT IN (SELECT unnest(?::VARCHAR[]))"
_COUNT_UNKNOWN = f"SELECT count(*) {_UNKNOWN}"
_FIRST_UNKNOWN = f"SELECT row, uri, split, label {_UNKNOWN} ORDER BY row LIMIT ?"
