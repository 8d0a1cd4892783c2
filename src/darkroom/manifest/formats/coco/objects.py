"""The objects of a file of COCO as columns, and those of each image in turn."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, count, islice
from typing import Any

import msgspec
import numpy as np

from darkroom.dataset.read_as import Doubt
from darkroom.errors import RejectError
from darkroom.manifest.formats.base import find_turned_hull
from darkroom.manifest.formats.coco.masks import find_box
from darkroom.manifest.formats.json_file import Elements
from darkroom.manifest.sources.objects import make_corners
from darkroom.options.source import POLYGON_BOXES
from darkroom.targets.boxes.overlaps import compare_boxes

# pandas makes a float of a whole number; both are one key of a dict.
Id = int | float | str
_Numbers = np.ndarray[Any, Any]
_BLOCK_IMAGES = 1024
# So many bytes have nothing: `null`, or an empty list.
_NULL = 4
_NAN = float("nan")
_MASKS, _KEYPOINTS = "polygons or RLE, not stored", "keypoints, not stored"
_SCORES = "scores of a model, not stored: are these its predictions?"
_NO_SCORE = (b"", b"null")
# Polygons are parsed for nothing else. Boxes with less in common are other ones, a pixel aside.
_MOST_COMPARED, _LEAST_SHARE, _PIXEL = 1000, 0.5, 1.0
# The id of an object, the corners of its box, and those of the box around its polygons.
Outlined = tuple[str, list[float], list[float]]
_FROM_MASKS = "boxes around polygons or RLE, where no other is there"


class CocoAnnotation(msgspec.Struct, gc=False):
    """An object as a file of COCO has it; `bbox` is left corner, upper corner, width, height."""

    image_id: Id
    category_id: Id
    id: Id | None = None
    bbox: list[float] | None = None
    segmentation: msgspec.Raw = msgspec.Raw(b"")
    iscrowd: int | bool | None = None
    # Text is a number that is none, as NaN.
    area: float | str | None = None
    keypoints: msgspec.Raw = msgspec.Raw(b"")
    score: msgspec.Raw = msgspec.Raw(b"")
    attributes: msgspec.Raw = msgspec.Raw(b"")


class _Attributes(msgspec.Struct, gc=False):
    rotation: float = 0.0
    difficult: Any = False


_parse_attributes = msgspec.json.Decoder(_Attributes).decode


def turn_boxes(objects: Sequence[CocoAnnotation]) -> int:
    """Gives objects that CVAT turned the boxes around them; returns how many there are."""
    count = 0
    for each in objects:
        if len(each.attributes) > _NULL and each.bbox is not None and len(each.bbox) == 4:
            with suppress(ValueError):  # Attributes of other tools, or a corner that is infinite.
                if degrees := _parse_attributes(each.attributes).rotation:
                    left, top, right, bottom = find_turned_hull(each.bbox, degrees)
                    each.bbox = [left, top, right - left, bottom - top]
                    count += 1
    return count


def _is_difficult(each: CocoAnnotation) -> bool:
    """Tells whether an object is difficult, which datumaro says, by which CVAT reads and writes."""
    if len(each.attributes) > _NULL:
        with suppress(ValueError):
            return bool(_parse_attributes(each.attributes).difficult == 1)
    return False


def _parse_mask(found: CocoAnnotation) -> Any:
    """Returns the polygons or the RLE of an object; None where none can be read."""
    with suppress(ValueError):
        return msgspec.json.decode(found.segmentation)
    return None


def list_outlined(objects: Sequence[CocoAnnotation]) -> Iterator[Outlined]:
    """Yields the first objects that have a box and polygons."""
    for each in objects[:_MOST_COMPARED]:
        mask = _parse_mask(each)
        hull = find_box(mask) if isinstance(mask, list) else None
        if hull is not None and each.bbox is not None and len(each.bbox) == 4:
            yield f"{each.id!s:.80}", make_corners(each.bbox), hull


def doubt_boxes(outlined: Sequence[Outlined]) -> Iterator[Doubt]:
    """Yields the doubt about objects whose boxes are not around their polygons."""
    boxes, hulls = np.array([each[1:] for each in outlined]).reshape(-1, 2, 4).transpose(1, 2, 0)
    is_far = np.abs(boxes - hulls).max(axis=0, initial=0) > _PIXEL
    odd = np.flatnonzero(is_far & (compare_boxes(boxes, hulls) < _LEAST_SHARE))
    if len(odd):
        name, *corners = outlined[odd[0]]
        box, hull = (", ".join(f"{corner:.6g}" for corner in each) for each in corners)
        yield Doubt(
            POLYGON_BOXES,
            f"Of the first {len(outlined):,} objects with polygons, the bbox of {len(odd):,} is "
            f"not around them, as the object {name}: left, top, right and bottom are {box}, and "
            f"those of its polygons {hull}.",
            "The bbox is stored. If the polygons are right, take bbox out of the file: then the "
            "boxes around the polygons are. If bbox is right: "
            f"--accept {POLYGON_BOXES} (accept= in Python).",
        )


class CocoObjects:
    """The objects of a file, in columns of numbers: Python's objects take ten times the memory.

    Args:
        images: The places of images by their ids; those that are not there get the next ones.
        num_images: Number of images.
        categories: The names of classes by their ids.
        counts: Takes how many objects have masks, keypoints, scores, a box from a mask alone.
    """

    def __init__(
        self,
        images: Mapping[Id, int],
        num_images: int,
        categories: Mapping[Id, str],
        counts: Counter[str],
    ) -> None:
        # The next place for each image that is not there.
        self._images = defaultdict(count(num_images).__next__, images)
        self._num_images, self._num_known = num_images, len(images)
        self._categories = {each: place for place, each in enumerate(categories)}
        self._names = [*categories.values()]
        self._counts = counts
        self._places, self._classes = array("i"), array("i")
        self._boxes, self._areas = array("d"), array("d")
        self._crowds = array("b")
        self._ids = array("q")
        self._texts: dict[int, Id | None] = {}
        self._difficult: set[int] = set()
        self._faults: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)

    def add(self, elements: Elements[CocoAnnotation]) -> None:
        """Adds a chunk of objects."""
        for value, problem in elements.bad:
            self._add_fault(value, problem)
        found = elements.good
        self._counts[_MASKS] += sum([len(each.segmentation) > _NULL for each in found])
        self._counts[_KEYPOINTS] += sum([len(each.keypoints) > _NULL for each in found])
        self._counts[_SCORES] += sum([bytes(each.score) not in _NO_SCORE for each in found])
        classes = [self._categories.get(each.category_id) for each in found]
        boxes = [each.bbox or () for each in found]
        if None in classes or {*map(len, boxes)} != {4}:
            found = [each for each in found if self._complete(each)]
            boxes = [each.bbox or () for each in found]
            classes = [self._categories[each.category_id] for each in found]
        start = len(self._places)
        self._places.extend([self._images[each.image_id] for each in found])
        self._classes.extend(classes)  # type: ignore[arg-type]
        self._boxes.extend(chain.from_iterable(boxes))
        areas = [each.area for each in found]
        self._areas.extend([area if isinstance(area, float) else _NAN for area in areas])
        self._crowds.extend([_FLAGS.get(each.iscrowd, 2) for each in found])
        self._difficult |= {place for place, each in enumerate(found, start) if _is_difficult(each)}
        ids = [each.id for each in found]
        try:
            self._ids.extend(ids)  # type: ignore[arg-type]
        except (TypeError, OverflowError):
            del self._ids[start:]
            self._texts |= dict(enumerate(ids, start))
            self._ids.extend([0] * len(ids))

    def _complete(self, found: CocoAnnotation) -> bool:
        """Gives an object without a box that of its mask; tells whether it can be used."""
        if not found.bbox and (box := find_box(_parse_mask(found))):
            self._counts[_FROM_MASKS] += 1
            found.bbox = [box[0], box[1], box[2] - box[0], box[3] - box[1]]
        if found.category_id not in self._categories:
            shown = f"{found.category_id!r:.40}"
            why = "unknown_class", f"category_id is {shown}, and no category has this id"
        elif not found.bbox:
            why = "bad_box", "it has no bbox, and no polygon or RLE to find it"
        elif len(found.bbox) != 4:
            why = "bad_box", f"bbox is {found.bbox!r:.80}, expected four numbers"
        else:
            return True
        self._add(msgspec.structs.asdict(found), *why)
        return False

    def _add_fault(self, value: dict[str, Any], problem: str) -> None:
        if ".bbox" in problem:
            detail = f"bbox is {value.get('bbox')!r:.80}, expected four numbers"
            self._add(value, "bad_box", detail)
        else:
            self._add(value, "bad_value", problem)

    def _add(self, value: Mapping[str, Any], reason: str, detail: str) -> None:
        """Adds an object that cannot be used, with what can be, for whoever corrects it."""
        image, category, box = (value.get(name) for name in ("image_id", "category_id", "bbox"))
        place = self._images[image if isinstance(image, Id) else f"{image!r:.80}"]
        known = self._categories.get(category) if isinstance(category, Id) else None
        corners = make_corners(box)
        self._faults[place].append(
            {
                "fault": RejectError(reason, detail),
                "id": value.get("id"),
                "label": None if known is None else self._names[known],
                "box": None if corners is box else corners,
            }
        )

    def list_unknown(self) -> list[Id]:
        """Returns the ids of images that objects name and that are not there."""
        return [*islice(self._images, self._num_known, None)]

    def count_classes(self) -> list[int]:
        """Returns how many objects each class has."""
        found = np.bincount(np.frombuffer(self._classes, np.int32), minlength=len(self._names))
        return [int(count) for count in found]

    def list_images(self) -> Iterator[list[dict[str, Any]]]:
        """Yields the objects of each place, in the order of the file; unusable ones at the end."""
        places = np.frombuffer(self._places, np.int32)
        order = np.argsort(places, kind="stable")
        num_images = self._num_images + len(self.list_unknown())
        ends = np.cumsum(np.bincount(places, minlength=num_images))
        boxes = np.frombuffer(self._boxes, np.float64).reshape(-1, 4)
        for first in range(0, len(ends), _BLOCK_IMAGES):
            stops = ends[first : first + _BLOCK_IMAGES]
            start = ends[first - 1] if first else 0
            taken = order[start : stops[-1]]
            objects = self._make(taken, boxes[taken])
            begin = 0
            for place, stop in enumerate((stops - start).tolist(), first):
                yield objects[begin:stop] + self._faults.get(place, [])
                begin = stop

    def _make(self, taken: _Numbers, boxes: _Numbers) -> list[dict[str, Any]]:
        """Returns objects by their numbers in the file, as a column of objects has them."""
        boxes[:, 2:] += boxes[:, :2]
        columns = [
            np.frombuffer(each, kind)[taken].tolist()
            for each, kind in (
                (self._classes, np.int32),
                (self._crowds, np.int8),
                (self._areas, np.float64),
                (self._ids, np.int64),
            )
        ]
        names, texts = self._names, self._texts
        objects = [
            {
                "label": names[label],
                "box": box,
                "is_crowd": crowd,
                "area": area if area == area else None,  # NaN differs from itself
                "id": name,
            }
            for box, label, crowd, area, name in zip(boxes.tolist(), *columns, strict=True)
        ]
        if texts or self._difficult:
            for number, each in zip(taken.tolist(), objects, strict=True):
                each["id"] = texts.get(number, each["id"])
                if number in self._difficult:  # Not said of others: a fingerprint has all keys.
                    each["difficult"] = 1
        return objects


# What is none of these, the kind of target names.
_FLAGS: Mapping[Any, int] = {None: 0, 0: 0, 1: 1}
