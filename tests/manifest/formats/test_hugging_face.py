"""Folders that `datasets` of Hugging Face loads as `imagefolder`, with objects."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.parsed import parse_rows

from darkroom.errors import DataError
from darkroom.manifest.opening import open_sources
from darkroom.manifest.sources.folder import FolderSource
from darkroom.manifest.sources.jsonl import JsonlSource
from darkroom.options.manifest import ManifestOptions

OBJECTS = {"bbox": [[302.0, 109.0, 73.0, 52.0], [1, 2, 3, 4]], "categories": [0, 5]}
CELL = {
    "width": None,
    "height": None,
    "orientation": None,
    "objects": [
        {"label": "0", "box": [302.0, 109.0, 375.0, 161.0]},
        {"label": "5", "box": [1, 2, 4, 6]},
    ],
}
NOTHING = {**CELL, "objects": []}


@pytest.fixture
def write(tmp_path):
    """Writes a list of rows into a folder, beside their images; returns the top folder."""

    def write(*rows, folder=".", name="metadata.jsonl"):
        path = tmp_path / folder / name
        path.parent.mkdir(exist_ok=True)
        for row in rows:
            if isinstance(row, dict):
                (path.parent / row["file_name"]).touch()
        if name.endswith(".parquet"):
            pq.write_table(pa.Table.from_pylist([*rows]), path)
        else:
            texts = [row if isinstance(row, str) else json.dumps(row) for row in rows]
            path.write_text("\n".join(texts))
        return tmp_path

    return write


def read(path, **options):
    (source,) = open_sources(path, ManifestOptions(**options))
    return source


def read_all(path):
    """Returns the folder and the split of each list, and its rows."""
    return [
        (source.base.removeprefix(f"{path}/"), source.split, [row.values for row in source.rows()])
        for source in open_sources(path)
    ]


def test_a_folder_has_a_list_with_boxes_by_corner_and_size(write):
    rows = {"file_name": "a.png", "objects": OBJECTS}, {"file_name": "b.png"}
    source = read(write(*rows))
    assert [row.values for row in source.rows()] == [["a.png", CELL], ["b.png", None]]
    assert source.schema.target_kind == "boxes"


def test_folders_are_splits_and_lists_may_have_their_columns_in_any_order(write, tmp_path):
    nothing = {"bbox": [], "categories": []}
    write({"file_name": "a.png", "objects": OBJECTS}, folder="train")
    write({"objects": nothing, "file_name": "a.png"}, folder="validation")
    assert read_all(tmp_path) == [
        ("train", "train", [["a.png", CELL]]),
        ("validation", "eval", [[NOTHING, "a.png"]]),
    ]
    # Images of one name have keys of their own.
    sources = open_sources(tmp_path)
    assert {each.identity_base for each in sources} == {str(tmp_path)}
    assert {entry.id for entry in parse_rows(sources, ManifestOptions())} == {
        "train/a.png",
        "validation/a.png",
    }


def test_lists_are_csv_or_parquet_too(write, tmp_path):
    text = json.dumps(OBJECTS).replace('"', '""')
    write("file_name,objects", f'a.png,"{text}"', "b.png,", folder="train", name="metadata.csv")
    assert read_all(tmp_path) == [("train", "train", [["a.png", CELL], ["b.png", None]])]
    (tmp_path / "train" / "metadata.csv").unlink()
    numbers = {**OBJECTS, "bbox": [[302.0, 109.0, 73.0, 52.0], [1.0, 2.0, 3.0, 4.0]]}
    write({"file_name": "a.png", "objects": numbers}, name="metadata.parquet")
    assert [row.values for row in read(tmp_path).rows()] == [["a.png", CELL]]


def test_a_list_alone_is_a_list_of_ours(write):
    folder = write({"file_name": "a.png", "objects": OBJECTS})
    source = read(folder / "metadata.jsonl")
    assert isinstance(source, JsonlSource)
    assert [row.values for row in source.rows()] == [["a.png", CELL]]
    named = read(folder / "metadata.jsonl", format="hugging_face")
    assert [row.values for row in named.rows()] == [["a.png", CELL]]


def test_lists_without_objects_stay_beside_folders_of_classes(write, tmp_path):
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "c.png").touch()
    (tmp_path / "dog").mkdir()
    (tmp_path / "dog" / "d.png").touch()
    assert isinstance(read(write({"file_name": "a.png", "text": "x"})), FolderSource)


@pytest.mark.fault(106, "lists of splits with other columns", "refused", code="exit 1")
def test_lists_of_other_columns_are_refused(write, tmp_path):
    write({"file_name": "a.png", "objects": OBJECTS}, folder="test")
    write({"file_name": "a.png", "objects": OBJECTS, "age": 3}, folder="train")
    with pytest.raises(
        DataError, match=r"columns of .*train/metadata\.jsonl differ from those of .*age"
    ):
        read(tmp_path)


def test_a_folder_without_a_list_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"Nothing below .* is a list of Hugging Face"):
        read(tmp_path, format="hugging_face")


@pytest.mark.parametrize("data", [b"", b"text", b"PAR1garbage.PAR1"])
def test_a_damaged_list_beside_images_is_named(tmp_path, data):
    (tmp_path / "a.png").touch()
    (tmp_path / "metadata.parquet").write_bytes(data)
    with pytest.raises(DataError, match=r"metadata\.parquet is not a Parquet file"):
        open_sources(tmp_path)
