"""Counts and examples of a dataset, by SQL over the views of validation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import duckdb

from darkroom.dataset.commit import Dataset
from darkroom.dataset.manifest import Manifest
from darkroom.dataset.splits import SPLITS
from darkroom.runtime.text import MAX_LISTED_ROWS
from darkroom.targets.kind import find_kind
from darkroom.validation.report.dataset_report import DatasetCounts, Histogram
from darkroom.validation.report.findings import FindingRow

MAX_SAMPLES = 40
_NUM_BINS = 20


def count_dataset(
    connection: duckdb.DuckDBPyConnection, source: Manifest | Dataset
) -> DatasetCounts:
    """Counts records by split and label, and rejects by reason.

    Args:
        connection: Has the views `records`, `named`, `fields`, `rejects` and `lost`.
        source: Has the number of rows, of deduplicated rows, and the label map.
    """
    found: dict[str, dict[str, int]] = {}
    for split, label, count in connection.execute(_COUNT_CLASSES).fetchall():
        found.setdefault(split, {})[label] = count
    order = {label: number for number, label in enumerate(source.labels)}

    def rank(item: tuple[str, int]) -> tuple[int, str]:
        label, _ = item
        return order.get(label, len(order)), label

    records = dict(connection.execute(_COUNT_SPLITS).fetchall())
    kind, names = find_kind(source.target.kind), source.target.names
    unknown = connection.execute(_COUNT_UNANNOTATED).fetchall() if source.labels or names else ()
    splits = {split: records[split] for split in SPLITS if split in records}
    classes = {split: dict(sorted(found.get(split, {}).items(), key=rank)) for split in splits}
    return DatasetCounts(
        rows=source.rows,
        deduplicated=source.deduplicated,
        labels=tuple(source.labels),
        written=sum(splits.values()),
        rejected=dict(connection.execute(_COUNT_REJECTS.format(view="rejects")).fetchall()),
        splits=splits,
        classes=classes,
        summary=fetch_rows(connection, kind.summary) if kind.summary else (),
        unannotated=dict(unknown),
        numbers=names,
        objects=source.objects if isinstance(source, Dataset) else None,
        lost=dict(connection.execute(_COUNT_REJECTS.format(view="lost")).fetchall()),
    )


def fetch_rows(
    connection: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[object] = ()
) -> tuple[FindingRow, ...]:
    """Runs a constant query and returns its rows as dicts by column name."""
    cursor = connection.execute(sql, list(parameters))
    names = [column[0] for column in cursor.description or ()]
    return tuple(dict(zip(names, row, strict=True)) for row in cursor.fetchall())


def fetch_named_records(
    connection: duckdb.DuckDBPyConnection, rows: Iterable[int]
) -> dict[int, FindingRow]:
    """Returns what findings say of records, by their rows of the source."""
    return {row["row"]: row for row in fetch_rows(connection, _RECORDS, [[*rows]])}


def fetch_number(
    connection: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[object] = ()
) -> int:
    """Runs a constant query and returns its one number; 0 for null."""
    # All rows are fetched: else newer versions of DuckDB refuse other work on the connection.
    [[number]] = connection.execute(sql, list(parameters)).fetchall()
    return int(number or 0)


def count_header_only(connection: duckdb.DuckDBPyConnection) -> int:
    """Returns how many records have an image that was not decoded before it was written."""
    return fetch_number(connection, _COUNT_HEADER_ONLY)


def count_unlike(connection: duckdb.DuckDBPyConnection) -> int:
    """Returns how many records have an image without a perceptual hash."""
    return fetch_number(connection, _COUNT_UNLIKE)


def fetch_rejects(connection: duckdb.DuckDBPyConnection) -> tuple[FindingRow, ...]:
    """Returns the first ten rejected rows, in the order of the source, then those with objects."""
    rows = fetch_rows(connection, _FIRST_REJECTS, [MAX_LISTED_ROWS])
    return (*rows, *fetch_rows(connection, _FIRST_LOST, [MAX_LISTED_ROWS]))


def fetch_samples(connection: duckdb.DuckDBPyConnection) -> tuple[FindingRow, ...]:
    """Returns the record with the smallest key of each class, at most forty."""
    return fetch_rows(connection, _SAMPLES, [MAX_SAMPLES])


def fetch_histograms(connection: duckdb.DuckDBPyConnection) -> dict[str, Histogram]:
    """Returns the histograms of height, width and luminance; those without values are left out."""
    histograms = {}
    for column in ("height", "width", "luminance"):
        [(low, high)] = connection.execute(_EDGES.format(column=column)).fetchall()
        if low is None:
            continue
        low, high = float(low), float(high)
        num_bins = _NUM_BINS if high > low else 1
        counts = [0] * num_bins
        sql = _BINS.format(column=column)
        parameters = [num_bins - 1, low, (high - low) / num_bins or 1.0]
        for number, count in connection.execute(sql, parameters).fetchall():
            counts[number] = count
        histograms[column] = Histogram(low, high, tuple(counts))
    return histograms


_RECORDS = "SELECT row, uri, split, label FROM records WHERE row IN (SELECT unnest(?::BIGINT[]))"
_COUNT_CLASSES = """
SELECT split, coalesce(label, '') AS class, count(*) FROM named GROUP BY 1, 2
"""
_COUNT_UNANNOTATED = """
SELECT split, count(*) FROM records WHERE label IS NULL GROUP BY split ORDER BY count(*) DESC, split
"""
_COUNT_SPLITS = "SELECT split, count(*) FROM records GROUP BY 1"
_COUNT_HEADER_ONLY = """
SELECT count(*) FROM records WHERE pixel_hash IS NULL AND sha256 IS NOT NULL
"""
_COUNT_UNLIKE = """
SELECT count(*) FROM records WHERE perceptual_hash IS NULL AND sha256 IS NOT NULL
"""
_COUNT_REJECTS = """
SELECT reason, count(*) FROM {view} GROUP BY reason ORDER BY count(*) DESC, reason
"""
_FIRST_REJECTS = """
SELECT row, uri, split, label, reason, detail FROM rejects ORDER BY row LIMIT ?
"""
_FIRST_LOST = "SELECT row, uri, split, reason, detail FROM lost ORDER BY row LIMIT ?"
_SAMPLES = """
SELECT min_by(row, key) AS row, min_by(uri, key) AS uri, min_by(split, key) AS split, label
FROM named WHERE uri IS NOT NULL GROUP BY label ORDER BY label LIMIT ?
"""
_EDGES = "SELECT min({column}), max({column}) FROM records WHERE isfinite({column}::DOUBLE)"
_BINS = """
SELECT least(?, floor(({column} - ?) / ?))::INTEGER AS bin, count(*)
FROM records WHERE isfinite({column}::DOUBLE) GROUP BY bin
"""
