"""The input of the checks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import duckdb

from darkroom.features.neighbours import find_neighbours
from darkroom.features.table import Features, find_features_file, read_features
from darkroom.images.near_records import Compared, create_near_pairs
from darkroom.options.validation import ValidationOptions
from darkroom.validation.ignored import hide_near_pairs
from darkroom.validation.report.dataset_report import DatasetCounts
from darkroom.validation.report.findings import Anomaly
from darkroom.validation.report.pictures import Records


@dataclass(frozen=True)
class Context:
    """A dataset as the checks see it.

    Attributes:
        connection: Database with the views `records`, `rejects` and `manifest`; and `matched`, the
            records whose images are shown.
        counts: How many rows, records and rejects the dataset has.
        anomalies: The findings of TFDV's example validation.
        options: Policies and limits.
        index_dir: The folder of the index.
        records: Where the records are, for checks of images; None where that is not known.
    """

    connection: duckdb.DuckDBPyConnection
    counts: DatasetCounts
    anomalies: tuple[Anomaly, ...]
    options: ValidationOptions
    index_dir: str
    records: Records | None = None

    @cached_property
    def near_pairs(self) -> Compared:
        """Creates the tables of pairs that look alike, once; tells how they were compared."""
        neighbours = find_neighbours(self.features) if self.features is not None else None
        compared = create_near_pairs(self.connection, self.records, neighbours)
        hide_near_pairs(self.connection)
        return compared

    @cached_property
    def features(self) -> Features | None:
        """The features of the images, read once; None when nobody has asked for them.

        Raises:
            DataError: The table is damaged, or belongs to another dataset.
        """
        path = find_features_file(self.index_dir)
        return None if path is None else read_features(path, self.index_dir)
