"""A column of objects, as users write it in each kind of list."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.parsed import parse_objects

from darkroom.dataset.rejects import format_hint
from darkroom.dataset.schema import Columns, Kind, Schema
from darkroom.errors import RejectError
from darkroom.manifest.sources.csv import CsvSource
from darkroom.manifest.sources.dataframe import DataFrameSource
from darkroom.manifest.sources.jsonl import JsonlSource
from darkroom.manifest.sources.parquet import ParquetSource
from darkroom.targets.form import Form

CAT = {"label": "cat", "box": [1.5, 2.0, 30.0, 40.0]}
DOG = {"label": "dog", "box": [0, 0, 9, 9], "is_crowd": True, "area": 81.0, "id": "d1"}
HUGGING_FACE = {
    "bbox": [[302.0, 109.0, 73.0, 52.0], [1, 2, 3, 4]],
    "categories": [0, "mask"],
    "iscrowd": [0, 1],
}
OURS = {"row": 1, "stage": "convert", "reason": "empty", "detail": "", "id": "a"}


def write_lines(path, *rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return JsonlSource(str(path), Columns())


def list_objects(source):
    """Returns the cells of the column of objects."""
    names = [name for name, _ in source.schema.columns]
    return [row.values[names.index(source.schema.label)] for row in source.rows()]


def test_jsonl_has_lists_empty_lists_and_null(tmp_path):
    cells = [CAT, DOG], [CAT], [], None
    rows = [{"image_uri": f"{n}.jpg", "objects": cell} for n, cell in enumerate(cells)]
    source = write_lines(tmp_path / "list.jsonl", *rows, {"image_uri": "5.jpg"})
    assert dict(source.schema.columns) == {"image_uri": Kind.IMAGE, "objects": Kind.OBJECTS}
    assert list_objects(source) == [*cells, None]


def test_a_number_of_objects_is_a_feature_and_a_similar_name_too(tmp_path):
    row = {"image_uri": "a.jpg", "label": "cat", "objects": 3, "object": "x"}
    source = write_lines(tmp_path / "list.jsonl", row)
    assert dict(source.schema.inputs) == {"objects": Kind.INTEGER, "object": Kind.STRING}


def test_parquet_has_structs(tmp_path):
    box = pa.struct({"label": pa.string(), "box": pa.list_(pa.float32()), "difficult": pa.bool_()})
    cells = [{**CAT, "difficult": True}, {**CAT, "difficult": None}], [], None
    table = {"path": ["a.jpg", "b.jpg", "c.jpg"], "objects": pa.array(cells, pa.list_(box))}
    pq.write_table(pa.table(table), tmp_path / "list.parquet")
    source = ParquetSource(str(tmp_path / "list.parquet"), Columns())
    assert list_objects(source) == [*cells]


def test_a_data_frame_has_arrays_of_numpy_in_its_cells():
    pd = pytest.importorskip("pandas")
    cells = [
        [{"label": "cat", "box": np.array([1.5, 2, 30, 40])}],
        np.array([{"label": np.str_("dog"), "box": (np.int64(0), 0, 9, 9), "area": np.float32(4)}]),
        [],
        None,
        float("nan"),
        pd.NA,
    ]
    frame = pd.DataFrame({"image": [f"{n}.jpg" for n in range(6)]}).assign(
        objects=pd.Series(cells, dtype=object)
    )
    assert list_objects(DataFrameSource(frame, Columns())) == [
        [CAT],
        [{"label": "dog", "box": [0, 0, 9, 9], "area": 4.0}],
        *([], None, None, None),
    ]


def test_a_frame_that_was_read_from_parquet_has_arrays_of_dicts(tmp_path):
    pd = pytest.importorskip("pandas")
    pd.DataFrame({"image": ["a.jpg"], "objects": [[CAT]]}).to_parquet(tmp_path / "list.parquet")
    frame = pd.read_parquet(tmp_path / "list.parquet")
    assert isinstance(frame.objects[0], np.ndarray)
    assert list_objects(DataFrameSource(frame, Columns())) == [[CAT]]


@pytest.mark.fault(
    106,
    "a cell of objects that is not a list, or with more boxes than classes",
    "rejected",
    code="`bad_value`",
)
def test_what_is_not_a_list_stays_for_the_kind_of_target_to_reject(tmp_path):
    cells = [
        "no",
        {"cat": [1, 2, 3, 4]},
        {"bbox": [[1, 2, 3, 4]], "categories": []},
        "[" * 9999,
    ]
    rows = [{"image_uri": "a.jpg", "objects": cell} for cell in cells]
    found = list_objects(write_lines(tmp_path / "list.jsonl", *rows))
    assert found == cells
    for cell in found:
        with pytest.raises(RejectError, match=r"objects are not JSON|expected a list of objects"):
            parse_objects(cell, Form(("objects",)))


def test_a_list_of_hugging_face_has_corner_and_size_and_numbers_as_text(tmp_path):
    rows = [
        {"file_name": "a.png", "objects": HUGGING_FACE},
        {"file_name": "b.png", "objects": {"bbox": [], "category": []}},
        {"file_name": "c.png", "objects": {"bbox": ["x", [1, 2, 3]], "label": [None, 2]}},
    ]
    expected = [
        [
            {"label": "0", "box": [302.0, 109.0, 375.0, 161.0], "is_crowd": 0},
            {"label": "mask", "box": [1, 2, 4, 6], "is_crowd": 1},
        ],
        [],
        [{"label": None, "box": "x"}, {"label": "2", "box": [1, 2, 3]}],
    ]
    size = {"width": None, "height": None, "orientation": None}
    source = write_lines(tmp_path / "metadata.jsonl", *rows)
    assert list_objects(source) == [{**size, "objects": each} for each in expected]


def test_a_list_of_hugging_face_may_have_an_object_for_each_box(tmp_path):
    pairs = zip(HUGGING_FACE["bbox"], HUGGING_FACE["categories"], strict=True)
    objects = [{"bbox": box, "category": name, "area": 1} for box, name in pairs]
    rows = {"file_name": "a.png", "objects": objects}, {"file_name": "b.png", "objects": []}
    first, second = list_objects(write_lines(tmp_path / "metadata.jsonl", *rows))
    assert first["objects"] == [
        {"label": "0", "box": [302.0, 109.0, 375.0, 161.0], "area": 1},
        {"label": "mask", "box": [1, 2, 4, 6], "area": 1},
    ]
    assert (first["width"], first["orientation"], second) == (None, None, [])


def test_a_csv_has_json_in_its_cells(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"file_name": ["a.png", "b.png", "c.png"]})
    frame["objects"] = [json.dumps(HUGGING_FACE), "[]", ""]
    frame.to_csv(tmp_path / "metadata.csv", index=False)
    first, *others = list_objects(CsvSource(str(tmp_path / "metadata.csv"), Columns()))
    assert ([each["label"] for each in first["objects"]], others) == (["0", "mask"], [[], None])


@pytest.mark.fault(106, "text of Python, as `to_csv` of pandas writes lists", "read as JSON is")
def test_a_csv_may_have_the_lists_that_pandas_wrote(tmp_path):
    pd = pytest.importorskip("pandas")
    cells = [CAT, {**DOG, "box": (0, 0, 9, 9), "label": "d'or"}], HUGGING_FACE, []
    frame = pd.DataFrame({"file_name": ["a.png", "b.png", "c.png"], "objects": cells})
    frame.to_csv(tmp_path / "list.csv", index=False)
    ours, theirs, empty = list_objects(CsvSource(str(tmp_path / "list.csv"), Columns()))
    assert (ours, empty) == ([CAT, {**DOG, "label": "d'or"}], [])
    assert [each["label"] for each in theirs["objects"]] == ["0", "mask"]


@pytest.mark.fault(
    106,
    "text of NumPy's arrays, as `to_csv` of pandas writes them; of Python, too long or not a list",
    "rejected",
    code="`bad_value`",
    hint="write the list by `to_json` of pandas, with `lines=True`",
)
def test_arrays_that_pandas_wrote_are_not_read(tmp_path):
    cells = (
        str([{"label": "cat", "box": np.array([1, 2, 3, 4])}]),
        str([CAT] * 9_999),
        *("[1, 2j]", "{(1, 2): 3}", "open('x')", "[" * 9_999, "-" * 9_999 + "1"),
    )
    rows = [{"image_uri": "a.jpg", "objects": cell} for cell in cells]
    for cell in list_objects(write_lines(tmp_path / "list.jsonl", *rows)):
        with pytest.raises(RejectError, match="the objects are not JSON: "):
            parse_objects(cell, Form(("objects",)))
    hint = format_hint({"bad_value": 1})
    assert 'frame.to_json("list.jsonl", orient="records", lines=True)' in hint


def test_a_list_of_rejects_gives_the_objects_that_were_listed(tmp_path):
    listed = {"width": 640.0, "height": None, "orientation": "upright", "objects": [CAT]}
    cells = None, "", listed, "no objects"
    rows = [{"split": "train", "image_uri": "a.jpg", "objects": each, **OURS} for each in cells]
    source = write_lines(tmp_path / "rejects.jsonl", *rows)
    assert list_objects(source) == [None, None, listed, "no objects"]
    assert source.schema.target_kind == "boxes"


def test_a_list_of_rejects_keeps_the_column_that_the_user_named(tmp_path):
    row = {"split": "train", "image_uri": "a.jpg", "objects": {"objects": [CAT]}, **OURS}
    path = tmp_path / "rejects.jsonl"
    path.write_text(json.dumps(row))
    columns = Columns(Schema.parse({"path": "image", "boxes": "objects"}))
    assert list_objects(JsonlSource(str(path), columns)) == [{"objects": [CAT]}]
