import os
import sys
from types import ModuleType

import numpy as np
import pytest

from darkroom.dataset.schema import Columns, Kind, Schema
from darkroom.dataset.sources import is_dataframe
from darkroom.errors import DataError
from darkroom.manifest.sources.base import Row
from darkroom.manifest.sources.dataframe import DataFrameSource

pd = pytest.importorskip("pandas")


def read(columns, schema=None, **options):
    frame = columns if isinstance(columns, pd.DataFrame) else pd.DataFrame(columns, **options)
    return DataFrameSource(frame, Columns(None if schema is None else Schema.parse(schema)))


def test_a_path_is_not_a_frame_while_another_thread_loads_pandas(monkeypatch):
    assert is_dataframe(pd.DataFrame())
    monkeypatch.setitem(sys.modules, "pandas", ModuleType("pandas"))
    assert not is_dataframe("images.csv")


def test_columns_have_kinds_and_the_index_none():
    source = read(
        {
            "split": ["TRAIN", "TEST"],
            "image_uri": ["a.jpg", "b.jpg"],
            "label": ["007", "NA"],
            "age": [7, 8],
            "weight": [1.5, float("nan")],
            "seen": [True, False],
        },
        index=["x", "y"],
    )
    assert dict(source.schema.inputs) == {
        "age": Kind.INTEGER,
        "weight": Kind.FLOAT,
        "seen": Kind.INTEGER,
    }
    assert list(source.rows()) == [
        Row(1, ["TRAIN", "a.jpg", "007", 7, 1.5, 1]),
        Row(2, ["TEST", "b.jpg", "NA", 8, None, 0]),
    ]
    assert (source.base, source.identity_base) == (os.getcwd(), "")


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT, np.float32("nan")])
def test_missing_files_are_missing(missing):
    frame = pd.DataFrame({"image_uri": ["a.jpg", "b.jpg"]})
    frame["label"] = pd.Series(["cat", missing], dtype=object)
    assert [row.values for row in read(frame).rows()] == [["a.jpg", "cat"], ["b.jpg", None]]


@pytest.mark.parametrize(
    ("dtype", "values", "kind", "read_values"),
    [
        ("Int64", [7, None], Kind.INTEGER, [7, None]),
        ("Float64", [1.5, None], Kind.FLOAT, [1.5, None]),
        ("boolean", [True, None], Kind.INTEGER, [1, None]),
        ("string", ["x", None], Kind.STRING, ["x", None]),
        ("category", ["x", None], Kind.STRING, ["x", None]),
        ("uint8", [7, 8], Kind.INTEGER, [7, 8]),
        ("float32", [1.5, None], Kind.FLOAT, [1.5, None]),
    ],
)
def test_every_dtype_is_read(dtype, values, kind, read_values):
    frame = pd.DataFrame({"image_uri": ["a", "b"], "x": pd.Series(values, dtype=dtype)})
    source = read(frame)
    assert dict(source.schema.inputs) == {"x": kind}
    assert [row.values[1] for row in source.rows()] == read_values


def test_integers_that_pandas_made_floats_are_integers_again():
    frame = pd.DataFrame({"i": ["a", "b"], "label": [7, None], "n": [8, None]})
    source = read(frame, {"i": "image", "label": "string_label", "n": "integer"})
    assert [repr(row.values) for row in source.rows()] == ["['a', 7, 8]", "['b', None, None]"]


def test_numbers_and_arrays_of_numpy_become_those_of_python():
    frame = pd.DataFrame({"image_uri": list("abc")})
    frame["label"] = pd.Series([np.int64(7), np.array(["x"]), np.array(["x", "y"])], dtype=object)
    one, two, three = read(frame).rows()
    assert (one.values[1], two.values[1]) == (7, "x")
    assert three.fault.reason == "multi_label"


def test_a_frame_of_another_library_is_an_error():
    with pytest.raises(DataError, match="The DataFrame has no rows"):
        read(pd.DataFrame({"image_uri": []}))
    with pytest.raises(DataError, match="Did you mean 'image_url'"):
        read({"image_url": ["a.jpg"]})
    with pytest.raises(DataError, match=r"twice: \['label'\]"):
        read(pd.DataFrame([["a", "b", "c"]], columns=["image_uri", "label", "label"]))


def test_objects_of_any_kind_are_text():
    holds_itself = [1]
    holds_itself.append(holds_itself)
    objects = [{(1, 2): 3}, holds_itself, (b"x", {4}), {"a": np.int64(5)}]
    source = read({"image_uri": list("abcd"), "more": pd.Series(objects, dtype=object)})
    assert [row.values[1] for row in source.rows()] == [
        "{(1, 2): 3}",
        "[1, [...]]",
        '["x", "{4}"]',
        '{"a": "5"}',
    ]
