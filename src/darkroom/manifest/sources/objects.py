"""Cells of objects: lists of boxes with labels, in our form or in that of Hugging Face's lists.

Only their form is read here. The kind of target checks labels and boxes, so that each source finds
the same faults.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

# The list, an object, its box and the numbers; around them may be the size of the image.
_MAX_DEPTH = 5
_MAX_SHOWN = 80
_CATEGORIES = ("categories", "category", "label", "labels")
_FURTHER = {
    "id": "id",
    "area": "area",
    "is_crowd": "is_crowd",
    "iscrowd": "is_crowd",
    "difficult": "difficult",
}


def as_plain(value: Any, depth: int = _MAX_DEPTH) -> Any:
    """Returns a cell with lists and numbers of Python in place of arrays and numbers of NumPy."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(value, Mapping | list | tuple):
        return value
    if not depth:
        return f"{value!r:.{_MAX_SHOWN}}"  # such as a list that contains itself
    if isinstance(value, Mapping):
        return {str(name): as_plain(inner, depth - 1) for name, inner in value.items()}
    return [as_plain(inner, depth - 1) for inner in value]


def as_objects(cell: Any) -> Any:
    """Returns a cell of objects as the kind of target takes it; None where nobody looked.

    Args:
        cell: A list of objects, the columns of Hugging Face, what darkroom listed, or JSON text of
            one of these. Anything else stays as it is, and is a fault when it is parsed.
    """
    if isinstance(cell, str):
        with suppress(ValueError, RecursionError):
            cell = json.loads(cell)
    if cell == "" or (isinstance(cell, float) and cell != cell):
        return None  # pandas writes missing values as NaN
    return _read_columns(cell) if isinstance(cell, dict) and "bbox" in cell else cell


def _read_columns(cell: dict[str, Any]) -> dict[str, Any]:
    """Returns the objects of a list of Hugging Face: a column for each of their properties.

    Boxes are as in COCO: the corner and the size in pixels. Returns the cell where the columns do
    not go together.
    """
    number = len(cell["bbox"]) if isinstance(cell["bbox"], list) else -1
    names = next((cell[name] for name in _CATEGORIES if name in cell), [None] * max(0, number))
    columns = {"label": names, "box": cell["bbox"]}
    columns |= {ours: cell[name] for name, ours in _FURTHER.items() if name in cell}
    if any(not isinstance(each, list) or len(each) != number for each in columns.values()):
        return cell
    objects = [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
    for each in objects:
        each["label"] = None if each["label"] is None else str(each["label"])
        each["box"] = make_corners(each["box"])
    return {"width": None, "height": None, "orientation": None, "objects": objects}


def make_corners(box: Any) -> Any:
    """Returns [xmin, ymin, xmax, ymax] of a box [x, y, width, height]; the box if it is not one."""
    if isinstance(box, list) and len(box) == 4 and all(isinstance(n, int | float) for n in box):
        x, y, width, height = box
        with suppress(OverflowError):  # a whole number that no float holds
            return [x, y, x + width, y + height]
    return box
