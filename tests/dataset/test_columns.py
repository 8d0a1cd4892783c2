"""Columns of tables as values of Python, and back."""

from __future__ import annotations

import pyarrow as pa
import pytest

from darkroom.dataset.columns import list_values, make_column

PLACE = {"x": 2**60 + 1, "name": "a", "shares": [0.5], "is_new": True}


@pytest.mark.parametrize(
    "values",
    [
        [2**60 + 1, None],
        [0.5, None],
        [True, None],
        ["a", None],
        [["a", "b"], None, []],
        [PLACE, None, dict.fromkeys(PLACE)],
    ],
)
def test_values_are_those_of_python(values):
    column = pa.chunked_array([values, values[:1]])
    found = list_values(column)
    assert found == column.to_pylist()
    assert [*map(type, found)] == [*map(type, column.to_pylist())]
    assert make_column(found, column.type).equals(column.combine_chunks())


def test_a_list_of_structs_is_a_dict_of_lists():
    lists = [[PLACE, dict.fromkeys(PLACE)], None, [], [PLACE]]
    column = pa.array([{"places": each} for each in lists] + [None])
    found = list_values(column.slice(0, 4))
    assert found[0]["places"] == {name: [value, None] for name, value in PLACE.items()}
    assert [each["places"] for each in found[1:3]] == [None, {name: [] for name in PLACE}]
    assert make_column([*found, None], column.type).equals(column)
