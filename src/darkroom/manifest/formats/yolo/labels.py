"""Label files of YOLO: an object a line, as its class and a box, or the corners of a polygon.

All numbers are shares of the image. The number of columns tells the form of a line: five are a box
(class, center x, center y, width, height), and more a polygon (class, x, y, x, y, ...).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from darkroom.errors import DataError, RejectError
from darkroom.manifest.formats.base import find_hull
from darkroom.runtime.text import format_count
from darkroom.targets.form import MAX_OBJECTS

# A polygon of four corners and a turned box are written alike; both give the box around them.
POLYGONS, FOUR_CORNERS = "polygons", "polygons of 4 corners, or turned boxes"
_BOX_COLUMNS, _RESULT_COLUMNS, _FOUR_CORNERS_COLUMNS = 5, 6, 9


def parse_label_file(
    text: str, name: str, classes: Mapping[int, str], counts: Counter[str]
) -> list[dict[str, Any]]:
    """Returns the objects of a label file; one that cannot be used has a `fault`.

    Args:
        text: The file's text.
        name: How messages name the file.
        classes: The names of the classes by number.
        counts: Counts the objects that are not boxes, by form.
    """
    lines = ((number, line.split()) for number, line in enumerate(text.splitlines(), start=1))
    return [
        {"id": f"in line {number} of {name}", **_parse_object(cells, classes, counts)}
        for number, cells in lines
        if cells
    ]


def _parse_object(
    cells: Sequence[str], classes: Mapping[int, str], counts: Counter[str]
) -> dict[str, Any]:
    """Returns label and box of an object; with its fault what of them can be used."""
    if len(cells) < _BOX_COLUMNS or (len(cells) > _BOX_COLUMNS and len(cells) % 2 == 0):
        columns = format_count(len(cells), "column")
        return _fault("bad_box", f"it has {columns}, which is neither a box (5) nor a polygon")
    try:
        number, *shares = map(float, cells)
    except ValueError as error:
        point = ": YOLO has decimal points, no commas" if "," in "".join(cells) else ""
        return _fault("bad_value", f"{error}"[:100] + point)
    # Some tools write 0.0 for 0, which finds the same name.
    said: dict[str, Any] = {"label": classes.get(number)}  # type: ignore[call-overload]
    if said["label"] is None:
        said = _fault("unknown_class", f"class {cells[0]:.40} is not one of the {len(classes)}")
    if min(shares) > 1:
        said |= _fault("outside_image", "YOLO has shares of the width and height, not pixels")
    if len(cells) == _BOX_COLUMNS:
        x, y, width, height = shares
        return {**said, "box": [x - width / 2, y - height / 2, x + width / 2, y + height / 2]}
    try:
        box = find_hull(zip(shares[::2], shares[1::2], strict=True))
    except ValueError as error:
        return said | _fault("bad_box", f"{error}")
    counts[FOUR_CORNERS if len(cells) == _FOUR_CORNERS_COLUMNS else POLYGONS] += 1
    return {**said, "box": box}


def _fault(reason: str, detail: str) -> dict[str, Any]:
    return {"fault": RejectError(reason, detail)}


def decode_labels(data: bytes, _: str) -> str:
    """Returns the text of a label file.

    Raises:
        ValueError: It is not UTF-8, or has more lines than an image may have objects.
    """
    text = data.decode("utf-8-sig")
    if (number := text.count("\n")) > MAX_OBJECTS:
        raise ValueError(f"it has {number:,} lines, and an image at most {MAX_OBJECTS:,} objects")
    return text


def check_is_drawn(text: str, path: str) -> None:
    """Checks by the first line of a label file that it has objects that people drew.

    Raises:
        DataError: It has the results of a detector, or poses.
    """
    columns = next((len(cells) for line in text.splitlines() if (cells := line.split())), 0)
    if columns == _RESULT_COLUMNS:
        raise DataError(
            f"{path} has 6 columns: a box and a confidence. This is what a detector found, not "
            "what is there.",
            "Give the labels that people made. If people corrected these, remove the last column: "
            "cut -d' ' -f1-5.",
        )
    if columns > _BOX_COLUMNS and columns % 2 == 0 and (columns - _BOX_COLUMNS) % 3 == 0:
        raise build_pose_error(path, f"{columns} columns: a box and keypoints")


def build_pose_error(path: str, what: str) -> DataError:
    """Returns the error about labels of poses."""
    return DataError(
        f"{path} has {what}. darkroom reads boxes, and no poses.",
        "To use the boxes alone, keep the first five columns of each label file "
        "(cut -d' ' -f1-5), and remove kpt_shape from data.yaml.",
    )
