"""The data that do not match a schema: TFDV's anomalies, as plain text."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from typing import Any

from darkroom import storage
from darkroom.dataset.index import find_index_files
from darkroom.dataset.layout import split_folder
from darkroom.dataset.splits import SPLITS
from darkroom.errors import UsageError
from darkroom.runtime import streams
from darkroom.validation.report.findings import Anomaly

# The name that ExampleValidator gives to the anomalies of a split.
ANOMALIES_FILE = "SchemaDiff.pb"


def find_anomalies(index_dir: str, schema_path: str) -> list[Anomaly]:
    """Finds data that do not match a schema, by statistics of the index: no image is read.

    It does the same as ImageStatisticsGen, ImportSchemaGen and ExampleValidator in a pipeline.

    Args:
        index_dir: Folder of the index's Parquet files.
        schema_path: A schema of TFDV as text, as SchemaGen writes it: `schema.pbtxt`.

    Returns:
        The anomalies, split by split.

    Raises:
        MissingExtraError: TFDV is not installed.
        UsageError: The file is not a schema.
        OSError: It cannot be read.
    """
    with streams.quiet_tensorflow():
        import tensorflow_data_validation as tfdv
    from darkroom.validation.statistics import (  # needs Beam
        list_splits_with_records,
        write_statistics,
    )

    schema = read_schema(schema_path)
    files = find_index_files(index_dir)
    found: list[Anomaly] = []
    with tempfile.TemporaryDirectory(prefix="darkroom-") as scratch:
        for split in list_splits_with_records(files):
            path = os.path.join(scratch, split)
            write_statistics(files, split, path)
            statistics = tfdv.load_stats_binary(path)
            found += list_anomalies(split, tfdv.validate_statistics(statistics, schema))
    return found


def read_schema(path: str) -> Any:
    """Reads a schema of TFDV in text form.

    Raises:
        UsageError: The file is not one.
        OSError: It cannot be read.
    """
    from google.protobuf import text_format
    from tensorflow_metadata.proto.v0 import schema_pb2

    try:
        schema = text_format.Parse(storage.read_bytes(path).decode(), schema_pb2.Schema())
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path} is not a schema of TFDV: {error}.",
            "Give the schema.pbtxt that SchemaGen wrote, or one like it.",
        ) from error
    return schema


def read_anomalies(folder: str) -> Iterator[Anomaly]:
    """Yields what ExampleValidator wrote into a folder, split by split."""
    from tensorflow_metadata.proto.v0 import anomalies_pb2

    for split in SPLITS:
        path = storage.join(folder, split_folder(split), ANOMALIES_FILE)
        if storage.exists(path):
            yield from list_anomalies(
                split, anomalies_pb2.Anomalies.FromString(storage.read_bytes(path))
            )


def list_anomalies(split: str, found: Any) -> Iterator[Anomaly]:
    """Yields the anomalies of a split.

    Args:
        split: The split.
        found: TFDV's `Anomalies`.
    """
    if found.dataset_anomaly_info.description:
        yield _convert_anomaly(split, "", found.dataset_anomaly_info)
    for feature, info in sorted(found.anomaly_info.items()):
        yield _convert_anomaly(split, feature, info)


def _convert_anomaly(split: str, feature: str, info: Any) -> Anomaly:
    severity = info.Severity.Name(info.severity)
    return Anomaly(split, feature, severity, info.short_description, info.description)
