"""Boxes of objects, each with a class: in pixels of a list, and as shares of a stored image.

A list says objects as {"label", "box": [xmin, ymin, xmax, ymax]}, with `is_crowd`, `difficult`,
`area` and `id` if it has them. The empty list says that somebody looked, and nothing is there.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from darkroom.errors import RejectError
from darkroom.targets.arrays import Objects, join_images
from darkroom.targets.boxes.arrays import BoxTargets, find_wrong_boxes, follow_boxes
from darkroom.targets.boxes.frame import NO_AREA, Box, Frame, find_frame
from darkroom.targets.boxes.measures import COUNT, SIDE, measure_objects
from darkroom.targets.boxes.object_type import FIELDS, FLAGS, SIDES
from darkroom.targets.boxes.queries import CHANGES, DIFFERS, SAID, SUMMARY, TOLD
from darkroom.targets.description import Filter, Shape
from darkroom.targets.form import (
    MAX_OBJECTS,
    NONE_OF_THESE,
    ORIENTATIONS,
    REJECT_EMPTY,
    UPRIGHT,
    Form,
    as_text,
    parse_objects,
)
from darkroom.targets.geometry import Matrix, Placement
from darkroom.targets.kind import MAX_KNOWN, Lost, Parsed, Placed, TargetKind, find_memory
from darkroom.targets.label.kind import parse_label

# The keys of TensorFlow's Object Detection API, which Model Garden, TFDS and KerasHub read.
XMIN, YMIN, XMAX, YMAX = CORNERS = (
    "image/object/bbox/xmin",
    "image/object/bbox/ymin",
    "image/object/bbox/xmax",
    "image/object/bbox/ymax",
)
OBJECT_NUMBER = "image/object/class/label"
OBJECT_TEXT = "image/object/class/text"
IS_CROWD = "image/object/is_crowd"
DIFFICULT = "image/object/difficult"
AREA = "image/object/area"
# A list without values and a list that is absent look the same to a reader of records.
OBJECTS_KNOWN = "image/object/annotated"
# In records, 0 is the background.
FIRST_NUMBER = 1

_LISTED_OBJECT = pa.struct(
    [
        ("label", pa.string()),
        ("box", pa.list_(pa.float64())),
        ("is_crowd", pa.bool_()),
        ("difficult", pa.bool_()),
        ("area", pa.float64()),
        ("id", pa.string()),
    ]
)
# No image has so many pixels. Records have floats of 32 bits, which hold it.
_LARGE = 1e18
_FLOAT, _LISTS = {float}, (list, tuple)
_MAX_ID_CHARACTERS = 200
_IN_SHARES = "is within the first pixel: multiply shares by the width and the height of the image"
_NO_AREA = "has no finite area as [xmin, ymin, xmax, ymax]"
_IS_SIZED = ", and looks like [x, y, width, height]"
_SAID = (("is_crowd", "crowd"), ("difficult", "difficult"))
# Also as tools of Pascal VOC write it; unspecified is its default.
_FLAGS: Mapping[Any, bool] = {
    **dict.fromkeys((None, 0, "0", "false", "False", "Unspecified", "unspecified"), False),
    **dict.fromkeys((1, "1", "true", "True"), True),
}


class BoxesKind(TargetKind):
    """See `darkroom.targets.kind.TargetKind`; the value is a list of objects.

    In a manifest it is a dict of them and of the image that their places are in: `width` and
    `height` in pixels, 1 for shares and None for those of the image itself, and `orientation`:
    `upright`, `stored` (as the file has its pixels), or None where that is not known. It has
    `image_id` where the list has an id for the image. The objects are None where the list says
    only what the image is.
    """

    name = "boxes"
    version = 2
    column = pa.list_(pa.struct([pa.field(*each) for each in FIELDS.items()]))
    listed = pa.struct(
        [
            ("width", pa.float64()),
            ("height", pa.float64()),
            ("orientation", pa.string()),
            ("image_id", pa.string()),
            ("objects", pa.list_(_LISTED_OBJECT)),
        ]
    )
    features: Mapping[str, str] = {
        **dict.fromkeys(CORNERS, "float"),
        OBJECT_NUMBER: "int64",
        OBJECT_TEXT: "bytes",
        IS_CROWD: "int64",
        DIFFICULT: "int64",
        AREA: "float",
        OBJECTS_KNOWN: "int64",
    }
    shown = OBJECT_TEXT
    moves = True
    is_learned = False
    says = "concat_ws(' ', label.width, label.height, label.orientation)"
    joined = (
        "struct_pack(width := any_value(label.width), height := any_value(label.height), "
        "orientation := any_value(label.orientation), image_id := min(label.image_id), "
        "objects := flatten(list(label.objects ORDER BY row)))"
    )
    # As `place` compares them. A corner is sometimes a sum.
    parts = (
        "[row(o.label, [round(corner, 6) for corner in o.box], o.is_crowd, o.difficult) "
        "for o in {column}.objects]"
    )
    objects = "{column}.objects"
    image_id = "{column}.image_id"
    identified = (
        "struct_pack(width := label.width, height := label.height, "
        "orientation := label.orientation, image_id := {image_id}, objects := label.objects)"
    )
    # An image that is not annotated has one row, without a name.
    names = "unnest(coalesce(list_distinct([each.label for each in {column}]), [NULL]))"
    summary = SUMMARY
    changes = CHANGES
    differs = DIFFERS
    told = TOLD
    said = SAID
    lists = tuple(name for name in features if name != OBJECTS_KNOWN)
    filters = (
        Filter(COUNT, "Objects", "objects of an image"),
        Filter(SIDE, "Smallest object", "side in pixels: the root of its area"),
    )

    def parse(self, columns: Sequence[Sequence[Any]], form: Form) -> Parsed:
        """Returns the objects of lists, of dicts with them, or of either as JSON."""
        values, faults, lost, names = [], {}, {}, find_memory(self.name, form)
        for place, cell in enumerate(columns[0]):
            try:
                value, some = self._parse_cell(cell, form, names)
                values.append(value)
                if some:
                    lost[place] = some
            except RejectError as error:  # noqa: PERF203  each row by itself
                faults[place] = error
        return Parsed(values, faults, lost)

    def _parse_cell(
        self, cell: Any, form: Form, names: dict[str, str]
    ) -> tuple[Any, Sequence[Lost]]:
        """Returns the objects of a list, of a dict with them, or of either as JSON."""
        cell = cell if isinstance(cell, list | dict) else as_text(cell)
        said = _read(cell, form)
        if said is None:
            return None, ()
        frame = _parse_frame(said, form)
        if said["objects"] is None:
            return {**frame, "objects": None}, ()
        is_in_pixels = frame["width"] != 1 or frame["height"] != 1
        objects: list[dict[str, Any]] = []
        lost: list[Lost] = []
        for number, each in enumerate(said["objects"], start=1):
            try:
                found = _parse_object(each, form, names)
                if is_in_pixels and found["box"][2] <= 1 and found["box"][3] <= 1:
                    raise RejectError("bad_box", f"the box {found['box']} {_IN_SHARES}")
                objects.append(found)
            except RejectError as error:  # noqa: PERF203  each object by itself
                detail = f"{_name_object(each, number)}: {error}"
                fault = RejectError(error.reason, detail)
                lost.append(Lost({**frame, "objects": [each]}, fault))
        return {**frame, "objects": objects}, lost

    def list_names(self, values: pa.ListArray) -> pa.ListArray:
        """Returns the classes of the objects of each image, each once."""
        names = values.flatten().field("label").dictionary_encode()
        rows = pc.list_parent_indices(values).to_numpy()
        size = max(1, len(names.dictionary))
        found = np.unique(rows * size + names.indices.to_numpy(zero_copy_only=False))
        ends = np.searchsorted(found, np.arange(len(values) + 1) * size).astype(np.int32)
        # An offset that is null makes its list null.
        is_null = np.append(values.is_null().to_numpy(zero_copy_only=False), False)
        offsets = pa.array(ends, pa.int32(), mask=is_null)
        return pa.ListArray.from_arrays(offsets, names.dictionary.take(pa.array(found % size)))

    def measure(self, rows: pa.Table) -> Mapping[str, pa.Array]:
        """Returns the classes of the objects, and how many and how large they are."""
        labels = rows["label"].combine_chunks()
        names = labels.flatten().field("label")
        return {self.shown: join_images(labels, names), **measure_objects(rows)}

    def list_shapes(self, value: Any, names: Sequence[str]) -> list[Shape]:
        """Returns the boxes, each with the color of its class."""
        tones = {name: number for number, name in enumerate(names)}
        return [
            Shape(
                _say(each),
                each["xmin"],
                each["ymin"],
                each["xmax"],
                each["ymax"],
                tones.get(each["label"], 0),
            )
            for each in value or ()
        ]

    def number(self, values: pa.Array, label_map: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Returns the objects as they are, and the numbers of their names, from 0."""
        objects = _take_field(values, "objects") if pa.types.is_struct(values.type) else values
        names = _take_field(objects.flatten(), "label")
        numbers = pc.index_in(names, label_map).cast(pa.int64())
        return values, join_images(objects, numbers)

    def count(self, value: Any) -> int:
        """Returns the number of objects, also where they are JSON or cannot be used."""
        if isinstance(value, str):
            try:
                value = parse_objects(value)
            except ValueError:
                return 0
        found = value.get("objects") if isinstance(value, dict) else value
        return len(found) if isinstance(found, list) else 0

    def place(self, value: Any, numbers: Any, image: Placement) -> Placed:
        """Returns the objects as shares of the stored image."""
        if value is None or value["objects"] is None:
            return Placed(None, None, value)
        objects = value["objects"]
        if not numbers:
            return Placed({name: [] for name in FIELDS}, [], value)  # whichever way up the image is
        frame = find_frame(value["width"], value["height"], value["orientation"], image)
        boxes, reasons, cut = frame.place(objects["box"])
        lost = [_lose(value, place, reason, frame) for place, reason in reasons.items()]
        merged = 0
        if reasons or len({*boxes}) < len(boxes):
            # Those inside the image, and of equal ones the first.
            same = zip(boxes, numbers, *map(objects.get, FLAGS), strict=True)
            first = {each: place for place, each in reversed([*enumerate(same)])}
            kept = sorted({*first.values()} - reasons.keys())
            merged = len(boxes) - len(kept) - len(lost)
            boxes, numbers = _take(boxes, kept), _take(numbers, kept)
            objects = {name: _take(each, kept) for name, each in objects.items()}
            value = {**value, "objects": objects}
        return Placed(_make_objects(objects, boxes, frame), numbers, value, lost, merged, cut)

    def encode(self, value: Any, numbers: Any) -> dict[str, Any]:
        """Returns a list for each property of the objects, and whether they are known."""
        if not numbers:
            return {OBJECTS_KNOWN: int(value is not None)}
        return {
            **{name: value[side] for name, side in zip(CORNERS, SIDES, strict=True)},
            OBJECT_NUMBER: [number + FIRST_NUMBER for number in numbers],
            OBJECT_TEXT: [*map(str.encode, value["label"])],
            IS_CROWD: value["is_crowd"],
            DIFFICULT: value["difficult"],
            AREA: value["area"],
            OBJECTS_KNOWN: 1,
        }

    def make_array(self, numbers: Sequence[Any], size: int) -> np.ndarray[Any, Any]:
        """Raises TypeError: boxes are several arrays."""
        raise TypeError("boxes are several arrays")

    def hold(
        self, values: pa.Array, numbers: pa.Array, size: int, sides: tuple[Any, Any]
    ) -> BoxTargets:
        """Returns the objects of many records, as `BoxTargets` describes them."""
        return BoxTargets(values, numbers, *sides)

    def follow(self, targets: Any, matrix: Matrix, size: tuple[Any, Any], options: Any) -> Objects:
        """Returns the objects that views show, with labels from `first_label` on."""
        return follow_boxes(targets, matrix, size, options.min_visible, options.first_label)

    def find_wrong(self, column: pa.Array) -> int:
        """Returns the first row with a box that is not inside its image."""
        return find_wrong_boxes(column)

    def decode(self, features: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]] | None:
        """Returns the objects of a record."""
        if not features.get(OBJECTS_KNOWN, [0])[0]:
            return None
        names = (OBJECT_TEXT, *CORNERS, IS_CROWD, DIFFICULT, AREA)
        columns = [features.get(name, ()) for name in names]
        return [
            {
                "label": text.decode(),
                **dict(zip(SIDES, corners, strict=True)),
                "is_crowd": bool(is_crowd),
                "difficult": bool(difficult),
                "area": area,
            }
            for text, *corners, is_crowd, difficult, area in zip(*columns, strict=True)
        ]

    def show(self, value: Any) -> str:
        """Returns how many objects of each class there are."""
        if value is None:
            return ""
        counts = Counter(each["label"] for each in value)
        return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "(none)"


def _lose(value: Mapping[str, Any], place: int, reason: str, frame: Frame) -> Lost:
    """Returns the object of an image at a place of its list, which is not in the image."""
    each = {name: values[place] for name, values in value["objects"].items()}
    detail = f"{_name_object(each, None)}: {_explain(reason, each['box'], frame)}"
    return Lost({**value, "objects": [each]}, RejectError(reason, detail))


def _make_objects(
    objects: Mapping[str, Any], boxes: Sequence[Box], frame: Frame
) -> dict[str, Sequence[Any]]:
    """Returns objects of a list as an index has them, with boxes in shares of the image.

    Their area is that of the box, where the list does not say it: readers of records need one.
    """
    units, factor = frame.num_units, frame.area_factor
    areas = [
        ((xmax - xmin) * (ymax - ymin) * units if area is None else area) * factor
        for area, (xmin, ymin, xmax, ymax) in zip(objects["area"], boxes, strict=True)
    ]
    sides = map(list, zip(*boxes, strict=True)) if boxes else repeat([])
    return {**objects, **dict(zip(SIDES, sides, strict=False)), "area": areas}


def _take(values: Sequence[Any], places: Sequence[int]) -> list[Any]:
    return [values[place] for place in places]


def _take_field(values: pa.StructArray, name: str) -> pa.Array:
    """Returns a field of structs, which is null where they are."""
    return values.flatten()[values.type.get_field_index(name)]


def _say(each: Mapping[str, Any]) -> str:
    """Returns the class of an object, and what else is said of it."""
    return " ".join((each["label"], *(f"({word})" for name, word in _SAID if each[name])))


def _read(cell: Any, form: Form) -> dict[str, Any] | None:
    """Returns what a cell says as a dict with a list of objects, which is None if nobody looked.

    None if it says nothing of the image either.

    Raises:
        RejectError: It says something else, or is empty and may not be.
    """
    if isinstance(cell, str):
        try:
            cell = parse_objects(cell) if cell.strip() else None
        except ValueError as error:
            raise RejectError("bad_value", f"the objects are not JSON: {error}") from None
    if isinstance(cell, list):
        # Our own form is in pixels of the image as people see it.
        cell = {"objects": cell, "orientation": form.orientation or UPRIGHT}
    if cell is None or (isinstance(cell, dict) and cell.get("objects", cell) is None):
        if form.empty == REJECT_EMPTY:
            raise RejectError("empty_label", "the cell of the objects is empty")
        return {**(cell or {}), "objects": []} if form.empty == NONE_OF_THESE else cell
    if not isinstance(cell, dict) or not isinstance(cell.get("objects"), list):
        raise RejectError("bad_value", f"expected a list of objects, got {cell!r:.80}")
    if (number := len(cell["objects"])) > MAX_OBJECTS:
        problem = f"it has {number:,} objects, and an image at most {MAX_OBJECTS:,}"
        raise RejectError("bad_annotation", problem)
    return cell


def _parse_frame(said: Mapping[str, Any], form: Form) -> dict[str, Any]:
    """Returns the image in which a row says its places, and its id; see `BoxesKind`.

    Raises:
        RejectError: It has no size that an image can have.
    """
    sides = [said.get("width"), said.get("height")]
    orientation = said.get("orientation") or form.orientation
    found = [None if side is None else _parse_number(side, "a side of the image") for side in sides]
    if (found[0] is None) != (found[1] is None) or any(
        side is not None and side <= 0 for side in found
    ):
        raise RejectError("bad_value", f"the image cannot be {sides[0]!r:.20} x {sides[1]!r:.20}")
    if orientation not in (None, *ORIENTATIONS):
        raise RejectError("bad_value", f"the orientation cannot be {orientation!r:.40}")
    frame = {"width": found[0], "height": found[1], "orientation": orientation}
    name = said.get("image_id")
    return frame if name is None else {**frame, "image_id": _parse_id(name)}


def _parse_name(label: Any, form: Form, names: dict[str, str]) -> str:
    """Returns the name of a class, which is kept in `names` by its text.

    Raises:
        RejectError: It is not one; see `parse_label`.
    """
    if not isinstance(label, str | int | float | None):
        raise RejectError("bad_label", f"the label is {label!r:.80}, expected text")
    if (text := str(label)) not in names:
        name = parse_label(text, form)
        if len(names) >= MAX_KNOWN:
            return name
        names[text] = name
    return names[text]


def _parse_object(each: Any, form: Form, names: dict[str, str]) -> dict[str, Any]:
    """Returns an object as a manifest has it.

    Args:
        each: As the list says it.
        form: How it holds it.
        names: The names that are known, which are added to.

    Raises:
        RejectError: It cannot be used.
    """
    if not isinstance(each, dict):
        raise RejectError("bad_value", f"expected an object with label and box, got {each!r:.80}")
    get = each.get
    if isinstance(fault := get("fault"), RejectError):  # The reader of a format says so.
        raise fault
    label, box, area, name = get("label"), get("box"), get("area"), get("id")
    if label is None:
        raise RejectError("empty_label", f"it has no label; its keys are {[*each]!r:.80}")
    if box is None:
        raise RejectError("bad_box", f"it has no box; its keys are {[*each]!r:.80}")
    known = names.get(label) if type(label) is str else None
    return {
        "label": known or _parse_name(label, form, names),
        "box": _parse_box(box),
        "is_crowd": _parse_flag(each, "is_crowd") if "is_crowd" in each else False,
        "difficult": _parse_flag(each, "difficult") if "difficult" in each else False,
        "area": None if area is None else _parse_number(area, "the area"),
        "id": None if name is None else _parse_id(name),
    }


def _parse_id(name: Any) -> str:
    """Returns the text of an id; what UTF-8 does not have is escaped."""
    # pandas makes a float of a whole number.
    is_whole = isinstance(name, float) and name.is_integer()
    text = str(int(name) if is_whole else name)[:_MAX_ID_CHARACTERS]
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def _parse_box(box: Any) -> list[float]:
    """Returns (xmin, ymin, xmax, ymax).

    Raises:
        RejectError: They are not the corners of a box.
    """
    if not isinstance(box, _LISTS) or len(box) != 4:
        raise RejectError("bad_box", f"box is not [xmin, ymin, xmax, ymax]: {box!r:.80}")
    are_floats = {*map(type, box)} == _FLOAT
    corners = [*box] if are_floats else [_parse_number(each, "a corner") for each in box]
    xmin, ymin, xmax, ymax = corners
    if not (-_LARGE < xmin < xmax < _LARGE and -_LARGE < ymin < ymax < _LARGE):
        looks = _IS_SIZED if 0 < xmax < xmin or 0 < ymax < ymin else ""
        raise RejectError("bad_box", f"the box {[*box]!r:.80} {_NO_AREA}{looks}")
    return corners


def _parse_number(value: Any, what: str) -> float:
    """Returns a finite number, which may be text.

    Raises:
        RejectError: It is none.
    """
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not -_LARGE < number < _LARGE:
        raise RejectError("bad_box", f"{what} is {value!r:.40}, expected a finite number")
    return number


def _parse_flag(each: Mapping[str, Any], name: str) -> bool:
    value = each.get(name)
    try:
        return _FLAGS[value]
    except (KeyError, TypeError):
        raise RejectError("bad_value", f"{name} is {value!r:.40}, expected 0 or 1") from None


def _name_object(each: Any, number: int | None) -> str:
    """Returns how a message names an object: by its id, else by its number in the row."""
    name = each.get("id") if isinstance(each, dict) else None
    if name is not None:
        return f"object {name!s:.80}"
    label = each.get("label") if isinstance(each, dict) else None
    return f"object {number}" if number else f"a {label!s:.80}"


def _explain(reason: str, box: Sequence[float], frame: Frame) -> str:
    """Returns why a box is not in its record."""
    if reason == NO_AREA:
        return f"the box {[*box]} has no area in records, whose floats have 32 bits"
    shown = ", ".join(f"{value:g}" for value in box)
    text = f"the box [{shown}] is not inside the image of {frame.width:g} x {frame.height:g}"
    if min(box) >= 0 and box[3] <= frame.width and box[2] <= frame.height:
        text += ", and would be if x and y were swapped"
    return text


KIND = BoxesKind()
