"""TFDV's statistics of a dataset, from its record index; no image is read.

Columns of the index appear under the names of the record's features, so that a schema and its
anomalies speak of what the trainer sees. Keys, URIs and hashes are left out: each value of theirs
occurs once, which says nothing and costs most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from darkroom import storage
from darkroom.dataset import example
from darkroom.runtime.plain_beam import beam
from darkroom.storage.parquet import read_batches

# `image/size_bytes` and `image/luminance` are no features of the record; they tell of drift.
FEATURES = {
    "height": example.IMAGE_HEIGHT,
    "width": example.IMAGE_WIDTH,
    "channels": example.IMAGE_CHANNELS,
    "format": example.IMAGE_FORMAT,
    "label": example.LABEL_TEXT,
    "size_bytes": "image/size_bytes",
    "luminance": "image/luminance",
}
_BATCH_ROWS = 10_000


class ReadIndexBatchesFn(beam.DoFn):
    """Reads the rows of one split: path of an index file -> Arrow record batches for TFDV."""

    def __init__(self, split: str) -> None:
        self._split = split

    def process(self, path: str) -> Iterator[pa.RecordBatch]:
        """Yields the batches of a file, one list of values a row and feature."""
        for batch in read_batches(path, batch_rows=_BATCH_ROWS):
            table = pa.Table.from_batches([batch])
            rows = table.filter(pa.compute.equal(table["split"], self._split))
            if rows.num_rows:
                yield make_feature_batch(rows)


def make_feature_batch(rows: pa.Table) -> pa.RecordBatch:
    """Returns rows of an index as TFDV takes them: every column a list of values a row."""
    columns = {
        name: rows[column] for column, name in FEATURES.items() if column in rows.schema.names
    }
    if "extra" in rows.schema.names:
        extra = rows["extra"].combine_chunks()
        for place, field in enumerate(rows.schema.field("extra").type):
            columns[field.name] = _take_field(extra, place)
    # A column without any value is a feature that no record has.
    kept = {name: column for name, column in columns.items() if column.null_count < rows.num_rows}
    arrays = [as_list_array(column) for column in kept.values()]
    return pa.RecordBatch.from_arrays(arrays, list(kept))


def _take_field(extra: Any, place: int) -> Any:
    array = extra.chunk(0) if isinstance(extra, pa.ChunkedArray) else extra
    return array.flatten()[place]


def as_list_array(column: Any) -> pa.ListArray:
    """Returns a column with each value as a list of one, and what is null as a missing list."""
    valid = np.asarray(column.is_valid())
    offsets = np.concatenate([[0], np.cumsum(valid)]).astype(np.int32)
    values = column.drop_null()
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    # TFDV refuses nulls that hide below a null list, so they are dropped rather than masked.
    return pa.ListArray.from_arrays(pa.array(offsets, mask=np.append(~valid, False)), values)


class WriteStatistics(beam.PTransform):
    """Writes TFDV's statistics of one split; applied to the pipeline itself.

    Args:
        index_files: Paths of the index files.
        split: The split that is described.
        path: Where the binary `DatasetFeatureStatisticsList` goes.
    """

    def __init__(self, index_files: Sequence[str], split: str, path: str) -> None:
        super().__init__()
        self._index_files = index_files
        self._split = split
        self._path = path

    def expand(self, pipeline: beam.Pipeline) -> Any:
        """Returns what the write leaves."""
        import tensorflow_data_validation as tfdv

        return (
            pipeline
            | "CreatePaths" >> beam.Create(self._index_files)
            | "ReadIndex"
            >> beam.ParDo(ReadIndexBatchesFn(self._split)).with_output_types(pa.RecordBatch)
            | "GenerateStatistics" >> tfdv.GenerateStatistics(tfdv.StatsOptions())
            | "WriteStatistics" >> tfdv.WriteStatisticsToBinaryFile(self._path)
        )


def list_splits(index_files: Sequence[str]) -> list[str]:
    """Returns the splits that have records, in the order of their files."""
    splits: dict[str, None] = {}
    for path in index_files:
        with storage.open_read(path) as file:
            found = pq.read_table(file, columns=["split"])["split"].unique().to_pylist()
        splits.update(dict.fromkeys(found))
    return list(splits)
