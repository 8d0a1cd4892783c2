"""Folders with annotations of any form, and of several at once: see `manifests`.

An input is files after one another. The first byte of each is its place in `_NAMES`.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import harness
import manifests

_NAMES = (
    *("annotations/list.json", "annotations/val.json", "labels.json", "tasks.json"),
    *("Annotations/a.xml", "images/b.xml", "ImageSets/Main/train.txt", "ImageSets/Main/val.txt"),
    *("data.yaml", "obj.data", "obj.names", "classes.txt", "labels/a.txt", "images/b.txt"),
    *("train_labels.csv", "val_labels.csv", "import.csv", "list.jsonl", "train/metadata.jsonl"),
    "notes.txt",
)
_IMAGES = ("a.jpg", "images/a.jpg", "images/b.jpg", "train/c.JPG", "train2017/a.jpg")
_END = b"\x1e"
_COCO = (
    b'{"images": [{"id": 1, "file_name": "a.jpg", "width": 9, "height": 9}], "categories": '
    b'[{"id": 1, "name": "c"}], "annotations": [{"image_id": 1, "category_id": 1, "bbox": '
    b'[1, 2, 3, 4], "attributes": {"rotation": 30}, "segmentation": [[1, 2, 3, 4, 5, 6]]}]}'
)
_VOC = (
    b"<annotation><filename>a.jpg</filename><object><name>c</name><bndbox><xmin>1</xmin>"
    b"<ymin>2</ymin><xmax>3</xmax><ymax>4</ymax></bndbox></object></annotation>"
)
_YAML = b"train: images\nval: [train, list.txt]\nnames: [c, d]\n"
_LINE = b"0 .5 .5 .1 .1\n"
_TASKS = (
    b'[{"data": {"image": "/data/upload/1/a.jpg"}, "annotations": [{"result": [{"type": '
    b'"rectanglelabels", "original_width": 9, "original_height": 9, "value": {"x": 1, "y": 2, '
    b'"width": 30, "height": 40, "rotation": 5, "rectanglelabels": ["c"]}}]}]}]'
)
_ROWS = b"filename,width,height,class,xmin,ymin,xmax,ymax\na.jpg,9,9,c,1,2,3,4\n"
_VERTEX = b'{"imageGcsUri": "gs://b/a.jpg", "boundingBoxAnnotations": []}\n'
_LIST = b'{"file_name": "c.JPG", "objects": {"bbox": [[1, 2, 3, 4]], "categories": [0]}}\n'


def join(*files: tuple[str, bytes]) -> bytes:
    """Returns an input of files with these names."""
    return _END.join(bytes([_NAMES.index(name)]) + data for name, data in files)


_SEEDS = (
    join(("annotations/list.json", _COCO), ("annotations/val.json", _COCO)),
    join(("Annotations/a.xml", _VOC), ("ImageSets/Main/train.txt", b"a\n")),
    join(("data.yaml", _YAML), ("labels/a.txt", _LINE), ("images/b.txt", b"1 .1 .1 .2 .1 .2 .2")),
    join(("obj.data", b"train = images\n"), ("obj.names", b"c\nd\n"), ("labels/a.txt", _LINE)),
    join(("train_labels.csv", _ROWS), ("val_labels.csv", _ROWS), ("notes.txt", b"hello")),
    join(("tasks.json", _TASKS)),
    join(("list.jsonl", _VERTEX), ("import.csv", b"TRAIN,gs://b/a.jpg,c,0.1,0.1,,,0.5,0.5,,\n")),
    join(("train/metadata.jsonl", _LIST), ("labels.json", _COCO), ("images/b.xml", _VOC)),
)
_TOKENS = (
    *(_END, b'"images": [', b'"annotations": [', b'"categories": [', b'"file_name": "', b"../"),
    *(b"NaN", b"1e400", b"null", b'"bbox": ', b"names: ", b"train: ", b"<object>", b"<bndbox>"),
    *(b"\\", b"/content/images/", b"gs://", b'"rotation": ', b'"id": ', b"xmin", b"image_uri"),
)


def check(data: bytes) -> None:
    """Reads a folder of the files."""
    folder = manifests.make_folder("set")
    shutil.rmtree(folder)
    for name in _IMAGES:
        write(folder / name, b"")
    for part in filter(None, data.split(_END)):
        write(folder / _NAMES[part[0] % len(_NAMES)], part[1:])
    manifests.check_path(folder, data)


def write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


if __name__ == "__main__":
    harness.fuzz(check, _SEEDS, _TOKENS)
