"""The input of the checks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

from darkroom.dataset.index import read_index
from darkroom.dataset.read_as import ReadAs
from darkroom.features.alike import KnownPairs
from darkroom.features.neighbours import find_neighbours
from darkroom.features.opening import open_features
from darkroom.features.table import Features
from darkroom.images.near_records import Compared, create_near_pairs
from darkroom.options.validation import POLICIES, ValidationOptions
from darkroom.runtime.arrays import Array
from darkroom.storage.parquet import BATCH_ROWS
from darkroom.targets.boxes.doubts import BoxDoubts, find_doubts
from darkroom.targets.boxes.precision import COMPARED_COLUMNS
from darkroom.targets.boxes.results import DetectorFiles
from darkroom.targets.kind import TargetKind
from darkroom.validation.foretold import Looks, compare_looks
from darkroom.validation.ignored import hide_near_pairs
from darkroom.validation.report.dataset_report import DatasetCounts
from darkroom.validation.report.findings import Anomaly, Finding, FindingRow
from darkroom.validation.report.pictures import RecordFolders


class Seen(NamedTuple):
    """The images that have features, in the order of those.

    Attributes:
        rows: Their rows, int64 [N].
        splits: Their splits, text [N].
        targets: What they are labelled with, a column of the index.
        contents: Equal where images have the same pixels, uint64 [N].
        looks: How they look, and which look alike.
    """

    rows: Array
    splits: Array
    targets: pa.Array
    contents: Array
    looks: Looks


@dataclass(frozen=True)
class Context:
    """A dataset as the checks see it.

    Attributes:
        connection: Database with the views `records`, `rejects` and `manifest`; and `matched`, the
            records whose images are shown.
        counts: How many rows, records and rejects the dataset has.
        anomalies: The findings of TFDV's example validation.
        options: Policies and limits.
        kind: What its images are labelled with.
        index_dir: The folder of the index.
        records: Where the records are, for checks of images; None where that is not known.
        uses_cache: Whether features may come from the cache of this machine.
        read_as: How the source was read; None where nobody knows.
        results: What a detector says of the images, and the annotations that it had; None without.
    """

    connection: duckdb.DuckDBPyConnection
    counts: DatasetCounts
    anomalies: tuple[Anomaly, ...]
    options: ValidationOptions
    kind: TargetKind
    index_dir: str
    records: RecordFolders | None = None
    uses_cache: bool = False
    read_as: ReadAs | None = None
    results: DetectorFiles | None = None

    def report(
        self,
        check: str,
        count: int,
        message: str,
        hint: str,
        rows: tuple[FindingRow, ...] = (),
        **more: Any,
    ) -> Finding:
        """Returns what a check found, with the policy of the check; see `Finding`."""
        policy = self.options.policies[check]
        return Finding(check, policy, count, message, hint, rows, **more)

    def tells_of_both(self, check: str, other: str) -> bool:
        """Says whether a check tells of what another one finds, too: unless that is stricter."""
        own, others = (POLICIES.index(self.options.policies[name]) for name in (check, other))
        return own <= others

    @cached_property
    def near_pairs(self) -> Compared:
        """Creates the tables of pairs that look alike, once; tells how they were compared."""
        neighbours = find_neighbours(self.features) if self.features is not None else None
        compared = create_near_pairs(self.connection, self.records, neighbours, KnownPairs)
        hide_near_pairs(self.connection)
        return compared

    @cached_property
    def features(self) -> Features | None:
        """The features of the images, read once; None when nobody has computed them.

        Raises:
            DataError: The table is damaged, or belongs to another dataset.
        """
        return open_features(self.index_dir, uses_cache=self.uses_cache)

    @cached_property
    def doubts(self) -> BoxDoubts:
        """The rows that results of a detector speak against, found once.

        Raises:
            DataError: They are not results of these images.
            OSError: They cannot be read.
        """
        files, index = (
            self.results or DetectorFiles(""),
            read_index(self.index_dir, COMPARED_COLUMNS),
        )
        return find_doubts(files, index, self.counts.labels, self.read_as)

    @cached_property
    def seen(self) -> Seen | None:
        """The images that have features, compared once; None when there are no two of them."""
        features = self.features
        if features is None or len(features.rows) < 2:
            return None
        sql = _SEEN.format(label=self.kind.value_column)
        table = fetch_in_order(self.connection, sql, features.rows)
        contents = table["content"].to_numpy()
        return Seen(
            features.rows,
            np.array(table["split"].to_pylist()),
            table["target"].combine_chunks(),
            contents,
            compare_looks(features.values, contents),
        )


def fetch_in_order(connection: duckdb.DuckDBPyConnection, sql: str, rows: Array) -> pa.Table:
    """Returns what a query says about rows, in their order.

    Args:
        connection: The database.
        sql: Gives each of them once, as `row`, and may give others.
        rows: int64 [N].
    """
    table = connection.sql(sql).to_arrow_reader(BATCH_ROWS).read_all()
    found = table["row"].to_numpy()
    order = np.argsort(found, kind="stable")
    return table.take(pa.array(order[np.searchsorted(found[order], rows)]))


_SEEN = """
SELECT row, split, {label} AS target, hash(coalesce(pixels, sha256, key)) AS content
FROM all_matched
"""
