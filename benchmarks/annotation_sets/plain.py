"""Annotations as a plain reading has them: a few lines for each form, without darkroom's code.

The readings look at nothing that is wrong: what an object lacks is None or NaN.
"""

from __future__ import annotations

import csv
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import yaml

Box = tuple[float, float, float, float]
# The name of an image that a list of images does not have.
NO_IMAGE = "(none)"
_NO_BOX: Box = (math.nan, math.nan, math.nan, math.nan)
_SIDES = ("xmin", "ymin", "xmax", "ymax")
_VERTEX = ("xMin", "yMin", "xMax", "yMax")


class Thing(NamedTuple):
    """An object: its class, (xmin, ymin, xmax, ymax) in the units of its picture, and flags."""

    label: str
    box: Box
    is_crowd: bool = False
    difficult: bool = False


class Picture(NamedTuple):
    """An image of a list.

    Attributes:
        name: Its path or URL, as the list has it.
        size: The width and height that the list declares; (1, 1) for shares, None for none.
        things: Its objects.
    """

    name: str
    size: tuple[float, float] | None
    things: list[Thing]


def read_pictures(path: Path) -> list[Picture]:
    """Returns the images of a file or folder of annotations, each once."""
    found: dict[str, Picture] = {}
    for name, size, things in _FORMS[find_form(path)](path):
        found.setdefault(name, Picture(name, size, [])).things.extend(things)
    return [*found.values()]


def find_form(path: Path) -> str:
    """Returns the form of annotations, by names and keys: one of `_FORMS`."""
    if path.is_dir():
        named = {"_annotations.coco.json": "coco", "instances*.json": "coco"}
        named |= {"metadata.jsonl": "hugging_face", "*.yaml": "yolo", "*.xml": "voc"}
        return next(form for pattern, form in named.items() if any(path.rglob(pattern)))
    with open(path, encoding="utf-8-sig") as file:
        start = file.read(1000)
    if path.suffix == ".csv":
        return "tf_csv"
    if path.suffix == ".jsonl":
        return "vertex" if "imageGcsUri" in start else "own"
    return "label_studio" if start.lstrip().startswith("[") else "coco"


def list_coco(path: Path) -> list[Path]:
    """Returns the files of annotations of COCO that a path means."""
    if path.is_file():
        return [path]
    return sorted([*path.rglob("_annotations.coco.json"), *path.rglob("instances*.json")])


def read_coco(path: Path) -> Iterator[Picture]:
    """Yields the images of a file, and those that only its objects name."""
    found = json.loads(path.read_text("utf-8-sig"))
    names = {each["id"]: str(each["name"]).strip() for each in found["categories"]}
    things = defaultdict(list)
    for each in found["annotations"]:
        box = _from_sides(each["bbox"]) if each.get("bbox") else _NO_BOX
        crowd = bool(each.get("iscrowd"))
        things[each["image_id"]].append(Thing(names.get(each["category_id"], ""), box, crowd))
    for image in found["images"]:
        sides = image.get("width"), image.get("height")
        size = (float(sides[0]), float(sides[1])) if all(sides) else None
        yield Picture(str(path.parent / image["file_name"]), size, things.pop(image["id"], []))
    for unknown in things.values():
        yield Picture(NO_IMAGE, None, unknown)


def _from_sides(box: list[float]) -> Box:
    left, top, width, height = map(float, box)
    return left, top, left + width, top + height


def _read_coco_files(path: Path) -> Iterator[Picture]:
    for file in list_coco(path):
        yield from read_coco(file)


def _read_label_studio(path: Path) -> Iterator[Picture]:
    """Takes the last annotation of a task that was not skipped."""
    for task in json.loads(path.read_text()):
        done = [each for each in task["annotations"] if not each.get("was_cancelled")]
        results = done[-1]["result"] if done else []
        regions = [each for each in results if each["type"].endswith("labels")]
        size = None
        if regions:
            size = (regions[0]["original_width"], regions[0]["original_height"])
        things = [
            Thing(label, _turn_region(region["value"], *size))
            for region in regions
            for label in region["value"][region["type"]]
        ]
        yield Picture(task["data"]["image"], size, things)


def _turn_region(value: dict[str, Any], width: float, height: float) -> Box:
    """Returns the box around a rectangle that is turned about its upper left corner, in pixels."""
    if "points" in value:
        corners = [complex(x * width, y * height) / 100 for x, y in value["points"]]
    else:
        start = complex(value["x"] * width, value["y"] * height) / 100
        across, down = value["width"] * width / 100, value["height"] * height / 100
        turn = math.radians(value.get("rotation") or 0)
        turned = complex(math.cos(turn), math.sin(turn))
        corners = [start + turned * complex(x, y) for x in (0, across) for y in (0, down)]
    xs, ys = [each.real for each in corners], [each.imag for each in corners]
    return min(xs), min(ys), max(xs), max(ys)


def _read_tutorial(path: Path) -> Iterator[Picture]:
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            size = (float(row["width"]), float(row["height"]))
            things = [Thing(row["class"], _take(row, _SIDES))] if row["class"] else []
            yield Picture(row["filename"], size, things)


def _read_vertex(path: Path) -> Iterator[Picture]:
    for found in map(json.loads, path.read_text().splitlines()):
        objects = found.get("boundingBoxAnnotations", ())
        things = [Thing(each["displayName"], _take(each, _VERTEX)) for each in objects]
        yield Picture(found["imageGcsUri"], (1, 1), things)


def _read_hugging_face(folder: Path) -> Iterator[Picture]:
    for file in sorted(folder.rglob("metadata.jsonl")):
        for found in map(json.loads, file.read_text().splitlines()):
            pairs = zip(found["objects"]["categories"], found["objects"]["bbox"], strict=True)
            things = [Thing(str(label), _from_sides(box)) for label, box in pairs]
            yield Picture(str(file.parent / found["file_name"]), None, things)


def _read_own(path: Path) -> Iterator[Picture]:
    for found in map(json.loads, path.read_text().splitlines()):
        things = []
        for each in found["objects"] or ():
            left, top, right, bottom = map(float, each["box"])
            flags = bool(each.get("is_crowd")), bool(each.get("difficult"))
            things.append(Thing(each["label"], (left, top, right, bottom), *flags))
        yield Picture(found["image_uri"], None, things)


def _take(found: Mapping[str, Any], names: Sequence[str]) -> Box:
    cells = (found[name] for name in names)
    left, top, right, bottom = (float("nan" if cell in (None, "") else cell) for cell in cells)
    return left, top, right, bottom


def _read_yolo(folder: Path) -> Iterator[Picture]:
    (settings,) = folder.glob("*.yaml")
    names = yaml.safe_load(settings.read_text())["names"]
    images = (each for each in sorted(folder.rglob("*")) if each.suffix in (".jpg", ".png"))
    for image in images:
        before, _, after = str(image.with_suffix(".txt")).rpartition("/images/")
        labels = Path(f"{before}/labels/{after}")
        lines = labels.read_text().splitlines() if labels.exists() else []
        things = [_read_yolo_line(line.split(), names) for line in lines if line.strip()]
        yield Picture(str(image), (1, 1), things)


def _read_yolo_line(cells: list[str], names: Any) -> Thing:
    numbers = [*map(float, cells[1:])]
    if len(numbers) == 4:
        x, y, width, height = numbers
        box = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
    else:
        box = (min(numbers[::2]), min(numbers[1::2]), max(numbers[::2]), max(numbers[1::2]))
    return Thing(names[int(cells[0])], box)


def _read_voc(folder: Path) -> Iterator[Picture]:
    for file in sorted(folder.rglob("*.xml")):
        root = ElementTree.parse(file).getroot()
        width, height = (float(root.findtext(f"size/{s}") or 0) for s in ("width", "height"))
        things = []
        for each in root.iter("object"):
            corners = {side: each.findtext(f"bndbox/{side}") for side in _SIDES}
            flags = False, each.findtext("difficult") == "1"
            things.append(Thing(each.findtext("name") or "", _take(corners, _SIDES), *flags))
        yield Picture(f"{file.stem}.jpg", (width, height) if width else None, things)


_FORMS: Mapping[str, Callable[[Path], Iterator[Picture]]] = {
    "coco": _read_coco_files,
    "label_studio": _read_label_studio,
    "tf_csv": _read_tutorial,
    "vertex": _read_vertex,
    "hugging_face": _read_hugging_face,
    "own": _read_own,
    "yolo": _read_yolo,
    "voc": _read_voc,
}
