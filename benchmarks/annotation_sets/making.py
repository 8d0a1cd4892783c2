"""Makes one set of objects in eight forms, from a seed, and photographs that EXIF turns."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

import numpy as np
from PIL import Image

from annotation_sets.places import ORIENTATION_TAG, TURNS, open_photograph
from annotation_sets.plain import Box

LABELS = ("bag", "belt", "café chair", "dress", "hat", "long shirt", "shoe", "skirt", "t-shirt")
_SIDES = ("xmin", "ymin", "xmax", "ymax")
# Rarely in an image: so many that pycocotools, which keeps 100, would drop some.
_CROWDED = 130
_MOST = 14
_TURNED_IMAGES = 80
_EXIF_START = b"\xff\xd8\xff\xe1"


class Drawn(NamedTuple):
    """An object as it was drawn: a rectangle that is turned about its upper left corner.

    Attributes:
        label: Its class.
        rectangle: Left, top, width and height in pixels, before it is turned.
        degrees: By how much it is turned.
        box: The upright box around it.
        is_crowd: Said by COCO and darkroom's own lists.
        difficult: Said by Pascal VOC and darkroom's own lists.
    """

    label: str
    rectangle: Box
    degrees: float
    box: Box
    is_crowd: bool
    difficult: bool


class Photo(NamedTuple):
    """An image with the objects that were drawn on it."""

    name: str
    width: int
    height: int
    objects: list[Drawn]

    def has_inside(self, each: Drawn) -> bool:
        """Tells whether the box of an object has an area, and is inside the image."""
        left, top, right, bottom = each.box
        return 0 <= left < right <= self.width and 0 <= top < bottom <= self.height


def make_photos(images: Path, *, is_stored: bool = False) -> list[Photo]:
    """Draws objects on the photographs of a folder; most are usual, and some as lists have them.

    Args:
        images: The folder.
        is_stored: Whether places are in the pixels of the files, and not in what people see.
    """
    rng = np.random.default_rng(0)
    photos = []
    for number, path in enumerate(sorted(images.iterdir())):
        file = open_photograph(path)
        width, height = file[:2] if is_stored else file.shown
        count = _CROWDED if number == 1 else int(rng.integers(0, _MOST + 1))
        objects: list[Drawn] = []
        for _ in range(count):
            is_twin = bool(objects) and rng.random() < 0.01
            objects.append(objects[-1] if is_twin else _draw(rng, width, height))
        photos.append(Photo(path.name, width, height, objects))
    return photos


def _draw(rng: np.random.Generator, width: int, height: int) -> Drawn:
    """Returns an object: at an edge, outside, without an area or turned at times."""
    left, top = (rng.random(2) * (width * 0.7, height * 0.7)).round(2).tolist()
    across, down = (rng.random(2) * (width - left - 1, height - top - 1) + 1).round(2).tolist()
    degrees = 0.0
    chance = rng.random()
    if chance < 0.05:
        left, across = 0.0, float(width)
    elif chance < 0.1:
        top = round(float(-rng.random()), 2)
    elif chance < 0.12:
        across = width - left + 1.5
    elif chance < 0.125:
        across = 0.0
    elif chance < 0.3:
        degrees = round(float(rng.uniform(-20, 20)), 2)
    rectangle = (left, top, across, down)
    flags = bool(rng.random() < 0.02), bool(rng.random() < 0.1)
    label = LABELS[int(rng.integers(len(LABELS)))]
    return Drawn(label, rectangle, degrees, _find_box(rectangle, degrees), *flags)


def _find_box(rectangle: Box, degrees: float) -> Box:
    left, top, across, down = rectangle
    if not degrees:
        return left, top, left + across, top + down
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    xs = (0.0, across * cos, -down * sin, across * cos - down * sin)
    ys = (0.0, across * sin, down * cos, across * sin + down * cos)
    return left + min(xs), top + min(ys), left + max(xs), top + max(ys)


def write_forms(folder: Path, photos: Sequence[Photo], images: Path) -> dict[str, Path]:
    """Writes the objects in all forms; returns what to convert, by form."""
    return {form: write(folder / form, photos, images) for form, write in FORMS.items()}


def add_lost_object(path: Path) -> None:
    """Adds to a file of COCO an object of an image that it does not have."""
    found = json.loads(path.read_text())
    found["annotations"].append({**found["annotations"][0], "id": 1, "image_id": 1})
    path.write_text(json.dumps(found))


def keep_usual(photos: Sequence[Photo]) -> list[Photo]:
    """Returns photographs with the objects that have no faults, each once."""
    return [
        photo._replace(objects=[*dict.fromkeys(filter(photo.has_inside, photo.objects))])
        for photo in photos
    ]


def write_turned(folder: Path, images: Path) -> dict[str, Path]:
    """Writes photographs in the orientations 1 to 8, and COCO in pixels of either image."""
    turned = folder / "photographs"
    turned.mkdir(parents=True)
    for number, path in enumerate(sorted(images.iterdir())[:_TURNED_IMAGES]):
        exif = Image.Exif()
        exif[ORIENTATION_TAG] = number % len(TURNS) + 1
        block = exif.tobytes()
        data = _EXIF_START + (len(block) + 2).to_bytes(2, "big") + block + path.read_bytes()[2:]
        (turned / path.name).write_bytes(data)
    return {
        way: _write_coco(folder / way, make_photos(turned, is_stored=way == "stored"), turned)
        for way in ("upright", "stored")
    }


def _link(images: Path, folder: Path) -> None:
    shutil.copytree(images, folder, copy_function=os.link)


def _to_sides(box: Box) -> list[float]:
    return [box[0], box[1], box[2] - box[0], box[3] - box[1]]


def _make_coco(photos: Sequence[Photo]) -> dict[str, Any]:
    """Returns COCO with gaps between ids."""
    images = [
        {"id": 3 * n, "file_name": each.name, "width": each.width, "height": each.height}
        for n, each in enumerate(photos)
    ]
    objects = [
        {
            "image_id": 3 * number,
            "category_id": 7 * LABELS.index(each.label),
            "bbox": _to_sides(each.box),
            "area": each.rectangle[2] * each.rectangle[3],
            "iscrowd": int(each.is_crowd),
        }
        for number, photo in enumerate(photos)
        for each in photo.objects
    ]
    return {
        "categories": [{"id": 7 * n, "name": name} for n, name in enumerate(LABELS)],
        "images": images,
        "annotations": [{"id": 5 * n, **each} for n, each in enumerate(objects)],
    }


def _write_coco(folder: Path, photos: Sequence[Photo], images: Path) -> Path:
    _link(images, folder / "images")
    path = folder / "annotations" / "instances_train.json"
    path.parent.mkdir()
    path.write_text(json.dumps(_make_coco(photos)))
    return path


def _write_yolo(folder: Path, photos: Sequence[Photo], images: Path) -> Path:
    _link(images, folder / "images" / "train")
    labels = folder / "labels" / "train"
    labels.mkdir(parents=True)
    for photo in photos:
        lines = []
        for each in photo.objects:
            left, top, right, bottom = each.box
            x, across = (left + right) / 2 / photo.width, (right - left) / photo.width
            y, down = (top + bottom) / 2 / photo.height, (bottom - top) / photo.height
            lines.append(f"{LABELS.index(each.label)} {x!r} {y!r} {across!r} {down!r}\n")
        (labels / photo.name).with_suffix(".txt").write_text("".join(lines))
    names = json.dumps(LABELS, ensure_ascii=False)
    text = f"path: .\ntrain: images/train\nnc: {len(LABELS)}\nnames: {names}\n"
    (folder / "data.yaml").write_text(text)
    return folder


def _write_voc(folder: Path, photos: Sequence[Photo], images: Path) -> Path:
    _link(images, folder / "JPEGImages")
    (folder / "Annotations").mkdir()
    (folder / "ImageSets" / "Main").mkdir(parents=True)
    for photo in photos:
        objects = "".join(
            f"<object><name>{escape(each.label)}</name><difficult>{int(each.difficult)}"
            f"</difficult><bndbox>{_tag(each.box)}</bndbox></object>"
            for each in photo.objects
        )
        size = f"<width>{photo.width}</width><height>{photo.height}</height><depth>3</depth>"
        text = (
            f"<annotation><folder>JPEGImages</folder><filename>{photo.name}</filename>"
            f"<size>{size}</size>{objects}</annotation>"
        )
        (folder / "Annotations" / photo.name).with_suffix(".xml").write_text(text)
    names = "".join(f"{Path(photo.name).stem}\n" for photo in photos)
    (folder / "ImageSets" / "Main" / "train.txt").write_text(names)
    return folder


def _tag(box: Box) -> str:
    return "".join(f"<{n}>{value!r}</{n}>" for n, value in zip(_SIDES, box, strict=True))


def _write_tutorial(folder: Path, photos: Sequence[Photo], images: Path) -> Path:
    """An image without objects is a row without class and box."""
    _link(images, folder / "images")
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["filename", "width", "height", "class", *_SIDES])
    for photo in photos:
        start = (photo.name, photo.width, photo.height)
        rows.writerows((*start, each.label, *each.box) for each in photo.objects)
        if not photo.objects:
            rows.writerow((*start, "", "", "", "", ""))
    path = folder / "train_labels.csv"
    path.write_text(text.getvalue())
    return path


def _write_lines(
    folder: Path, images: Path, name: str, rows: Iterator[dict[str, Any]], below: str = "images"
) -> Path:
    _link(images, folder / below)
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def _write_vertex(folder: Path, photos: Sequence[Photo], images: Path) -> Path:
    rows = (
        {
            "imageGcsUri": f"images/{photo.name}",
            "boundingBoxAnnotations": [
                {
                    "displayName": each.label,
                    "xMin": each.box[0] / photo.width,
                    "yMin": each.box[1] / photo.height,
                    "xMax": each.box[2] / photo.width,
                    "yMax": each.box[3] / photo.height,
                }
                for each in photo.objects
            ],
        }
        for photo in photos
    )
    return _write_lines(folder, images, "vertex.jsonl", rows)


def _write_label_studio(folder: Path, photos: Sequence[Photo], images: Path) -> Path:
    _link(images, folder / "images")
    tasks = [
        {
            "id": number,
            "data": {"image": f"/data/upload/1/{photo.name}"},
            "annotations": [{"id": number, "result": [*_list_regions(photo)]}],
        }
        for number, photo in enumerate(photos)
    ]
    path = folder / "project.json"
    path.write_text(json.dumps(tasks))
    return path


def _list_regions(photo: Photo) -> Iterator[dict[str, Any]]:
    for number, each in enumerate(photo.objects):
        left, top, across, down = each.rectangle
        yield {
            "id": f"r{number}",
            "type": "rectanglelabels",
            "from_name": "label",
            "to_name": "image",
            "original_width": photo.width,
            "original_height": photo.height,
            "image_rotation": 0,
            "value": {
                "x": left / photo.width * 100,
                "y": top / photo.height * 100,
                "width": across / photo.width * 100,
                "height": down / photo.height * 100,
                "rotation": each.degrees,
                "rectanglelabels": [each.label],
            },
        }


def _write_hugging_face(folder: Path, photos: Sequence[Photo], images: Path) -> Path:
    rows = (
        {
            "file_name": photo.name,
            "objects": {
                "bbox": [_to_sides(each.box) for each in photo.objects],
                "categories": [each.label for each in photo.objects],
            },
        }
        for photo in photos
    )
    _write_lines(folder, images, "train/metadata.jsonl", rows, "train")
    return folder


def _write_own(folder: Path, photos: Sequence[Photo], images: Path) -> Path:
    rows = (
        {
            "image_uri": f"images/{photo.name}",
            "objects": [
                {
                    "label": each.label,
                    "box": each.box,
                    "is_crowd": each.is_crowd,
                    "difficult": each.difficult,
                }
                for each in photo.objects
            ],
        }
        for photo in photos
    )
    return _write_lines(folder, images, "list.jsonl", rows)


FORMS: Mapping[str, Callable[[Path, Sequence[Photo], Path], Path]] = {
    "coco": _write_coco,
    "yolo": _write_yolo,
    "voc": _write_voc,
    "tf_csv": _write_tutorial,
    "vertex": _write_vertex,
    "label_studio": _write_label_studio,
    "hugging_face": _write_hugging_face,
    "own": _write_own,
}
