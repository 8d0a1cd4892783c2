"""The input of the checks."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb

from darkroom.options.validation import ValidationOptions
from darkroom.validation.report.dataset_report import DatasetCounts
from darkroom.validation.report.findings import Anomaly


@dataclass(frozen=True)
class Context:
    """A dataset as the checks see it.

    Attributes:
        connection: Database with the views `records`, `rejects` and `manifest`.
        counts: How many rows, records and rejects the dataset has.
        anomalies: The findings of TFDV's example validation.
        options: Policies and limits.
    """

    connection: duckdb.DuckDBPyConnection
    counts: DatasetCounts
    anomalies: tuple[Anomaly, ...]
    options: ValidationOptions
