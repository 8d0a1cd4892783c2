"""TFDV's statistics of a dataset, from its record index, without reading an image.

Columns of the index get the names of the record's features, so that a schema and its anomalies use
the names that the trainer sees. Keys, URIs and hashes are left out: each of their values occurs
once, which says nothing and takes the most time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from darkroom.dataset import example
from darkroom.dataset.index import read_index_batches
from darkroom.dataset.splits import SPLITS
from darkroom.errors import DataError
from darkroom.runtime.plain_beam import apply_transform, beam
from darkroom.targets.kind import find_column_kind

# `image/size_bytes` and `image/luminance` are not features of the record; they show drift.
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
    """Reads the rows of one split: from the path of an index file to record batches for TFDV."""

    def __init__(self, split: str) -> None:
        self._split = split

    def process(self, path: str) -> Iterator[pa.RecordBatch]:
        """Yields the batches of a file; each row has a list of values for each feature."""
        for table in read_index_batches(path, ["split"], _BATCH_ROWS, [*FEATURES, "extra"]):
            rows = table.filter(pa.compute.equal(table["split"], self._split))
            if rows.num_rows:
                yield make_feature_batch(rows)


def make_feature_batch(rows: pa.Table) -> pa.RecordBatch:
    """Returns rows of an index in the form that TFDV takes: each cell is a list of values."""
    columns: dict[str, Any] = {}
    for column, name in FEATURES.items():
        if column == "label" and column in rows.schema.names:
            columns |= find_column_kind(rows["label"].type).measure(rows)
        elif column in rows.schema.names:
            columns[name] = rows[column]
    if "extra" in rows.schema.names:
        extra = rows["extra"].combine_chunks()
        if isinstance(extra, pa.ChunkedArray):
            extra = extra.chunk(0)
        arrays = extra.flatten()
        columns |= {field.name: array for field, array in zip(extra.type, arrays, strict=True)}
    # A column without values is a feature that no record has.
    kept = {name: column for name, column in columns.items() if column.null_count < rows.num_rows}
    return pa.RecordBatch.from_arrays([as_list_array(c) for c in kept.values()], list(kept))


def as_list_array(column: Any) -> pa.ListArray:
    """Returns a column with each value as a list of one value, and each null as a null.

    A column of lists stays as it is.
    """
    if pa.types.is_list(column.type):
        return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    valid = np.asarray(column.is_valid())
    offsets = np.concatenate([[0], np.cumsum(valid)]).astype(np.int32)
    values = column.drop_null()
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    # TFDV accepts no null values below a null list, so they are dropped, not masked.
    return pa.ListArray.from_arrays(pa.array(offsets, mask=np.append(~valid, False)), values)


class WriteStatistics(beam.PTransform):
    """Writes TFDV's statistics of one split; applied to the pipeline itself.

    Args:
        index_files: Paths of the index files.
        split: The split.
        path: Where the binary `DatasetFeatureStatisticsList` is written.
    """

    def __init__(self, index_files: Sequence[str], split: str, path: str) -> None:
        super().__init__()
        self._index_files = index_files
        self._split = split
        self._path = path

    def expand(self, pipeline: beam.Pipeline) -> Any:
        """Returns the result of the write."""
        import tensorflow_data_validation as tfdv

        return (
            pipeline
            | "CreatePaths" >> beam.Create(self._index_files)
            | "ReadIndex"
            >> beam.ParDo(ReadIndexBatchesFn(self._split)).with_output_types(pa.RecordBatch)
            | "GenerateStatistics" >> tfdv.GenerateStatistics(tfdv.StatsOptions())
            | "WriteStatistics" >> tfdv.WriteStatisticsToBinaryFile(self._path)
        )


def write_statistics(index_files: Sequence[str], split: str, path: str) -> None:
    """Writes TFDV's statistics of one split, in this process."""
    options = beam.options.pipeline_options.PipelineOptions(["--runner=FnApiRunner"])
    with beam.Pipeline(options=options) as pipeline:
        write = WriteStatistics(index_files, split, path)
        apply_transform(pipeline, f"WriteStatistics[{split}]", write)


def list_splits_with_records(index_files: Sequence[str]) -> list[str]:
    """Returns the splits that have records, in the order of their files.

    Raises:
        DataError: A file is damaged, or not an index.
    """
    splits: dict[str, None] = {}
    for path in index_files:
        for table in read_index_batches(path, ["split"], _BATCH_ROWS):
            found = table["split"].unique().to_pylist()
            # The names become folders.
            if unknown := set(found) - set(SPLITS):
                name = unknown.pop()
                hint = "List all faults with darkroom verify."
                raise DataError(f"{path} is damaged: {name!r} is not a split.", hint)
            splits.update(dict.fromkeys(found))
    return list(splits)
