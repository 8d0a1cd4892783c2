"""Records of a dataset by the numbers of their rows: where they are, and their images."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from darkroom import storage
from darkroom.dataset import example
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.index import find_index_files, read_index_batches
from darkroom.dataset.tfrecord import read_place, read_record_at, read_some_records
from darkroom.images.pixels import encode_stored
from darkroom.storage.parquet import BATCH_ROWS

_COLUMNS = ("row", "split", "shard", "position", "offset", "length")


def find_records(
    examples: str, index_dir: str, rows: Sequence[int], columns: Sequence[str] = ()
) -> Iterator[dict[str, Any]]:
    """Yields rows of the index in its order, each with the `path` of the file of its record.

    Args:
        examples: The folder of the dataset.
        index_dir: The folder of its index.
        rows: Their numbers in the source.
        columns: Columns of the index besides those that say where a record is.

    Raises:
        DataError: The commit or the index is damaged.
        OSError: A file cannot be read.
    """
    dataset, wanted = read_dataset(examples), pa.array(rows, pa.int64())
    for path in find_index_files(index_dir):
        for table in read_index_batches(path, [*_COLUMNS, *columns], BATCH_ROWS):
            for row in table.filter(pc.is_in(table["row"], value_set=wanted)).to_pylist():
                file = dataset.splits[row["split"]].shards[row["shard"]].file
                yield {**row, "path": storage.join(examples, file)}


def read_record_images(found: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, bytes]]:
    """Yields the numbers of rows, as `find_records` yields them, and the images of their records.

    Raises:
        DataError: A record is damaged.
        OSError: A file cannot be read.
    """
    for path, rows in groupby(found, itemgetter("path")):
        places = {row["position"]: row for row in rows}
        # Records of compressed files have no offset.
        has_offsets = all(None not in (row["offset"], row["length"]) for row in places.values())
        read = _read_at(path, places) if has_offsets else read_some_records(path, places.keys())
        for position, record in read:
            yield places[position]["row"], encode_stored(example.decode_example(record))


def _read_at(path: str, places: Mapping[int, Mapping[str, Any]]) -> Iterator[tuple[int, bytes]]:
    with storage.open_read(path) as file:
        for position, row in places.items():
            data = read_place(file, row["offset"], row["length"])
            yield position, read_record_at(path, data, position)
