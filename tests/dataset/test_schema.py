import json

import pytest

from darkroom.dataset.example import encode_example
from darkroom.dataset.schema import Kind, Schema, check_columns, infer_schema, parse_input_value
from darkroom.errors import DataError, UsageError


def test_a_schema_has_the_kind_of_each_column():
    schema = Schema.parse(
        {
            "part": "split",
            "photo": "image",
            "kind": "string_label",
            "number": "id",
            "age": "integer",
            "weight": "float",
            "note": "string",
            "junk": "ignored",
        }
    )

    assert (schema.split, schema.image, schema.label, schema.id) == (
        "part",
        "photo",
        "kind",
        "number",
    )
    assert schema.inputs == (("age", Kind.INTEGER), ("weight", Kind.FLOAT), ("note", Kind.STRING))
    assert not schema.has_integer_labels
    assert Schema.parse(schema.to_json()) == schema
    assert Schema.parse(schema) is schema


@pytest.mark.parametrize(
    "columns", [{"x": "integer"}, {"x": "float", "y": "integer_label"}, {"x": "string"}]
)
def test_a_schema_may_have_no_image(columns):
    schema = Schema.parse(columns)
    assert schema.image is None
    assert schema.has_integer_labels == ("y" in columns)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"a": "image", "b": "image"}, r"Only one column can be of kind 'image', got \['a', 'b'\]"),
        ({"i": "image", "a": "string_label", "b": "integer_label"}, "Only one column"),
        ({"a": "string_label", "b": "objects"}, "of kind 'string_label' or 'objects', got"),
        ({"i": "image", "a": "split", "b": "split"}, "Only one column"),
        ({"a": "string_label"}, "neither an image nor an input"),
        ({}, "neither an image nor an input"),
        ({"a": "picture"}, "Column 'a' has the kind 'picture'"),
        ({"i": "image", "image/height": "integer"}, r"\['image/height'\] would overwrite"),
    ],
)
def test_an_invalid_schema_is_an_error(given, problem):
    with pytest.raises(UsageError, match=problem):
        Schema.parse(given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("{", "columns is '{', which is not JSON: Expecting property name"),
        ('["a"]', "columns is '[\"a\"]', expected the kind of each column by its name."),
        ("null", "columns is 'null', expected the kind of each column by its name."),
        (["a"], "columns is ['a'], expected the kind of each column by its name."),
        (3, "columns is 3, expected the kind of each column by its name."),
    ],
)
def test_columns_in_another_form_are_told_the_right_one(given, said):
    with pytest.raises(UsageError) as caught:
        Schema.parse(given)
    assert caught.value.message.startswith(said)
    assert caught.value.hint.startswith(
        'Write it as in {"path": "image", "species": "string_label"}; kinds: split, image, '
    )


def test_a_schema_names_each_column_once():
    with pytest.raises(UsageError, match=r"columns twice: \['a'\]"):
        Schema((("a", Kind.IMAGE), ("a", Kind.STRING)))


def test_columns_are_recognised_by_their_names():
    names = ["Label", "IMAGE_URI", "ml_use", "age", "path"]
    schema = infer_schema(names, {"age": Kind.INTEGER})
    assert dict(schema.columns) == {
        "Label": Kind.STRING_LABEL,
        "IMAGE_URI": Kind.IMAGE,
        "ml_use": Kind.SPLIT,
        "age": Kind.INTEGER,
        "path": Kind.STRING,
    }


def test_a_missing_image_column_gets_a_suggestion():
    with pytest.raises(DataError, match=r"found \['split', 'image_url'.*Did you mean 'image_url'"):
        infer_schema(["split", "image_url", "label"], {})


def test_the_hint_names_the_columns_of_the_source():
    with pytest.raises(DataError) as caught:
        infer_schema(["ml_use", "img", "age", "label"], {})
    columns = {"ml_use": "split", "label": "string_label", "img": "image"}
    assert "Did you mean 'img'?" in caught.value.message
    assert caught.value.hint.endswith(f"--columns '{json.dumps(columns)}' (columns= in Python).")


@pytest.mark.parametrize("name", ["lable", "labell", "Label2"])
def test_a_misspelt_label_column_is_an_error(name):
    with pytest.raises(DataError, match=rf"No column holds labels.*Did you mean '{name}'"):
        infer_schema(["image_uri", name], {})
    assert infer_schema(["image_uri", "label", name], {}).inputs == ((name, Kind.STRING),)


def test_a_misspelt_split_column_is_an_error():
    with pytest.raises(DataError, match=r"No column holds splits.*Did you mean 'spilt'"):
        infer_schema(["spilt", "image_uri", "label"], {})


@pytest.mark.parametrize("name", ["age", "glass", "label_id", "labelled_by", "splitter_name"])
def test_a_source_may_have_no_labels_and_other_columns(name):
    schema = infer_schema(["image_uri", name], {})
    assert (schema.label, schema.split) == (None, None)


def test_names_that_differ_only_in_case_are_ambiguous():
    with pytest.raises(DataError, match=r"'Label' and 'label' have the same name") as caught:
        infer_schema(["image_uri", "Label", "label"], {})
    assert "--columns" in caught.value.hint
    assert "(columns= in Python)" in caught.value.hint
    assert infer_schema(["image_uri", "Age", "age"], {}).inputs[0] == ("Age", Kind.STRING)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("7", Kind.INTEGER, 7),
        (" -7 ", Kind.INTEGER, -7),
        ("9223372036854775807", Kind.INTEGER, 2**63 - 1),
        ("1e3", Kind.FLOAT, 1000.0),
        ("", Kind.INTEGER, None),
        (" ", Kind.FLOAT, None),
        ("", Kind.STRING, None),
        (" a ", Kind.STRING, " a "),
        ("007", Kind.STRING, "007"),
    ],
)
def test_an_input_is_read_by_its_kind(text, kind, value):
    assert parse_input_value(text, kind) == value


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1.5", Kind.INTEGER),
        ("9223372036854775808", Kind.INTEGER),
        ("abc", Kind.FLOAT),
        ("1e39", Kind.FLOAT),
        ("-3.4028235677973367e38", Kind.FLOAT),
    ],
)
def test_an_input_of_another_kind_is_an_error(text, kind):
    with pytest.raises((ValueError, OverflowError), match=r"invalid|does not fit|not convert"):
        parse_input_value(text, kind)


@pytest.mark.parametrize("name", ["a\ud800", "a\0b", ""])
def test_a_column_has_a_name_that_can_be_stored(name):
    with pytest.raises(DataError, match="is empty, is not Unicode text, or has a NUL") as caught:
        infer_schema(["image_uri", name], {})
    assert repr(name) in str(caught.value)


@pytest.mark.parametrize("text", ["3.4028235e38", "-3.4028235677973e38", "inf", "-inf", "1e-60"])
def test_every_parsed_float_can_be_written(text):
    encode_example({"x": parse_input_value(text, Kind.FLOAT)})


def test_a_source_has_the_columns_of_its_schema():
    schema = Schema.parse({"image_uri": "image", "label": "string_label"})
    check_columns(schema, ["label", "more", "image_uri"])
    with pytest.raises(DataError, match=r"\['label'\] are missing.*Did you mean 'labels'"):
        check_columns(schema, ["image_uri", "labels"])
    with pytest.raises(DataError, match=r"occur twice: \['label'\]"):
        check_columns(schema, ["label", "image_uri", "label"])
