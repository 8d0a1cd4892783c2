"""Judges a dataset by its index, its rejects and its manifest or commit, without its images.

DuckDB counts and compares, within a limit of memory. The SQL is constant: text of the user is only
ever data.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import duckdb

from darkroom import storage
from darkroom.dataset.commit import Dataset, Target
from darkroom.dataset.index_queries import (
    ROW_COLUMNS,
    create_index_view,
    match_decoded_copies,
)
from darkroom.dataset.manifest import MANIFEST_FILE, Manifest, read_manifest
from darkroom.dataset.read_as import ReadAs, read_read_as
from darkroom.dataset.rejects import OBJECT_STAGE
from darkroom.options.validation import FAIL, OFF, ValidationOptions
from darkroom.storage.database import create_view, name_damage, open_database
from darkroom.targets.boxes.results import DetectorFiles
from darkroom.targets.checks import list_result_checks
from darkroom.targets.kind import TargetKind, find_kind
from darkroom.validation.checks import (
    check_accounting,
    check_object_accounting,
    list_dataset_checks,
)
from darkroom.validation.context import Context
from darkroom.validation.counts import (
    count_dataset,
    count_header_only,
    count_unlike,
    fetch_histograms,
    fetch_rejects,
    fetch_samples,
)
from darkroom.validation.drift import find_baseline
from darkroom.validation.ignored import count_ignored, hide_ignored
from darkroom.validation.report.dataset_report import NEAR_CHECKS, DatasetReport
from darkroom.validation.report.findings import Anomaly
from darkroom.validation.report.pictures import RecordFolders


@dataclass(frozen=True)
class JudgedFiles:
    """The files that are judged.

    Attributes:
        index_dir: Folder of the index's Parquet files.
        rejects_path: `rejects.parquet` of the conversion; it contains those of the manifest, too.
        source: Folder of `manifest.parquet`, `manifest.json` and `labels.txt`. Or the commit of a
            finished dataset, which keeps no manifest: then a lost row is counted, but not named.
        anomalies: The findings of TFDV's example validation.
        records: Where the records are, for checks of images; None where that is not known.
        uses_cache: Whether features may come from the cache of this machine, where the dataset has
            none.
        results: What a detector says of the images; None without.
    """

    index_dir: str
    rejects_path: str
    source: str | Dataset
    anomalies: tuple[Anomaly, ...] = ()
    records: RecordFolders | None = None
    uses_cache: bool = False
    results: DetectorFiles | None = None

    def read_source(self) -> Manifest | Dataset:
        """Returns the facts of the manifest, or the commit."""
        return read_manifest(self.source) if isinstance(self.source, str) else self.source

    def find_read_as(self, source: Manifest | Dataset) -> ReadAs | None:
        """Returns how the source of these facts was read; None where nobody knows."""
        if isinstance(source, Manifest):
            return source.read_as
        return read_read_as(self.records.examples) if self.records else None


def judge_dataset(files: JudgedFiles, options: ValidationOptions | None = None) -> DatasetReport:
    """Judges a dataset.

    Args:
        files: Its index, its rejects, and its manifest or commit.
        options: Policies and limits.

    Returns:
        The report. Bad data is a finding in the report, never an exception.

    Raises:
        DataError: An input is missing or damaged.
        StorageError: An input cannot be read.
    """
    options = options or ValidationOptions()
    if options.baseline is not None:  # Before checks that may take minutes.
        options = replace(options, baseline=find_baseline(options.baseline))
    source = files.read_source()
    kind = find_kind(source.target.kind)
    with (
        tempfile.TemporaryDirectory(prefix="darkroom-") as scratch,
        _open_views(files, source.target, scratch) as connection,
    ):
        counts = count_dataset(connection, source)
        context = Context(
            connection,
            counts,
            files.anomalies,
            options,
            kind,
            files.index_dir,
            files.records,
            files.uses_cache,
            files.find_read_as(source),
            files.results,
        )
        findings = [*check_accounting(context), *check_object_accounting(context)]
        checks = list_dataset_checks(kind)
        policies = {name: policy for name, policy in options.policies.items() if name in checks}
        if files.results is None:
            policies |= {name: OFF for name in list_result_checks() if name in checks}
        for name, policy in policies.items():
            if policy != OFF:
                findings += checks[name](context)
        is_near = any(policies[name] != OFF for name in NEAR_CHECKS)
        features = context.features if is_near and context.near_pairs.has_neighbours else None
        return DatasetReport(
            **vars(counts),
            policies=policies,
            findings=tuple(sorted(findings, key=lambda finding: finding.policy != FAIL)),
            rejects=fetch_rejects(connection),
            num_header_only=count_header_only(connection),
            num_unlike=count_unlike(connection),
            histograms=fetch_histograms(connection),
            samples=fetch_samples(connection),
            excluded=source.excluded if isinstance(source, Manifest) else 0,
            ignored=count_ignored(connection),
            has_features=features is not None,
            num_silent=context.doubts.silent if files.results else 0,
            num_kept=len(features.rows) if features is not None and features.is_cached else 0,
            read_as=context.read_as,
        )


@contextmanager
def _open_views(
    files: JudgedFiles, target: Target, scratch: str
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Opens a database with `records`, `matched`, `named`, `fields`, `rejects` and `manifest`."""
    kind = find_kind(target.kind)
    with open_database(scratch, has_objects=bool(kind.objects)) as connection:
        create_index_view(connection, "records", files.index_dir, scratch, kind.told, kind.said)
        connection.execute(name_labels(kind, "records", "named"))
        create_fields(connection, target.names)
        create_rejects(connection, files.rejects_path, kind, scratch)
        if isinstance(files.source, str):
            _create_manifest(connection, files.source, kind, scratch)
        else:
            connection.execute(_NO_MANIFEST)
        with name_damage("The index, the rejects or the manifest are"):
            match_decoded_copies(connection, "all_matched")
            hide_ignored(connection)
            yield connection


def create_rejects(
    connection: duckdb.DuckDBPyConnection, path: str, kind: TargetKind, scratch: str
) -> None:
    """Makes the views `rejects`, and `lost` of the objects whose images have a record.

    Objects that were rejected are JSON, which is only in the list of rejects.

    Raises:
        DataError: The file is damaged.
        OSError: It cannot be read.
    """
    create_view(connection, "rejects", [path], scratch, _REJECT_COLUMNS)
    label = "label" if kind.listed is None else "NULL::VARCHAR"
    connection.execute(_SPLIT_REJECTS.format(label=label))


def _create_manifest(
    connection: duckdb.DuckDBPyConnection, folder: str, kind: TargetKind, scratch: str
) -> None:
    """Makes the view `manifest`, which has labels where the index has the same ones."""
    has_labels = kind.listed is None
    columns = {n: c for n, c in _MANIFEST_COLUMNS.items() if has_labels or n != "label"}
    paths = [storage.join(folder, MANIFEST_FILE)]
    create_view(connection, "manifest", paths, scratch, columns)
    if not has_labels:
        connection.execute(_WITHOUT_LABELS)


def create_fields(connection: duckdb.DuckDBPyConnection, names: Sequence[str]) -> None:
    """Makes the table `fields`, with number and name of each number of a dataset."""
    connection.execute(_CREATE_FIELDS, [list(names)])


def name_labels(kind: TargetKind, records: str, view: str) -> str:
    """Returns the SQL of a view with a row for each label of a record; numbers have none.

    Args:
        kind: What records are labelled with.
        records: Name of their view.
        view: Name of the new one.
    """
    label = (kind.names or "NULL").format(column=kind.value_column)
    columns = f"row, uri, split, key, {label} AS label"
    return f"CREATE VIEW {view} AS SELECT {columns} FROM {records} WHERE {kind.names is not None}"


_MANIFEST_COLUMNS = {**ROW_COLUMNS, "key": "VARCHAR"}
_REJECT_COLUMNS = {**ROW_COLUMNS, "stage": "VARCHAR", "reason": "VARCHAR", "detail": "VARCHAR"}
_SPLIT_REJECTS = f"""
ALTER VIEW rejects RENAME TO rejects_file;
CREATE VIEW rejects AS SELECT * REPLACE ({{label}} AS label) FROM rejects_file
WHERE stage IS DISTINCT FROM '{OBJECT_STAGE}';
CREATE VIEW lost AS SELECT * EXCLUDE (label), label AS target FROM rejects_file
WHERE stage = '{OBJECT_STAGE}';
"""

_CREATE_FIELDS = """
CREATE TABLE fields AS SELECT unnest(range(1, len(names) + 1)) AS number, unnest(names) AS name
FROM (SELECT ?::VARCHAR[] AS names)
"""
_WITHOUT_LABELS = """
ALTER VIEW manifest RENAME TO manifest_file;
CREATE VIEW manifest AS SELECT *, NULL::VARCHAR AS label FROM manifest_file;
"""
_NO_MANIFEST = "CREATE VIEW manifest AS SELECT row, uri, split, label, key FROM records WHERE false"
