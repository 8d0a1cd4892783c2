"""Judges a converted dataset from its index, rejects and manifest; never reads an image.

All counting is DuckDB's, over the Parquet files and out of core. Text of the user travels only as
data: the SQL is constant.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb

from darkroom import storage
from darkroom.errors import DataError, StorageError
from darkroom.manifest import table
from darkroom.options.validation import CHECKS, FAIL, OFF, ValidationOptions
from darkroom.validation.checks import CHECK_FUNCTIONS, check_accounting
from darkroom.validation.counts import (
    DatasetCounts,
    count_dataset,
    fetch_histograms,
    fetch_rejects,
    fetch_samples,
)
from darkroom.validation.findings import Anomaly, Finding, ValidationReport


@dataclass(frozen=True)
class ValidationInputs:
    """What is judged.

    Attributes:
        index_dir: Folder of the index's Parquet files.
        rejects_path: `rejects.parquet` of the conversion, rejects of the manifest included.
        manifest_dir: Folder of `manifest.parquet`, `manifest.json` and `labels.txt`.
        anomalies: What TFDV's example validation found.
    """

    index_dir: str
    rejects_path: str
    manifest_dir: str
    anomalies: tuple[Anomaly, ...] = ()


def validate(
    inputs: ValidationInputs, options: ValidationOptions | None = None
) -> ValidationReport:
    """Judges a dataset.

    Args:
        inputs: Where its index, rejects and manifest are.
        options: Policies and limits.

    Returns:
        The report; bad data is a finding in it, never an exception.

    Raises:
        DataError: An input is missing or is not what it should be.
        StorageError: An input cannot be read.
    """
    options = options or ValidationOptions()
    source = table.read_manifest(inputs.manifest_dir)
    with (
        tempfile.TemporaryDirectory(prefix="darkroom-") as scratch,
        _open_views(inputs, scratch) as connection,
    ):
        counts = count_dataset(connection, source)
        findings = _find(connection, counts, inputs.anomalies, options)
        return ValidationReport(
            rows=counts.rows,
            written=counts.written,
            deduplicated=counts.deduplicated,
            rejected=counts.rejected,
            labels=counts.labels,
            splits=counts.splits,
            classes=counts.classes,
            policies=dict(options.policies),
            findings=findings,
            rejects=fetch_rejects(connection),
            num_header_only=counts.num_header_only,
            histograms=fetch_histograms(connection),
            samples=fetch_samples(connection),
        )


def _find(
    connection: duckdb.DuckDBPyConnection,
    counts: DatasetCounts,
    anomalies: tuple[Anomaly, ...],
    options: ValidationOptions,
) -> tuple[Finding, ...]:
    findings = list(check_accounting(connection, counts))
    for check in CHECKS:
        if options.policies[check] != OFF:
            findings += CHECK_FUNCTIONS[check](connection, counts, anomalies, options)
    return tuple(sorted(findings, key=lambda finding: finding.policy != FAIL))


@contextmanager
def _open_views(inputs: ValidationInputs, scratch: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """Opens DuckDB with the views that the checks read, and with room to spill in `scratch`."""
    index = _list_index(inputs.index_dir)
    rows = [storage.join(inputs.manifest_dir, table.MANIFEST_FILE)]
    config = {
        "temp_directory": os.path.join(scratch, "spill"),
        "autoinstall_known_extensions": "false",  # Never download anything.
        "autoload_known_extensions": "false",
    }
    with duckdb.connect(":memory:", config=config) as connection:
        _create_view(connection, "records", index, _RECORD_COLUMNS, scratch)
        _create_view(connection, "rejects", [inputs.rejects_path], _REJECT_COLUMNS, scratch)
        _create_view(connection, "manifest", rows, _MANIFEST_COLUMNS, scratch)
        try:
            yield connection
        except duckdb.OperationalError as error:  # Memory or disk, not the data.
            raise StorageError(f"DuckDB cannot go on: {error}") from error
        except duckdb.Error as error:
            message = f"The index, rejects or manifest are damaged: {error}"
            raise DataError(message, "Convert again.") from error


def _list_index(folder: str) -> list[str]:
    names = [name for name in storage.list_folder(folder) if name.endswith(".parquet")]
    if not names:
        message = f"The index folder {folder} holds no Parquet file."
        raise DataError(message, "Run the conversion again.")
    return [storage.join(folder, name) for name in names]


# Casts, because a column without any value may come back from Parquet with another type.
_ROW_COLUMNS = {"row": "BIGINT", "uri": "VARCHAR", "split": "VARCHAR", "label": "VARCHAR"}
_MANIFEST_COLUMNS = {**_ROW_COLUMNS, "key": "VARCHAR"}
_REJECT_COLUMNS = {**_ROW_COLUMNS, "reason": "VARCHAR", "detail": "VARCHAR"}
_RECORD_COLUMNS = {
    **_ROW_COLUMNS,
    "key": "VARCHAR",
    "sha256": "VARCHAR",
    "pixel_hash": "VARCHAR",
    "height": "BIGINT",
    "width": "BIGINT",
    "luminance": "DOUBLE",
}


def _create_view(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    paths: list[str],
    columns: Mapping[str, str],
    scratch: str,
) -> None:
    casts = ", ".join(
        f'CAST("{column}" AS {kind}) AS "{column}"' for column, kind in columns.items()
    )
    try:
        files = [
            _fetch_local(path, os.path.join(scratch, f"{name}-{number}.parquet"))
            for number, path in enumerate(paths)
        ]
        relation = connection.read_parquet([_escape_glob(file) for file in files])
        relation.project(casts).create_view(name)
    except StorageError:
        raise
    except (OSError, duckdb.OperationalError) as error:
        raise StorageError(f"The {name} cannot be read: {error}") from error
    except duckdb.Error as error:
        message = f"The {name} at {paths[0]} are not what darkroom wrote: {error}"
        raise DataError(message, "Run the step that wrote it again.") from error


def _fetch_local(path: str, copy: str) -> str:
    """Returns a local file for `path`; DuckDB itself never opens a remote one."""
    if storage.is_remote(path):
        storage.copy_file(path, copy)
        return copy
    return storage.absolute(path)


def _escape_glob(path: str) -> str:
    return "".join(f"[{character}]" if character in "*?[" else character for character in path)
