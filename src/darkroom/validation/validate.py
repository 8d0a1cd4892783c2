"""Validates a converted dataset by its index, rejects and manifest, without reading an image.

DuckDB counts and compares, within a limit of memory. The SQL is constant: text of the user is only
ever data.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb

from darkroom import storage
from darkroom.dataset.index import LATER_COLUMNS, find_index_files, match_decoded_copies
from darkroom.errors import DataError, StorageError
from darkroom.manifest import table
from darkroom.options.validation import FAIL, OFF, ValidationOptions
from darkroom.storage.database import create_view, open_database
from darkroom.validation.checks import CHECK_FUNCTIONS, check_accounting
from darkroom.validation.context import Context
from darkroom.validation.counts import (
    count_dataset,
    count_header_only,
    fetch_histograms,
    fetch_rejects,
    fetch_samples,
)
from darkroom.validation.dataset_report import DatasetReport
from darkroom.validation.findings import Anomaly


@dataclass(frozen=True)
class ValidationInputs:
    """The files that are validated.

    Attributes:
        index_dir: Folder of the index's Parquet files.
        rejects_path: `rejects.parquet` of the conversion; it contains those of the manifest, too.
        manifest_dir: Folder of `manifest.parquet`, `manifest.json` and `labels.txt`.
        anomalies: What TFDV's example validation found.
    """

    index_dir: str
    rejects_path: str
    manifest_dir: str
    anomalies: tuple[Anomaly, ...] = ()


def validate(inputs: ValidationInputs, options: ValidationOptions | None = None) -> DatasetReport:
    """Validates a dataset.

    Args:
        inputs: Where its index, rejects and manifest are.
        options: Policies and limits.

    Returns:
        The report. Bad data is a finding in the report, never an exception.

    Raises:
        DataError: An input is missing or damaged.
        StorageError: An input cannot be read.
    """
    options = options or ValidationOptions()
    source = table.read_manifest(inputs.manifest_dir)
    with (
        tempfile.TemporaryDirectory(prefix="darkroom-") as scratch,
        _open_views(inputs, scratch) as connection,
    ):
        counts = count_dataset(connection, source)
        context = Context(connection, counts, inputs.anomalies, options)
        findings = list(check_accounting(context))
        for check, policy in options.policies.items():
            if policy != OFF:
                findings += CHECK_FUNCTIONS[check](context)
        return DatasetReport(
            **vars(counts),
            policies=dict(options.policies),
            findings=tuple(sorted(findings, key=lambda finding: finding.policy != FAIL)),
            rejects=fetch_rejects(connection),
            num_header_only=count_header_only(connection),
            histograms=fetch_histograms(connection),
            samples=fetch_samples(connection),
        )


@contextmanager
def _open_views(inputs: ValidationInputs, scratch: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """Opens a database with the views `records`, `rejects` and `manifest`."""
    index = find_index_files(inputs.index_dir)
    manifest = storage.join(inputs.manifest_dir, table.MANIFEST_FILE)
    # With two threads, half a million images that are there twice do not fit.
    with open_database(scratch, threads=1) as connection:
        _create_view(connection, "records", index, _RECORD_COLUMNS, scratch)
        _create_view(connection, "rejects", [inputs.rejects_path], _REJECT_COLUMNS, scratch)
        _create_view(connection, "manifest", [manifest], _MANIFEST_COLUMNS, scratch)
        try:
            match_decoded_copies(connection)
            yield connection
        except duckdb.OperationalError:  # Memory or disk, not the data.
            raise
        except duckdb.Error as error:
            message = f"The index, the rejects or the manifest are damaged: {error}."
            raise DataError(message, "Convert the source again.") from error


# Types are given because a column without any value may come back from Parquet with another one.
_ROW_COLUMNS = {"row": "BIGINT", "uri": "VARCHAR", "split": "VARCHAR", "label": "VARCHAR"}
_MANIFEST_COLUMNS = {**_ROW_COLUMNS, "key": "VARCHAR"}
_REJECT_COLUMNS = {**_ROW_COLUMNS, "reason": "VARCHAR", "detail": "VARCHAR"}
_RECORD_COLUMNS = {
    **_ROW_COLUMNS,
    "key": "VARCHAR",
    "sha256": "VARCHAR",
    "pixel_hash": "VARCHAR",
    "decoded_hash": "VARCHAR",
    "height": "BIGINT",
    "width": "BIGINT",
    "luminance": "DOUBLE",
}


def _create_view(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    paths: Sequence[str],
    columns: Mapping[str, str],
    scratch: str,
) -> None:
    try:
        create_view(connection, name, paths, scratch, columns, LATER_COLUMNS)
    except StorageError:
        raise
    except (OSError, duckdb.OperationalError) as error:
        raise StorageError(f"The {name} cannot be read: {error}.") from error
    except duckdb.Error as error:
        message = f"The {name} at {paths[0]} cannot be used: {error}."
        raise DataError(message, "Run the step that writes this file again.") from error
