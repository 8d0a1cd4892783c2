"""`features.parquet`: the features of a dataset's images, in the order of its index.

Its columns are `key` and `sha256`, as in the index, and `features`, the bytes of D numbers, float16
in little-endian order: not every version of pyarrow that is supported writes lists of float16. A
record whose image could not be decoded has no row. In a dataset, the file is a sidecar in the root;
in TFX, it is in the folder of the index.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from darkroom import storage
from darkroom.dataset.index import read_index
from darkroom.dataset.layout import FEATURES_FILE, INDEX_FOLDER
from darkroom.errors import DataError
from darkroom.features.values import make_values
from darkroom.runtime.arrays import Array
from darkroom.storage.parquet import BATCH_ROWS, check_num_rows, iterate_batches, report_damage

_NAMES = ["key", "sha256"]
_MODEL = b"darkroom.model"
_NUMBER = np.dtype("<f2")
_AGAIN = "Delete it, and make it again with: darkroom embed RECORDS."


class Features(NamedTuple):
    """The features of the images of a dataset.

    Attributes:
        model: Name and hash of the model that made them; only those of one model are comparable.
        rows: The column `row` of the index for each, int64 [N], in the order of the index.
        values: float32 [N, D].
        contents: SHA-256 of the image of each, as in the index: a column of texts.
        is_cached: Whether they come from the cache, and not from a table of the dataset.
    """

    model: str
    rows: Array
    values: Array
    contents: pa.ChunkedArray
    is_cached: bool = False


def write_features(
    file: BinaryIO, model: str, width: int, batches: Iterable[tuple[pa.Table, Array]]
) -> None:
    """Writes the features of a dataset, a group of rows for each batch.

    Args:
        file: Gets the bytes of the table.
        model: Name and hash of the model.
        width: D, how many numbers each image has.
        batches: Rows of the index with `key` and `sha256`, in its order, and their features [N, D].
    """
    kind = pa.binary(width * _NUMBER.itemsize)
    names = [(name, pa.string()) for name in _NAMES]
    schema = pa.schema([*names, ("features", kind)], {_MODEL: model.encode()})
    # Each key and each image is another one, so there is nothing to gain.
    options = {"use_dictionary": False, "compression": "NONE", "write_statistics": False}
    with pq.ParquetWriter(file, schema, **options) as writer:
        for rows, values in batches:
            numbers = pa.py_buffer(np.ascontiguousarray(values, _NUMBER))
            column = pa.FixedSizeBinaryArray.from_buffers(kind, len(rows), [None, numbers])
            writer.write_table(pa.table([*rows.select(_NAMES).columns, column], schema=schema))


def find_features_file(index_dir: str) -> str | None:
    """Returns the path of the table that belongs to an index; None when there is none."""
    folders = [index_dir]
    if index_dir.endswith(f"/{INDEX_FOLDER}"):
        folders.append(index_dir.removesuffix(f"/{INDEX_FOLDER}"))
    paths = (storage.join(folder, FEATURES_FILE) for folder in folders)
    return next(filter(storage.exists, paths), None)


def read_features(path: str, index_dir: str) -> Features:
    """Reads the features of a dataset.

    The values are in a temporary file, so that the system can take their memory back: those of a
    million images have 5 GB.

    Args:
        path: The table.
        index_dir: The folder of the index.

    Raises:
        DataError: It is damaged, or belongs to another dataset.
        OSError: It cannot be read.
    """
    index = read_index(index_dir, [*_NAMES, "row"])
    with storage.open_read(path) as file, report_damage(f"{path} is damaged", _AGAIN):
        parquet = pq.ParquetFile(file)
        # No image has features twice.
        check_num_rows(path, parquet, len(index), _AGAIN)
        schema, count = parquet.schema_arrow, parquet.metadata.num_rows
        model = (schema.metadata or {}).get(_MODEL, b"").decode()
        is_ours = schema.names == [*_NAMES, "features"] and model
        is_ours = is_ours and schema.types[:2] == [pa.string()] * 2
        kind = schema.field("features").type if is_ours else pa.null()
        if not pa.types.is_fixed_size_binary(kind) or kind.byte_width % _NUMBER.itemsize:
            raise DataError(f"{path} is not a table of features.", _AGAIN)
        size = kind.byte_width
        parts, width, end = [schema.empty_table().select(_NAMES)], size // _NUMBER.itemsize, 0
        values = make_values((count, width))
        for batch in iterate_batches(parquet, None, BATCH_ROWS):
            if any(column.null_count for column in batch.columns):
                raise DataError(f"{path} is damaged: it has rows without values.", _AGAIN)
            parts.append(pa.Table.from_batches([batch]).select(_NAMES))
            column = batch.column(2)
            first, start = column.offset * size, end
            end += len(batch)
            data = memoryview(column.buffers()[1])[first : first + len(batch) * size]
            values[start:end] = np.frombuffer(data, _NUMBER).reshape(len(batch), width)
            if not np.isfinite(values[start:end]).all():
                raise DataError(f"{path} is damaged: it has numbers that are not finite.", _AGAIN)
    images = pa.concat_tables(parts)
    rows = index["row"].take(_find_places(path, index_dir, images, index)).to_numpy()
    return Features(model, rows, values[:end], images["sha256"])


def _find_places(path: str, index_dir: str, images: pa.Table, index: pa.Table) -> pa.Array:
    """Returns the place of each image in the index; images come in its order.

    Datasets with the same names of files have the same keys, so contents are compared, too.
    """
    places = pc.fill_null(pc.index_in(images["key"], index["key"]), 0).combine_chunks()
    found = index.select(_NAMES).take(places)
    same = [pc.fill_null(pc.equal(found[name], images[name]), False).to_numpy() for name in _NAMES]
    is_right = np.logical_and(*same) & (np.diff(places.to_numpy(), prepend=-1) > 0)
    if not is_right.all():
        key = images["key"][int(np.argmin(is_right))]
        raise DataError(
            f"{path} does not belong to the index in {index_dir}: it has {len(images):,} images, "
            f"and that of {key} is not there, has other contents, or is in another order.",
            _AGAIN,
        )
    return places
