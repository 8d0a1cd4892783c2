import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darkroom.dataset.schema import Columns, Kind, Schema
from darkroom.errors import DataError
from darkroom.manifest.sources.base import Row
from darkroom.manifest.sources.jsonl import JsonlSource, decode_json


@pytest.fixture
def read(tmp_path):
    """Opens a JSONL file of objects or lines."""

    def read(*lines, schema=None):
        path = tmp_path / "m.jsonl"
        text = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        path.write_text("\n".join(text), encoding="utf-8")
        return JsonlSource(str(path), Columns(None if schema is None else Schema.parse(schema)))

    return read


GOOD = {"split": "TRAIN", "image_uri": "a.jpg", "label": "cat"}


def test_a_key_that_is_there_twice_rejects_its_line(read):
    twice = '{"split": "TRAIN", "image_uri": "b.jpg", "label": "cat", "label": "dog"}'
    nested = '{"image_uri": "c.jpg", "label": "cat", "box": {"x": 1, "x": 2}}'
    _, *bad = read(GOOD, twice, nested).rows()
    assert [(row.row, row.fault.args) for row in bad] == [
        (2, ("bad_value", "line 2: the key 'label' occurs twice")),
        (3, ("bad_value", "line 3: the key 'x' occurs twice")),
    ]


def test_a_file_without_objects_says_what_its_first_line_is(read):
    with pytest.raises(DataError, match=r"no JSON object\. Line 1: it has a number of too many"):
        read('{"image_uri": "a.jpg", "label": "cat", "n": ' + "9" * 5000 + "}").rows()
    with pytest.raises(DataError, match=r"no JSON object\. Line 1: expected an object: \[1\]"):
        read("[1]").rows()


def test_keys_may_have_any_order_and_may_be_absent(read):
    source = read(GOOD, "", {"label": "dog", "image_uri": "b.jpg"})
    assert list(source.rows()) == [
        Row(1, ["TRAIN", "a.jpg", "cat"]),
        Row(2, [None, "b.jpg", "dog"]),
    ]


def test_further_columns_have_the_type_of_their_values(read):
    source = read(
        {
            **GOOD,
            "age": 7,
            "weight": 1.5,
            "note": "x",
            "seen": True,
            "mixed": 1,
            "tags": ["a", "b"],
        },
        {**GOOD, "age": None, "weight": 2, "note": None, "seen": False, "mixed": "b"},
    )
    assert dict(source.schema.inputs) == {
        "age": Kind.INTEGER,
        "weight": Kind.FLOAT,
        "note": Kind.STRING,
        "seen": Kind.INTEGER,
        "mixed": Kind.STRING,
        "tags": Kind.STRING,
    }


@pytest.mark.parametrize(
    ("label", "text"), [("007", "007"), (7, 7), (["cat"], "cat"), (None, None), (True, "True")]
)
def test_a_label_is_text_or_a_number(read, label, text):
    assert [row.values[2] for row in read({**GOOD, "label": label}).rows()] == [text]


def test_bad_lines_are_rejected_and_no_others(read):
    source = read(GOOD, "{bad", "[1]", '"text"', {**GOOD, "label": ["cat", "dog"]}, GOOD)
    first, bad, a_list, text, many, last = source.rows()
    assert (first.row, last) == (1, Row(6, ["TRAIN", "a.jpg", "cat"]))
    assert (bad.fault.reason, bad.fault.detail[:7], bad.values) == ("bad_value", "line 2:", [])
    assert (a_list.fault.reason, text.fault.reason) == ("bad_value", "bad_value")
    assert many.fault.args == ("multi_label", "2 labels: ['cat', 'dog']")


def test_an_empty_list_of_labels_is_an_empty_label(read):
    (row,) = read({**GOOD, "label": []}).rows()
    assert row.fault.reason == "empty_label"


def test_further_columns_with_lists_and_objects_are_json(read):
    rows = {"image": "a.jpg", "tags": [1, 2], "meta": {"a": [1]}}, {"image": "b.jpg", "tags": "x"}
    source = read(*rows)
    assert source.schema.inputs == (("tags", Kind.STRING), ("meta", Kind.STRING))
    assert [row.values for row in source.rows()] == [
        ["a.jpg", "[1, 2]", '{"a": [1]}'],
        ["b.jpg", "x", None],
    ]


def test_a_value_of_another_type_is_named(read):
    schema = {"image_uri": "image", "age": "integer"}
    _, bad = read({**GOOD, "age": 7}, {**GOOD, "age": "seven"}, schema=schema).rows()
    assert bad.fault.reason == "bad_value"
    assert bad.fault.detail == "column 'age': expected integer, got str 'seven'"
    (bad,) = read({**GOOD, "image_uri": {"path": "a.jpg"}}).rows()
    assert bad.fault.detail.startswith("column 'image_uri': expected image, got dict")


def test_deep_nesting_rejects_its_line_only(read):
    _, bad = read(GOOD, "[" * 100_000).rows()
    assert bad.fault.reason == "bad_value"


@pytest.mark.parametrize("lines", [(), ("", ""), ("nothing", "[]")])
def test_a_file_without_objects_is_refused(read, lines):
    with pytest.raises(DataError, match=r"m\.jsonl has no JSON object"):
        read(*lines)


def test_a_missing_column_is_an_error_with_a_suggestion(read):
    with pytest.raises(DataError, match="Did you mean 'image_url'"):
        read({"image_url": "a.jpg"})


@pytest.mark.parametrize(
    ("kinds", "label", "cells"),
    [
        ({"x": "target", "y": "target"}, "[1.5, 2.0]", {"x": 1.5, "y": 2.0}),
        ({"a": "label_mark", "b": "label_mark"}, '["b"]', {"a": 0, "b": 1}),
        ({"tags": "labels"}, '["a", "b,c"]', {"label": ["a", "b,c"]}),
    ],
)
def test_a_list_of_ours_has_the_targets_of_columns_whose_kinds_are_named(read, kinds, label, cells):
    planned = {"id": "a", "row": 1, "span": 0, "weight": 9}
    source = read({"image_uri": "a.jpg", "label": label, **planned}, schema={"p": "image", **kinds})
    (row,) = source.rows()
    names = [name for name, _ in source.schema.columns]
    found = dict(zip(names, row.values, strict=True))
    assert {name: found[name] for name in cells} == cells


_TEXTS = st.text(st.characters(codec="utf-8"), max_size=4) | st.sampled_from(["a", ":", "a:", '"'])
_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | _TEXTS


def _write(pairs: list) -> str:
    return "{" + ",".join(f"{json.dumps(key)}:{value}" for key, value in pairs) + "}"


# Texts of JSON in which keys are often there twice.
_JSON = st.recursive(
    st.builds(json.dumps, _SCALARS, ensure_ascii=st.booleans()),
    lambda inner: st.lists(st.tuples(_TEXTS, inner), max_size=3).map(_write),
    max_leaves=6,
)


@given(text=_JSON)
def test_values_are_those_of_python_and_no_key_is_there_twice(text):
    is_twice = []

    def keep(pairs):
        is_twice.append(len(dict(pairs)) < len(pairs))
        return dict(pairs)

    value = json.loads(text, object_pairs_hook=keep)
    if any(is_twice):
        with pytest.raises(ValueError, match="occurs twice"):
            decode_json(text)
    else:
        assert repr(decode_json(text)) == repr(value)


@pytest.mark.parametrize("text", ['{"a": 1e999}', '{"a": NaN}', '{"a": "\\ud800"}', "9" * 300])
def test_what_python_alone_reads_is_read(text):
    assert repr(decode_json(text)) == repr(json.loads(text))


def test_an_escaped_colon_hides_no_key_that_is_there_twice():
    with pytest.raises(ValueError, match="the key 'b' occurs twice"):
        decode_json(r'{"a\u003a": 1, "b": 1, "b": 2}')
