"""Folders with annotations: which of their files are read, and what is said of the others."""

import json

import pytest

from darkroom.errors import DataError
from darkroom.manifest.opening import open_sources
from darkroom.manifest.writer import write_manifest
from darkroom.options.manifest import ManifestOptions

COCO = {
    "images": [{"id": 1, "file_name": "a.jpg"}, {"id": 2, "file_name": "b.jpg"}],
    "categories": [{"id": 1, "name": "cat"}],
    "annotations": [{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4]}],
}
RESULTS = [{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}]
VOC = "<annotation><filename>a.jpg</filename></annotation>"
BOXES = "filename,class,xmin,ymin,xmax,ymax\na.jpg,cat,1,2,3,4"
VERTEX = {"imageGcsUri": "gs://b/a.jpg", "boundingBoxAnnotations": []}
AUTOML = "TRAIN,gs://b/a.jpg,cat,0.1,0.1,,,0.5,0.5,,\n"


def test_what_nobody_took_is_counted(write, tmp_path):
    write(dict.fromkeys(("a.jpg", "b.jpg", "c.jpg", "more/d.jpg", "README.md"), ""))
    write({"list.json": json.dumps(COCO), "xml/a.xml": VOC, "xml/b.xml": VOC})
    write({"results.json": json.dumps(RESULTS), "package.json": '{"name": "x"}'})
    found = write_manifest(tmp_path, str(tmp_path / "m"), str(tmp_path / "m")).read_as
    assert found.left_out == {
        "files like a file of annotations of COCO": 1,
        "files like an annotation of Pascal VOC": 2,
        "images that no annotation names": 2,
    }
    rows = dict(found.to_rows())
    assert rows["left out"].endswith("images that no annotation names 2")


def test_a_folder_of_lists_is_read_as_a_pattern_of_them(write, tmp_path):
    files = {"train_labels.csv": BOXES, "val_labels.csv": BOXES}
    write({**files, "images/train/a.jpg": "", "images/val/a.jpg": "", "notes.csv": "x,y\n1,2"})
    found = [
        (source.name, source.split, source.base, source.schema.target_kind)
        for source in open_sources(tmp_path)
    ]
    assert found == [
        (f"{tmp_path}/train_labels.csv", "train", f"{tmp_path}/images/train", "boxes"),
        (f"{tmp_path}/val_labels.csv", "eval", f"{tmp_path}/images/val", "boxes"),
    ]


@pytest.mark.parametrize(
    "files",
    [
        {"lists/a.jsonl": json.dumps(VERTEX), "lists/b.jsonl": json.dumps(VERTEX)},
        {"import.csv": AUTOML},
    ],
)
def test_lists_without_a_header_are_known_in_a_folder_too(write, tmp_path, files):
    write({**files, "other/a.jpg": ""})
    sources = open_sources(tmp_path)
    assert {source.name for source in sources} == {str(tmp_path / name) for name in files}
    assert {source.schema.target_kind for source in sources} == {"boxes"}


def test_annotations_outside_the_allowed_folders_are_refused(write, tmp_path):
    write({"set/a.jpg": "", "out/list.json": json.dumps(COCO)})
    (tmp_path / "set/list.json").symlink_to(tmp_path / "out/list.json")
    options = ManifestOptions(allowed_roots=(str(tmp_path / "set"),))
    with pytest.raises(DataError, match="outside the allowed folders"):
        open_sources(tmp_path / "set", options)


def name_rows(folder):
    """Returns the paths of the images of a folder, as its lists lead to them."""
    return [
        f"{source.base}/{row.values[0]}".removeprefix(f"{folder}/")
        for source in open_sources(folder)
        for row in source.rows()
    ]


def list_images(*names):
    images = [{"id": number, "file_name": name} for number, name in enumerate(names)]
    return json.dumps({**COCO, "images": images, "annotations": []})


@pytest.mark.parametrize(
    "lists",
    [
        {"list.json": list_images("a/1.jpg", "a/2.jpg", "b/1.jpg", "b/2.jpg")},
        {
            "a/list.json": list_images("1.jpg", "2.jpg"),
            "b/list.json": list_images("1.jpg", "2.jpg"),
        },
        {"boxes.csv": BOXES.replace("a.jpg", "b/1.jpg") + "\nb/2.jpg,cat,1,2,3,4"},
    ],
)
def test_a_missing_image_is_not_that_of_another_name(write, tmp_path, lists):
    write({**dict.fromkeys(("a/1.jpg", "a/2.jpg", "b/1.jpg"), ""), **lists})
    assert name_rows(tmp_path)[-2:] == ["b/1.jpg", "b/2.jpg"]


def test_images_of_another_list_are_not_those_of_a_list(write, tmp_path):
    write(dict.fromkeys(("a/images/1.jpg", "a/images/2.jpg", "b/images/2.jpg"), ""))
    write({"a/list/x.json": list_images("1.jpg"), "b/list/x.json": list_images("1.jpg", "2.jpg")})
    assert name_rows(tmp_path) == ["a/images/1.jpg", "b/images/1.jpg", "b/images/2.jpg"]


def test_a_moved_image_is_that_of_one_name_alone(write, tmp_path):
    write(dict.fromkeys(("a/1.jpg", "new/2.jpg", "new/3.jpg", "new/4.jpg"), ""))
    write({"list.json": list_images("a/1.jpg", "b/2.jpg", "b/3.jpg", "c/3.jpg", "a/4.jpg")})
    assert name_rows(tmp_path) == ["a/1.jpg", "new/2.jpg", "b/3.jpg", "c/3.jpg", "a/4.jpg"]


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("images\\day 1.jpg", "images/day 1.jpg"),
        ("1.jpg", "PHOTOS/1.JPG"),
        ("\u00e9t\u00e9.jpg", "photos/e\u0301te\u0301.jpg"),
        ("/content/drive/set/photos/1.jpg", "pictures/1.jpg"),
        ("C:\\Users\\me\\1.jpg", "photos/1.jpg"),
    ],
)
def test_lists_of_other_machines_find_their_images(write, tmp_path, name, file):
    write({file: "", "list.json": list_images(name)})
    assert name_rows(tmp_path) == [file]


def test_a_folder_above_that_of_the_user_names_no_split(write, tmp_path):
    folder = tmp_path / "test/set"
    files = ["a.jpg", "old/train/1.jpg", "old/val/1.jpg"]
    write({f"test/set/{file}": "" for file in files})
    write({"test/set/list.json": list_images("a.jpg", "train/1.jpg", "val/1.jpg")})
    assert name_rows(folder) == files
