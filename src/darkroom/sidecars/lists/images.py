"""The images of a list of objects, each as a form of lists writes it."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from darkroom.dataset.splits import list_below
from darkroom.targets.boxes.object_type import FIELDS, SIDES

# A list has no more of them: floats of 64 bits end here.
_MOST_DECIMALS = 18
# By so much, as a share, areas of lists differ from those of their boxes where these are meant.
_SAME_AREA = 1e-3

_Numbers = np.ndarray[Any, Any]
_Read = Callable[[_Numbers, _Numbers], _Numbers]


class Unsaid:
    """What a form may have no word for."""

    UNKNOWN = "unknown"
    CROWDS = "crowds"
    DIFFICULT = "difficult"
    AREAS = "areas"
    IDS = "ids"


class ListedObject(NamedTuple):
    """An object of a list.

    Attributes:
        label: Its class.
        box: Four numbers, as the form has them.
        area: In pixels of the image.
        is_crowd: Whether it is a crowd.
        difficult: Whether it is difficult.
        id: The id that the list of the dataset had for it; empty for none.
    """

    label: str
    box: list[float]
    area: float
    is_crowd: bool
    difficult: bool
    id: str


class ListedImage(NamedTuple):
    """An image of a list.

    Attributes:
        path: Where it is, as seen from the list: a path or a URI.
        name: Its name, which no other image of its folder has: a path without an ending.
        split: Its split, as lists call it.
        number: The number by which evaluations find it, its `image/source_id`.
        width: Its width in pixels, upright.
        height: Its height.
        objects: Its objects; None where nobody looked.
    """

    path: str
    name: str
    split: str
    number: int
    width: int
    height: int
    objects: list[ListedObject] | None


class ListForm(NamedTuple):
    """A form of lists.

    Attributes:
        images: Where images are that are written with the list; `{split}` is their split.
        needs_images: Whether a list has no place for images elsewhere.
        number: Returns the numbers of its classes, of the label map and of the ids that classes
            have in a source of COCO, by these.
        spell: Returns boxes of the form of corners in shares of their images; the other argument
            has width, height, width and height of the image of each in pixels.
        read: Returns the corners again.
        unsaid: What it has no word for. Crowds, and images where nobody looked, are left out
            where it has none for them.
        build: Returns the files of a list, their paths and their bytes, of images and the numbers
            of all classes; it adds to the counts of what it does not say.
    """

    images: str
    needs_images: bool
    number: Callable[[Sequence[str], Mapping[str, str]], dict[str, int]]
    spell: _Read
    read: _Read
    unsaid: frozenset[str]
    build: Callable[
        [Iterable[ListedImage], Mapping[str, int], Counter[str]], Iterator[tuple[str, bytes]]
    ]


def spell_images(table: pa.Table, form: ListForm, unsaid: Counter[str]) -> Iterator[ListedImage]:
    """Yields images with what a form can say of them.

    Args:
        table: A row for each image. As an index has them: `source_id`, `label`, which may have the
            objects that a model found, and `listed` or nothing. As `ListedImage` has them: `path`,
            `name`, `split`, `width`, `height`. By `growth`, areas are larger than in `label`.
        form: The form.
        unsaid: Counts what it does not say.
    """
    labels = table["label"].combine_chunks()
    objects = _list_objects(table, labels, form, unsaid)
    names = ("path", "name", "split", "source_id", "width", "height")
    columns = [table[name].to_pylist() for name in names]
    for length, *image in zip(pc.list_value_length(labels).to_pylist(), *columns, strict=True):
        # Each takes its own, also if it is left out.
        found = [next(objects) for _ in range(length or 0)]
        if Unsaid.CROWDS in form.unsaid:
            found = [each for each in found if not each.is_crowd]
        if length is not None or Unsaid.UNKNOWN not in form.unsaid:
            yield ListedImage._make((*image, None if length is None else found))


def _list_objects(
    table: pa.Table, labels: pa.ListArray, form: ListForm, unsaid: Counter[str]
) -> Iterator[ListedObject]:
    """Returns the objects of all images, after what the form does not say was counted."""
    found = labels.flatten()
    column = {name: found.field(name) for name in FIELDS}
    rows = pc.list_parent_indices(labels).to_numpy()
    corners = np.stack([column[side].to_numpy() for side in SIDES], axis=1)
    width, height = (table[name].to_numpy()[rows] for name in ("width", "height"))
    sides = np.stack([width, height, width, height], axis=1).astype(np.float64)
    boxes = spell_shortly(form.spell(corners.astype(np.float64), sides), form.read, corners, sides)
    areas, growth = column["area"].to_numpy()[:, None], table["growth"].to_numpy()[rows, None]
    listed = table["listed"].combine_chunks() if "listed" in table.column_names else None
    ids = [""] * len(found) if listed is None else _list_ids(listed)
    own = (sides[:, :2] * (corners[:, 2:] - corners[:, :2])).prod(axis=1, keepdims=True)
    counts = {
        Unsaid.CROWDS: pc.sum(column["is_crowd"]).as_py() or 0,
        Unsaid.DIFFICULT: pc.sum(column["difficult"]).as_py() or 0,
        Unsaid.AREAS: int((np.abs(areas * growth - own) > _SAME_AREA * own).sum()),
        Unsaid.IDS: sum(map(bool, ids)),
        Unsaid.UNKNOWN: labels.null_count,
    }
    unsaid.update({name: count for name, count in counts.items() if name in form.unsaid})
    flags = (column[name].to_pylist() for name in ("is_crowd", "difficult"))
    shown = spell_shortly(areas * growth, np.divide, areas, growth)[:, 0].tolist()
    said = zip(column["label"].to_pylist(), boxes.tolist(), shown, *flags, ids, strict=True)
    return map(ListedObject._make, said)


def _list_ids(listed: pa.StructArray) -> list[str]:
    objects = listed.field("objects").filter(listed.is_valid())
    return [each or "" for each in objects.flatten().field("id").to_pylist()]


def spell_shortly(values: _Numbers, read: _Read, wanted: _Numbers, of: _Numbers) -> _Numbers:
    """Returns values with as few decimals as give the same floats of 32 bits when they are read.

    A record has such floats, so 30 pixels of 80 would be 30.000001 of a list.

    Args:
        values: [N, M].
        read: Makes the floats of values.
        wanted: The floats.
        of: The other argument of `read`, a row for each.
    """
    found, left = values.copy(), np.arange(len(values))
    for decimals in range(_MOST_DECIMALS):
        rounded = values[left].round(decimals)
        is_same = (read(rounded, of[left]).astype(np.float32) == wanted[left]).all(axis=1)
        found[left[is_same]] = rounded[is_same]
        left = left[~is_same]
    return found


def number_lines(labels: Sequence[str], ids: Mapping[str, str]) -> dict[str, int]:
    """Returns the numbers of classes as lines of the label map, from 0."""
    return {label: number for number, label in enumerate(labels)}


def name_uniquely(folders: Sequence[str], paths: Sequence[str], keys: Sequence[str]) -> list[str]:
    """Returns a name for each image, which no other one in its folder has.

    It is its path without ending, below what all images of the folder have in common, with its key
    if that was taken.

    Args:
        folders: The folders of the list that they are written to.
        paths: Their paths in the source.
        keys: Their keys.
    """
    names = [""] * len(paths)
    order = sorted(range(len(paths)), key=folders.__getitem__)
    for _, group in groupby(order, folders.__getitem__):
        places, taken = [*group], set[str]()
        for place, path in zip(places, list_below([paths[each] for each in places]), strict=True):
            # No name leaves the folder of the list, whatever an index says.
            parts = posixpath.splitext(path)[0].split("/")
            name = "/".join(part for part in parts if part not in ("", ".", "..")) or keys[place]
            names[place] = f"{name}-{keys[place]}" if name in taken else name
            taken.add(names[place])
    return names
