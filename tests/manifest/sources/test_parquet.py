import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from darkroom.dataset.schema import Columns, Kind, Schema
from darkroom.errors import DataError
from darkroom.manifest.sources.base import Row
from darkroom.manifest.sources.parquet import ParquetSource


@pytest.fixture
def read(tmp_path):
    """Opens a Parquet file of columns."""

    def read(columns, schema=None):
        path = tmp_path / "m.parquet"
        pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), path)
        return ParquetSource(str(path), Columns(None if schema is None else Schema.parse(schema)))

    return read


def test_columns_keep_their_types(read):
    source = read(
        {
            "label": pa.array(["007", None]),
            "image_uri": ["a.jpg", "b.jpg"],
            "age": pa.array([7, None], pa.uint8()),
            "weight": pa.array([1.5, None], pa.float32()),
            "seen": [True, None],
            "day": [datetime.date(2024, 2, 29), None],
            "kind": pa.array(["x", None]).dictionary_encode(),
        }
    )
    assert dict(source.schema.columns) == {
        "label": Kind.STRING_LABEL,
        "image_uri": Kind.IMAGE,
        "age": Kind.INTEGER,
        "weight": Kind.FLOAT,
        "seen": Kind.INTEGER,
        "day": Kind.STRING,
        "kind": Kind.STRING,
    }
    assert list(source.rows()) == [
        Row(1, ["007", "a.jpg", 7, 1.5, 1, "2024-02-29", "x"]),
        Row(2, [None, "b.jpg", None, None, None, None, None]),
    ]


def test_only_the_columns_of_the_schema_are_read_in_its_order(read):
    source = read({"n": [7], "photo": ["a.jpg"], "m": [8]}, {"photo": "image", "n": "integer"})
    assert list(source.rows()) == [Row(1, ["a.jpg", 7])]


def test_rows_are_numbered_through_all_batches(read):
    source = read({"image_uri": [f"{i}.jpg" for i in range(25_000)]})
    rows = list(source.rows())
    assert [row.row for row in rows] == list(range(1, 25_001))
    assert rows[-1].values == ["24999.jpg"]


def test_a_list_of_labels(read):
    one, two, none = read({"image_uri": list("abc"), "label": [["x"], ["x", "y"], []]}).rows()
    assert one == Row(1, ["a", "x"])
    assert two.fault.args == ("multi_label", "2 labels: ['x', 'y']")
    assert none.fault.reason == "empty_label"


def test_whole_numbers_of_a_float_column_are_labels_and_integers(read):
    source = read(
        {"i": ["a.jpg"], "class": [7.0], "n": [8.0]},
        {"i": "image", "class": "integer_label", "n": "integer"},
    )
    assert [repr(row.values) for row in source.rows()] == ["['a.jpg', 7, 8]"]


def test_digits_that_a_float_does_not_hold_are_not_a_label(read):
    # pandas makes floats of whole numbers beside a gap.
    table = {"image": ["a.jpg", "b.jpg"], "label": [float(2**53 - 1), float(2**53)]}
    one, two = read(table).rows()
    assert one == Row(1, ["a.jpg", 2**53 - 1])
    assert (two.fault.reason, two.fault.detail[:40]) == (
        "bad_value",
        "expected a label, got float 900719925474",
    )


def test_the_index_that_pandas_writes_is_not_a_column(read):
    table = pa.table({"image_uri": ["a.jpg"], "__index_level_0__": [5]})
    assert read(table).schema.inputs == ()


def test_a_file_without_rows_has_none(read):
    assert list(read({"image_uri": pa.array([], pa.string())}).rows()) == []


def test_a_file_that_is_not_parquet_is_an_error(tmp_path):
    path = tmp_path / "m.parquet"
    path.write_bytes(b"image_uri\na.jpg\n" * 10)
    with pytest.raises(DataError, match=r"m\.parquet is not a Parquet file"):
        ParquetSource(str(path), Columns())


def test_text_that_is_none_is_damage(read):
    offsets, text = pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")
    names = pa.Array.from_buffers(pa.string(), 1, [None, offsets, text])
    with pytest.raises(DataError, match=r"m\.parquet is not .* damaged: 'utf-8'"):
        read({"image_uri": pa.ListArray.from_arrays([0, 1], names)})


def test_missing_and_repeated_columns_are_errors(read):
    with pytest.raises(DataError, match="No column holds image paths"):
        read({"label": ["cat"]})
    with pytest.raises(DataError, match="twice"):
        read(pa.table([["a"], ["b"], ["c"]], names=["image_uri", "label", "label"]))


def test_values_within_lists_and_structs_are_text_of_any_type(read):
    days = [datetime.date(2024, 2, 29), datetime.date(1999, 1, 1)]
    source = read(
        {
            "image_uri": ["a.jpg"],
            "days": [days],
            "raw": [[b"x", b"\xff"]],
            "pair": [{"day": days[0], "n": 1}],
        }
    )
    assert [row.values for row in source.rows()] == [
        [
            "a.jpg",
            '["2024-02-29", "1999-01-01"]',
            '["x", "\\ufffd"]',
            '{"day": "2024-02-29", "n": 1}',
        ]
    ]


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "m.parquet"
    rows = 50
    columns = {"image_uri": [f"{row}.jpg" for row in range(rows)], "n": list(range(rows))}
    pq.write_table(pa.table(columns), path, compression="none", use_dictionary=False)
    return path


def test_damage_anywhere_is_an_error_of_the_data(good):
    data = good.read_bytes()
    refused = 0
    for place in range(0, len(data), 3):
        damaged = bytearray(data)
        damaged[place] ^= 0x55
        good.write_bytes(damaged)
        try:
            list(ParquetSource(str(good), Columns()).rows())
        except DataError:
            refused += 1
    assert refused > 50


def test_a_file_that_lacks_an_end_or_a_middle_is_refused(good):
    data = good.read_bytes()
    for damaged in (data[:-1], data[:100], data[:200] + data[400:]):
        good.write_bytes(damaged)
        with pytest.raises(DataError, match=r"m\.parquet"):
            list(ParquetSource(str(good), Columns()).rows())


def test_a_store_that_fails_while_it_is_read_is_not_damage(good, monkeypatch):
    source = ParquetSource(str(good), Columns())

    def fail(*_):
        raise PermissionError(13, "no longer yours")

    monkeypatch.setattr("darkroom.storage.parquet.storage.open_read", fail)
    with pytest.raises(PermissionError):
        list(source.rows())
