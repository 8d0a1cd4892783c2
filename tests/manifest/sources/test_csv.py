import pytest

from darkroom.dataset.schema import Columns, Kind, Schema
from darkroom.errors import DataError, UsageError
from darkroom.manifest.sources.base import Row
from darkroom.manifest.sources.csv import CsvSource


@pytest.fixture
def read(tmp_path):
    """Opens a CSV of a text or bytes."""

    def read(content, schema=None):
        path = tmp_path / "m.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return CsvSource(str(path), Columns(None if schema is None else Schema.parse(schema)))

    return read


def values(source):
    return [row.values for row in source.rows()]


HEADER = "split,image_uri,label\n"


def test_rows_are_numbered_from_one_without_the_header(read, tmp_path):
    source = read(HEADER + "TRAIN,a.jpg,cat\n\nTEST,b.jpg,dog\n")
    assert list(source.rows()) == [
        Row(1, ["TRAIN", "a.jpg", "cat"]),
        Row(2, ["TEST", "b.jpg", "dog"]),
    ]
    assert source.base == source.identity_base == str(tmp_path)


def test_columns_may_have_any_order_case_and_padding(read):
    source = read(" Label , age, IMAGE_URI,Split\ncat,7,a.jpg,TRAIN\n")
    assert source.schema.columns == (
        ("Label", Kind.STRING_LABEL),
        ("age", Kind.STRING),
        ("IMAGE_URI", Kind.IMAGE),
        ("Split", Kind.SPLIT),
    )
    assert values(source) == [["cat", "7", "a.jpg", "TRAIN"]]


def test_further_columns_may_have_any_name(read):
    source = read("split,image_uri,label,w/h,=cmd,</script>\nTRAIN,a.jpg,cat,1.5,x,y\n")
    assert [name for name, _ in source.schema.inputs] == ["w/h", "=cmd", "</script>"]
    assert values(source) == [["TRAIN", "a.jpg", "cat", "1.5", "x", "y"]]


def test_a_further_column_cannot_have_the_name_of_our_features(read):
    with pytest.raises(UsageError, match=r"\['image/encoded'\] would overwrite.*leave them"):
        read("split,image_uri,label,image/encoded\nTRAIN,a.jpg,cat,x\n")


def test_a_schema_names_columns_of_a_header(read):
    source = read("age,photo,more\n7,a.jpg,x\n", {"photo": "image", "age": "integer"})
    assert values(source) == [["a.jpg", "7"]]


def test_a_schema_names_columns_where_there_is_no_header(read):
    source = read("a.jpg,7\nb.jpg,8\n", {"photo": "image", "age": "integer"})
    assert values(source) == [["a.jpg", "7"], ["b.jpg", "8"]]


def test_a_headerless_row_longer_than_the_schema_is_ragged(read):
    source = read("a.jpg,7\nb.jpg,8,x\nc.jpg\n", {"photo": "image", "age": "integer"})
    assert [row.fault.reason if row.fault else "good" for row in source.rows()] == [
        "good",
        "ragged_row",
        "ragged_row",
    ]


def test_a_file_from_automl_has_no_header(read):
    source = read("TRAIN,gs://b/a.jpg,cat\nUNASSIGNED,gs://b/b.jpg,dog\n,gs://b/c.jpg,dog\n")
    assert [column for column, _ in source.schema.columns] == ["split", "image_uri", "label"]
    assert values(source) == [
        ["TRAIN", "gs://b/a.jpg", "cat"],
        ["UNASSIGNED", "gs://b/b.jpg", "dog"],
        ["", "gs://b/c.jpg", "dog"],
    ]


def test_one_row_without_header_is_a_row(read):
    assert values(read("TRAIN,a.jpg,image")) == [["TRAIN", "a.jpg", "image"]]


def test_several_labels_are_seen_in_any_row(read):
    rows = [f"TRAIN,{i}.jpg,cat" for i in range(150)] + ["TRAIN,x.jpg,cat,dog,", "TRAIN,y.jpg"]
    *_, many, none = read("\n".join(rows)).rows()
    assert many[:2] == (151, ["TRAIN", "x.jpg", "cat"])
    assert many.fault.args == ("multi_label", "2 labels: ['cat', 'dog']")
    assert none == Row(152, ["TRAIN", "y.jpg", ""])


def test_the_index_that_pandas_writes_is_not_a_column(read):
    source = read(",split,image_uri,label\n0,TRAIN,a.jpg,cat\n1,TEST,b.jpg,dog\n")
    assert source.schema.inputs == ()
    assert values(source) == [["TRAIN", "a.jpg", "cat"], ["TEST", "b.jpg", "dog"]]


def test_commas_at_the_end_of_the_lines_of_a_spreadsheet_are_not_columns(read):
    source = read("split,image_uri,label,,\nTRAIN,a.jpg,cat,,\nTRAIN,b.jpg,cat,dog,\n")
    good, bad = source.rows()
    assert good == Row(1, ["TRAIN", "a.jpg", "cat"])
    assert bad.fault.args == ("multi_label", "2 labels: ['cat', 'dog']")


def test_a_missing_column_is_an_error_with_a_suggestion(read):
    with pytest.raises(DataError, match=r"Did you mean 'image_url'"):
        read("split,image_url,label\nTRAIN,a.jpg,cat\n")
    with pytest.raises(DataError, match=r"\['kind'\] are missing"):
        read(HEADER + "TRAIN,a.jpg,cat\n", {"image_uri": "image", "kind": "string_label"})
