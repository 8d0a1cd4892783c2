"""COCO: a file for each split, with images, annotations and categories."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from darkroom.dataset.labels import normalise_label
from darkroom.sidecars.lists.images import ListedImage, ListedObject, ListForm, Unsaid

_encode = msgspec.json.encode


class _Split:
    """What a file has: its images, and its annotations with their ids."""

    def __init__(self) -> None:
        self.images: list[bytes] = []
        self.objects: list[bytes] = []
        self.ids: list[str] = []

    def format(self, categories: bytes, unsaid: Counter[str]) -> bytes:
        """Returns the file; ids of a list are kept if each is a whole number of its own."""
        # An evaluation takes the id 0 for none.
        are_numbers = all(each.isdecimal() and each[0] != "0" for each in self.ids)
        if not are_numbers or len({*self.ids}) < len(self.ids):
            unsaid[Unsaid.IDS] += sum(map(bool, self.ids))
            self.ids = [*map(str, range(1, len(self.ids) + 1))]
        pairs = zip(self.ids, self.objects, strict=True)
        objects = (b'{"id":%s,%s' % (name.encode(), each[1:]) for name, each in pairs)
        arrays = {b"images": self.images, b"annotations": objects}
        parts = [b'"%s":[\n%s\n]' % (name, b",\n".join(v)) for name, v in arrays.items()]
        # Roboflow's upload asks for all of these.
        head = b'"info":{},"licenses":[],"categories":%s' % categories
        return b"{%s}\n" % b",\n".join([head, *parts])


def _number(labels: Sequence[str], ids: Mapping[str, str]) -> dict[str, int]:
    known = {normalise_label(name): int(each) for each, name in ids.items() if each.isdecimal()}
    if all(label in known for label in labels):
        return {label: known[label] for label in labels}
    # 0 is the background.
    return {label: number for number, label in enumerate(labels, 1)}


def _build(
    images: Iterable[ListedImage], numbers: Mapping[str, int], unsaid: Counter[str]
) -> Iterator[tuple[str, bytes]]:
    categories = [{"id": number, "name": label} for label, number in numbers.items()]
    splits: defaultdict[str, _Split] = defaultdict(_Split)
    for image in images:
        split = splits[image.split]
        head = {"id": image.number, "file_name": image.path}
        split.images.append(_encode({**head, "width": image.width, "height": image.height}))
        for each in image.objects or ():
            split.objects.append(_encode(_format_object(each, image.number, numbers[each.label])))
            split.ids.append(each.id)
    for name, split in splits.items():
        yield f"instances_{name}.json", split.format(_encode(categories), unsaid)


def _format_object(each: ListedObject, image: int, category: int) -> dict[str, Any]:
    said = {
        "image_id": image,
        "category_id": category,
        "bbox": each.box,
        "area": each.area,
        "iscrowd": int(each.is_crowd),
        "segmentation": [],
    }
    # As datumaro has it, by which CVAT reads and writes.
    return {**said, "attributes": {"difficult": True}} if each.difficult else said


def _spell(corners: np.ndarray[Any, Any], sides: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    pixels: np.ndarray[Any, Any] = corners * sides
    pixels[:, 2:] -= pixels[:, :2]
    return pixels


def _read(boxes: np.ndarray[Any, Any], sides: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    corners = boxes.copy()
    corners[:, 2:] += corners[:, :2]
    shares: np.ndarray[Any, Any] = corners / sides
    return shares


COCO = ListForm(
    "images/{split}", False, _number, _spell, _read, frozenset((Unsaid.UNKNOWN,)), _build
)
