"""Label maps that a user gives, in the forms that tools write."""

from __future__ import annotations

import json

import pytest

from darkroom.errors import DataError, StorageError
from darkroom.manifest.label_map import resolve_labels
from darkroom.manifest.writer import write_manifest
from darkroom.options.manifest import ManifestOptions

PBTXT = """
# Of the Object Detection API.
item {
  id: 3
  name: "/m/01yrx"
  display_name: "cat"
}
item {
  name: 'dog # 2'
  id: 1
  keypoints { id: 0 label: "nose" }
}
item: { id: 12, name: "it\\'s \\303\\251 \u00e9 \\"}\\"" }
"""
FORMS = {
    "labels.txt": ("dog\ncat\n", ["dog", "cat"]),
    "data.yaml": ("train: images\nnc: 2\nnames: [dog, cat]\n", ["dog", "cat"]),
    "coco128.yaml": ("path: ../x\ntrain: x\n\nnames:\n  2: cat\n  0: dog\n", ["dog", "cat"]),
    "names.yml": ("names: ['no', '007']\n", ["no", "007"]),
    "a.json": (
        json.dumps(
            {
                "info": {"year": 2026},
                "images": [{"id": 1, "file_name": "a.jpg"}],
                "categories": [{"id": 7, "name": "cat"}, {"id": 1, "name": "dog"}],
            },
            indent=2,
        ),
        ["dog", "cat"],
    ),
    "categories.json": ('\ufeff{"categories": [{"id": 1, "name": "dog"}]}', ["dog"]),
    "map.pbtxt": (PBTXT, ["dog # 2", "cat", 'it\'s \u00e9 \u00e9 "}"']),
    "one-line.pbtxt": ("item { id: 2 name: 'cat' } item { id: 1 name: 'dog' }", ["dog", "cat"]),
}


@pytest.fixture
def read(tmp_path):
    def read(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return resolve_labels(ManifestOptions.parse(label_map=path)).labels

    return read


@pytest.mark.parametrize("name", FORMS)
def test_a_label_map_has_the_form_of_a_tool(read, name):
    content, labels = FORMS[name]
    assert read(name, content) == tuple(labels)


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("data.yaml", "names: [dog\n", "data.yaml is not YAML"),
        ("data.yaml", "names: 2\n", "does not name the classes"),
        ("data.yaml", "nc: 3\nnames: [dog, cat]\n", "has nc: 3, but names 2 classes"),
        ("a.json", '{"categories": []}', "is JSON without categories"),
        ("a.json", '{"cat": 1}', "is JSON without categories"),
        ("a.json", '{"categories": [{"id": 1}]}', "the category .* cannot be used"),
        ("a.json", '{"categories": [', "is not complete, or not JSON"),
        ("a.pbtxt", "item { id: 1 }", "an item without a name"),
        ("a.pbtxt", "item { name: 'cat' }", "or without an id of its own: {'name': \"'cat'\"}"),
        ("a.pbtxt", "item { id: 1 name: 'a' }\nitem { id: 1 name: 'b' }", "an id of its own"),
        ("a.pbtxt", b"item { id: 1 name: 'a\xff' }", "is not UTF-8"),
        ("labels.txt", b"d\xf6g\n", "is not UTF-8"),
    ],
)
def test_a_label_map_that_cannot_be_used_is_an_error(read, name, content, what):
    with pytest.raises(DataError, match=what) as caught:
        read(name, content)
    assert caught.value.hint


def test_a_label_map_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(StorageError, match="label file cannot be read"):
        resolve_labels(ManifestOptions.parse(label_map=tmp_path / "gone.pbtxt"))


@pytest.mark.parametrize("name", ["labels.txt", "data.yaml", "a.json", "one-line.pbtxt"])
def test_labels_and_classes_are_numbered_by_it(tmp_path, name):
    (tmp_path / name).write_text(FORMS[name][0])
    (tmp_path / "l.csv").write_text("image_uri,label\na.jpg,cat\nb.jpg,ox\n")
    objects = [{"label": each, "box": [1, 2, 3, 4]} for each in ("cat", "ox")]
    (tmp_path / "l.jsonl").write_text(json.dumps({"image_uri": "a.jpg", "objects": objects}))
    options = ManifestOptions.parse(label_map=tmp_path / name)
    for list_name in ("l.csv", "l.jsonl"):
        folder = str(tmp_path / "out")
        made = write_manifest(tmp_path / list_name, folder, folder, options)
        assert made.labels == ["dog", "cat"]
        assert made.read_as.labels == "the given label map"
