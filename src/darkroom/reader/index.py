"""What the index of a shard says of its records, which may be the work of a stranger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from darkroom import storage
from darkroom.dataset.commit import Dataset, Shard
from darkroom.dataset.index import read_index_batches
from darkroom.dataset.layout import INDEX_FOLDER
from darkroom.errors import DataError, UsageError
from darkroom.images.memory import MAX_PIXELS
from darkroom.images.views import STORED_FORMATS
from darkroom.runtime.arrays import Array
from darkroom.targets.kind import find_kind

# The types in which facts are kept. A format is its place in `STORED_FORMATS`.
FACTS: Mapping[str, Any] = {
    "offset": np.int64,
    "length": np.int32,
    "size_bytes": np.int32,
    "height": np.int32,
    "width": np.int32,
    "channels": np.int8,
    "format": np.int8,
}
_LABEL = "label"
# What frames a record.
_FRAME_BYTES = 16


def read_shard_index(root: str, dataset: Dataset, number: int) -> tuple[dict[str, Array], pa.Array]:
    """Returns facts about the records of a shard, int [N] each, and their labels.

    Args:
        root: The dataset.
        dataset: Its commit.
        number: The number of the shard in the commit.

    Raises:
        DataError: The index is missing or damaged, or says what cannot be.
        UsageError: The records are compressed.
    """
    shard, name = dataset.shards[number], dataset.index_files[number]
    path, rows = storage.join(root, INDEX_FOLDER, name), shard.records
    hint = f"List all faults with: darkroom verify {root}."
    try:
        table = pa.concat_tables(read_index_batches(path, [*FACTS, _LABEL], rows, num_rows=rows))
    except FileNotFoundError as error:
        what = "the index says where each record is"
        raise DataError(f"{path} is missing: {what}.", hint) from error
    if table["offset"].null_count == rows:
        raise UsageError(
            f"{root} is compressed, so no record can be read without those before it.",
            "Convert it again without gzip.",
        )
    needed = {name: name for name in FACTS} | {"format": "image"}
    if dataset.target.kind == _LABEL:
        needed[_LABEL] = "label"
    for column, what in needed.items():
        if missing := table[column].null_count:
            raise DataError(
                f"{path} has {missing} records without {what}.",
                "Training needs records with an image and a label.",
            )
    labels = table[_LABEL].combine_chunks()
    formats = pc.index_in(table["format"], make_texts(STORED_FORMATS))
    facts = {name: _view_numbers(formats if name == "format" else table[name]) for name in FACTS}
    for column, row in _find_impossible(facts, formats, labels, dataset, shard):
        said = {name: table[name][row].as_py() for name in (*FACTS, _LABEL)}
        raise DataError(
            f"{path} is damaged: the {column} in row {row} cannot be right. It has {said!r:.400}, "
            f"and {shard.file} has {shard.bytes:,} bytes.",
            hint,
        )
    return facts, labels


def _find_impossible(
    facts: Mapping[str, Array],
    formats: pa.ChunkedArray,
    labels: pa.Array,
    dataset: Dataset,
    shard: Shard,
) -> Iterator[tuple[str, int]]:
    """Yields columns with a value that cannot be right, and the first row that has one."""
    height, width, offset, length = (facts[n] for n in ("height", "width", "offset", "length"))
    most = np.minimum(shard.bytes - offset, np.iinfo(FACTS["length"]).max)
    possible = {
        "height": (height > 0) & (height <= MAX_PIXELS),
        "width": (width > 0) & (width <= MAX_PIXELS),
        # The product of larger sides fits no number.
        "number of pixels": height * width <= MAX_PIXELS,
        "number of channels": np.isin(facts["channels"], (1, 3)),
        "format": _view_truths(formats.is_valid()),
        "offset": (offset >= 0) & (offset <= shard.bytes),
        "length": (length > _FRAME_BYTES) & (length <= most),
        "size_bytes": (facts["size_bytes"] > 0) & (facts["size_bytes"] <= length - _FRAME_BYTES),
    }
    for column, rows in possible.items():
        if not rows.all():
            yield column, int(np.argmin(rows))
    if (row := _find_wrong(labels, dataset)) >= 0:
        yield _LABEL, row


def _find_wrong(labels: pa.Array, dataset: Dataset) -> int:
    """Returns the first row whose label is wrong, or not one of the dataset's; -1 for none."""
    kind = find_kind(dataset.target.kind)
    if labels.type != kind.column:
        return 0
    if (row := kind.find_wrong(labels)) >= 0:
        return row
    if dataset.labels:
        # To list the one name of each would import pandas.
        names = None if pa.types.is_string(labels.type) else kind.list_names(labels)
        values = labels if names is None else pc.list_flatten(names)
        known = _view_truths(pc.is_in(values, value_set=make_texts(dataset.labels)))
        if known.all():
            return -1
        place = int(np.argmin(known))
        return place if names is None else int(pc.list_parent_indices(names)[place].as_py())
    lengths, size = pc.list_value_length(labels), len(dataset.target.names)
    if {*pc.min_max(lengths).as_py().values()} <= {None, size}:
        return -1
    return int(pc.index(pc.equal(lengths, size), False).as_py())


# Arrow's own ways between its arrays and Python import pandas, which takes as long as all else.


def _view_truths(column: pa.Array | pa.ChunkedArray) -> Array:
    """Returns a column of true and false without nulls as 1 and 0."""
    return _view_numbers(column.cast(pa.int8()))


def _view_numbers(column: pa.Array | pa.ChunkedArray) -> Array:
    """Returns the whole numbers of a column; where there is none, any number."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    values = np.frombuffer(array.buffers()[1], f"i{array.type.bit_width // 8}")
    return values[array.offset : array.offset + len(array)]


def make_texts(texts: Sequence[str]) -> pa.Array:
    """Returns texts as an array."""
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    buffers = None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))
    return pa.Array.from_buffers(pa.string(), len(texts), buffers)
