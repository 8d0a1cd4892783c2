"""The table of features: what is written is read again, by the rows of its index."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from darkroom.dataset.index import IndexRow, IndexWriter, index_file
from darkroom.errors import DataError
from darkroom.features.table import find_features_file, read_features, write_features

KEYS = ["a", "b", "c", "d", "e"]
NAMES = pa.table({"key": KEYS, "sha256": [key * 64 for key in KEYS]})
VALUES = np.arange(15, dtype=np.float32).reshape(5, 3) / 8


@pytest.fixture
def index(tmp_path):
    """An index of five records in two files; the rows of its list are not in its order."""
    folder = tmp_path / "index"
    folder.mkdir()
    for n, keys in enumerate((KEYS[:2], KEYS[2:])):
        with IndexWriter(str(folder / index_file(n, 2)), n, {}, "", pa.string()) as writer:
            rows = [IndexRow(key, key, 70 - ord(key), key, "train", 0, "") for key in keys]
            writer.add([row._replace(sha256=row.key * 64) for row in rows])
    return str(folder)


def write(index, *batches):
    path = f"{index.rpartition('/')[0]}/features.parquet"
    with open(path, "wb") as file:
        write_features(file, "net 1f", 3, batches)
    return path


def test_features_have_the_rows_of_their_index(index):
    assert find_features_file(index) is None
    path = write(index, (NAMES[:1], VALUES[:1]), (NAMES[3:], VALUES[3:]))
    assert find_features_file(index) == path
    found = read_features(path, index)
    assert (found.model, found.contents.to_pylist()) == ("net 1f", [each * 64 for each in "ade"])
    assert (found.rows.tolist(), found.rows.dtype) == ([-27, -30, -31], np.int64)
    np.testing.assert_array_equal(found.values, VALUES[[0, 3, 4]])
    assert found.values.dtype == np.float32


def test_a_dataset_may_have_no_features_or_none_of_any_image(index):
    found = read_features(write(index), index)
    assert (found.rows.shape, found.values.shape) == ((0,), (0, 3))


@pytest.mark.parametrize(
    ("keys", "contents"), [("ax", "ax"), ("ba", "ba"), ("aa", "aa"), ("ab", "ac")]
)
def test_the_features_of_another_index_are_refused(index, keys, contents):
    names = pa.table({"key": [*keys], "sha256": [each * 64 for each in contents]})
    path = write(index, (names, VALUES[:2]))
    with pytest.raises(DataError, match=f"does not belong to the index .* that of {keys[1]} is"):
        read_features(path, index)


def test_a_damaged_table_is_named(index):
    path = write(index, (NAMES, VALUES * np.nan))
    with pytest.raises(DataError, match=r"features\.parquet is damaged: .* not finite"):
        read_features(path, index)
    with open(path, "r+b") as file:
        file.truncate(100)
    with pytest.raises(DataError, match=r"features\.parquet is damaged: "):
        read_features(path, index)
    pq.write_table(pa.table({"key": KEYS}), path)
    with pytest.raises(DataError, match=r"features\.parquet is not a table of features"):
        read_features(path, index)
    # More rows than records, which may be billions in a small file, and rows without a value.
    path = write(index, (NAMES, VALUES), (NAMES[:1], VALUES[:1]))
    with pytest.raises(DataError, match=r"features\.parquet has 6 rows, expected 5"):
        read_features(path, index)
    table = pq.read_table(write(index, (NAMES, VALUES)))
    for name in table.column_names:
        values = [None, *table[name].to_pylist()[1:]]
        forged = table.set_column(
            table.column_names.index(name),
            name,
            pa.array(values, table.schema.field(name).type),
        )
        pq.write_table(forged, path)
        with pytest.raises(DataError, match="it has rows without values"):
            read_features(path, index)
