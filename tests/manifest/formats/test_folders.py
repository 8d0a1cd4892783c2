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
