"""Annotations of boxes in a store: files and images are found with few requests, and read."""

from __future__ import annotations

import json

import pytest

import darkroom
from darkroom import storage
from darkroom.manifest.opening import open_sources
from darkroom.options.manifest import ManifestOptions

from ..pictures import encode, make_noise

pytestmark = pytest.mark.heavy

_BOX = "<xmin>1</xmin><ymin>1</ymin><xmax>5</xmax><ymax>6</ymax>"
_OBJECT = f"<object><name>cat</name><bndbox>{_BOX}</bndbox></object>"
YOLO = {
    "data.yaml": "train: ../train/images\nval: ../valid/images\nnames: [cat]\n",
    "train/images/a.jpg": encode(make_noise(0, 9, 7), "JPEG"),
    "train/labels/a.txt": "0 0.5 0.5 0.5 0.5\n0 0.25 0.25 0.5 0.5\n",
    "train/images/b.jpg": encode(make_noise(1, 9, 7), "JPEG"),
    "valid/images/c.jpg": encode(make_noise(2, 9, 7), "JPEG"),
    "valid/labels/c.txt": "0 0.5 0.5 0.5 0.5\n",
}
VOC = {
    "JPEGImages/a.jpg": encode(make_noise(0, 9, 7), "JPEG"),
    "Annotations/a.xml": f"<annotation>{_OBJECT * 2}</annotation>".replace("1</xm", "2</xm", 1),
    "ImageSets/Main/train.txt": "a\n",
}


def _make_coco(count: int) -> bytes:
    images = [{"id": number, "file_name": f"{number}.jpg"} for number in range(count)]
    box = {"id": 1, "image_id": 3, "category_id": 1, "bbox": [0, 0, 1, 2]}
    found = {"images": images, "annotations": [box], "categories": [{"id": 1, "name": "cat"}]}
    return json.dumps(found).encode()


def test_coco_in_a_store_is_found_by_its_folder_and_fetched(store):
    proxy, root = store
    for split in ("train2017", "val2017"):
        storage.write_bytes(f"{root}/set/annotations/instances_{split}.json", _make_coco(20))
        for number in range(20):
            storage.write_bytes(f"{root}/set/{split}/{number}.jpg", b"x")
    proxy.requests.clear()
    sources = open_sources(f"{root}/set", ManifestOptions())
    assert [(source.base, source.split) for source in sources] == [
        (f"{root}/set/train2017", "train"),
        (f"{root}/set/val2017", "eval"),
    ]
    rows = [row.values for source in sources for row in source.rows()]
    assert [uri for uri, _ in rows] == [f"{number}.jpg" for number in range(20)] * 2
    assert rows[3][-1]["objects"][0]["box"] == [0, 0, 1, 2]
    assert len(proxy.requests) < 60


@pytest.mark.parametrize("store", ["s3"], indirect=True)
@pytest.mark.parametrize(("files", "written", "objects"), [(YOLO, 3, 3), (VOC, 1, 2)])
def test_annotations_are_read_from_a_store(store, tmp_path, files, written, objects):
    _, root = store
    for name, content in files.items():
        data = content if isinstance(content, bytes) else content.encode()
        storage.write_bytes(f"{root}/set/{name}", data)
    result = darkroom.convert(f"{root}/set", tmp_path / "records")
    assert (result.written, result.objects.written) == (written, objects)
