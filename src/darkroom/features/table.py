"""`features.parquet`: the features of a dataset's images, in the order of its index.

Its columns are `key`, as in the index, and `features`, the bytes of D numbers, float16 in
little-endian order: not every version of pyarrow that is supported writes lists of float16. A
record whose image could not be decoded has no row. In a dataset, the file is a sidecar in the root;
in TFX, it is in the folder of the index.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from darkroom import storage
from darkroom.dataset.index import find_index_files, read_index_batches
from darkroom.dataset.layout import FEATURES_FILE, INDEX_FOLDER
from darkroom.errors import DataError
from darkroom.storage.parquet import BATCH_ROWS, iterate_batches, report_damage

_MODEL = b"darkroom.model"
_NUMBER = np.dtype("<f2")
_AGAIN = "Delete it, and make it again with: darkroom embed RECORDS."

Array = np.ndarray[Any, Any]


class Features(NamedTuple):
    """The features of the images of a dataset.

    Attributes:
        model: Name and hash of the model that made them; only those of one model are comparable.
        rows: The column `row` of the index for each, int64 [N], in the order of the index.
        values: float32 [N, D].
        is_kept: Whether they come from the cache, and not from a table of the dataset.
    """

    model: str
    rows: Array
    values: Array
    is_kept: bool = False


def make_values(count: int, width: int, dtype: Any = np.float32) -> Array:
    """Returns zeros [count, width] in a temporary file: the system can take their memory back."""
    with tempfile.TemporaryFile(prefix="darkroom-") as scratch:
        return np.memmap(scratch, dtype, "w+", shape=(max(1, count), width))[:count]


def write_features(
    file: BinaryIO, model: str, width: int, batches: Iterable[tuple[Sequence[str], Array]]
) -> None:
    """Writes the features of a dataset, a group of rows for each batch.

    Args:
        file: Gets the bytes of the table.
        model: Name and hash of the model.
        width: D, how many numbers each image has.
        batches: Keys of records and their features [len(keys), D], in the order of the index.
    """
    kind = pa.binary(width * _NUMBER.itemsize)
    schema = pa.schema([("key", pa.string()), ("features", kind)], {_MODEL: model.encode()})
    # Each key and each image is another one, so there is nothing to gain.
    options = {"use_dictionary": False, "compression": "NONE", "write_statistics": False}
    with pq.ParquetWriter(file, schema, **options) as writer:
        for keys, values in batches:
            numbers = pa.py_buffer(np.ascontiguousarray(values, _NUMBER))
            column = pa.FixedSizeBinaryArray.from_buffers(kind, len(keys), [None, numbers])
            writer.write_table(pa.table([pa.array(keys, pa.string()), column], schema=schema))


def find_features_file(index_dir: str) -> str | None:
    """Returns the path of the table that belongs to an index; None when there is none."""
    folders = [index_dir]
    if index_dir.endswith(f"/{INDEX_FOLDER}"):
        folders.append(index_dir.removesuffix(f"/{INDEX_FOLDER}"))
    paths = (storage.join(folder, FEATURES_FILE) for folder in folders)
    return next(filter(storage.exists, paths), None)


def read_features(path: str, index_dir: str) -> Features | None:
    """Reads the features of a dataset.

    The values are in a temporary file, so that the system can take their memory back: those of a
    million images have 5 GB.

    Args:
        path: The table.
        index_dir: The folder of the index.

    Returns:
        The features; None when there is no such file.

    Raises:
        DataError: It is damaged, or belongs to another dataset.
        OSError: It cannot be read.
    """
    if not storage.exists(path):
        return None
    with storage.open_read(path) as file, report_damage(f"{path} is damaged", _AGAIN):
        parquet = pq.ParquetFile(file)
        schema, count = parquet.schema_arrow, parquet.metadata.num_rows
        model = (schema.metadata or {}).get(_MODEL, b"").decode()
        is_ours = schema.names == ["key", "features"] and model
        kind = schema.field("features").type if is_ours else pa.null()
        if not pa.types.is_fixed_size_binary(kind) or kind.byte_width % _NUMBER.itemsize:
            raise DataError(f"{path} is not a table of features.", _AGAIN)
        size = kind.byte_width
        width, keys, end = size // _NUMBER.itemsize, [], 0
        values = make_values(count, width)
        for batch in iterate_batches(parquet, None, BATCH_ROWS):
            keys += batch.column(0).to_pylist()
            column = batch.column(1)
            first, start = column.offset * size, end
            end += len(batch)
            data = memoryview(column.buffers()[1])[first : first + len(batch) * size]
            values[start:end] = np.frombuffer(data, _NUMBER).reshape(len(batch), width)
            if not np.isfinite(values[start:end]).all():
                raise DataError(f"{path} is damaged: it has numbers that are not finite.", _AGAIN)
    return Features(model, _match_rows(path, index_dir, keys), values)


def _match_rows(path: str, index_dir: str, keys: Sequence[str]) -> Array:
    """Returns the column `row` of the index for each key, which come in the order of the index."""
    rows, wanted = [], iter(keys)
    key = next(wanted, None)
    for file in find_index_files(index_dir):
        for table in read_index_batches(file, ("key", "row"), BATCH_ROWS):
            columns = (table["key"].to_pylist(), table["row"].to_pylist())
            for found, row in zip(*columns, strict=True):
                if found == key:
                    rows.append(row)
                    key = next(wanted, None)
    if len(rows) != len(keys):
        raise DataError(
            f"{path} does not belong to the index in {index_dir}: it has {len(keys):,} images, and "
            f"that of {key} is not there, or in another order.",
            _AGAIN,
        )
    return np.array(rows, np.int64)
