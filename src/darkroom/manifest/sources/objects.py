"""Cells of objects: lists of boxes with labels, in our form or in that of Hugging Face's lists.

Only their form is read here. The kind of target checks labels and boxes, so that each source finds
the same faults.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from darkroom.targets.form import parse_objects

_CATEGORIES = ("categories", "category", "label", "labels")
_FURTHER = {
    "id": "id",
    "area": "area",
    "is_crowd": "is_crowd",
    "iscrowd": "is_crowd",
    "difficult": "difficult",
}


def as_plain(value: Any) -> Any:
    """Returns a cell with lists and numbers of Python in place of arrays and numbers of NumPy."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, Mapping):
        return {str(name): as_plain(inner) for name, inner in value.items()}
    return [*map(as_plain, value)] if isinstance(value, list | tuple) else value


def as_objects(cell: Any) -> Any:
    """Returns a cell of objects as the kind of target takes it; None where nobody looked.

    Args:
        cell: A list of objects, the objects or columns of Hugging Face, what darkroom listed, or
            text of one of these. Anything else stays as it is, and is a fault when it is parsed.
    """
    if isinstance(cell, str):
        with suppress(ValueError):
            cell = parse_objects(cell)
    if cell == "" or (isinstance(cell, float) and cell != cell):
        return None  # pandas writes missing values as NaN
    objects = _list_rows(cell) if isinstance(cell, dict) and "bbox" in cell else cell
    # Ours have a box.
    if not isinstance(objects, list) or (objects is cell and not any(map(_is_theirs, objects))):
        return cell
    frame = {"width": None, "height": None, "orientation": None}
    return {**frame, "objects": [*map(_read_object, objects)]}


def _list_rows(cell: dict[str, Any]) -> Any:
    """Returns the objects of a column for each of their properties; the cell if they differ."""
    columns = {name: cell[name] for name in ("bbox", *_CATEGORIES, *_FURTHER) if name in cell}
    lengths = {len(each) if isinstance(each, list) else -1 for each in columns.values()}
    if len(lengths) > 1 or lengths == {-1}:
        return cell
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]


def _is_theirs(each: Any) -> bool:
    return isinstance(each, dict) and "bbox" in each and "box" not in each


def _read_object(each: Any) -> Any:
    """Returns an object of Hugging Face, whose box is as in COCO: corner and size in pixels."""
    if not isinstance(each, dict):
        return each
    label = next((each[name] for name in _CATEGORIES if name in each), None)
    said = {"label": None if label is None else str(label), "box": make_corners(each.get("bbox"))}
    return said | {ours: each[name] for name, ours in _FURTHER.items() if name in each}


def make_corners(box: Any) -> Any:
    """Returns [xmin, ymin, xmax, ymax] of a box [x, y, width, height]; the box if it is not one."""
    if isinstance(box, list) and len(box) == 4 and all(isinstance(n, int | float) for n in box):
        x, y, width, height = box
        with suppress(OverflowError):  # a whole number that no float holds
            return [x, y, x + width, y + height]
    return box
