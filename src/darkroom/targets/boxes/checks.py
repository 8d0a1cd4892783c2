"""Checks for boxes: their sizes, those that are there twice, and images without any."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from darkroom.targets.boxes.queries import OBJECTS
from darkroom.targets.checks import Found, TargetCheck

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

# A side of a box that nothing can be seen in, in pixels of the stored image.
TINY_PIXELS = 3
# Share of the image from which a box says no more than a label.
HUGE_SHARE = 0.99
# How much of two boxes is in both (intersection over union): more than one hand draws twice.
TWIN_IOU, CROSSED_IOU = 0.95, 0.9
# Share of the annotated images of a split.
EMPTY_SHARE = 0.5

_SIZE = "printf('%.0f x %.0f pixels', across, down)"
_TINY = f"""{OBJECTS}
SELECT row, uri, split, label, object, {_SIZE} AS detail FROM objects
WHERE least(across, down) < {TINY_PIXELS} ORDER BY least(across, down), row, number
"""
_HUGE = f"""{OBJECTS}
SELECT row, uri, split, label, object, {_SIZE} AS detail FROM objects
WHERE (xmax - xmin) * (ymax - ymin) >= {HUGE_SHARE} AND NOT is_crowd ORDER BY row, number
"""
# Objects that were lost as outside, as the list says them.
_LISTED = """
SELECT row, uri, split, detail, from_json(target, '{"width": "DOUBLE", "height": "DOUBLE",
    "objects": [{"label": "VARCHAR", "box": ["DOUBLE"]}]}') AS meant
FROM lost WHERE reason = 'outside_image'
"""
# With the record that lacks the object, and where it would be in that, in shares. Not of images
# that were turned: the list may mean the pixels of the file.
_OUTSIDE = f"""
SELECT row, uri, split, label, detail, CASE WHEN NOT is_turned THEN
    [box[1] / across, box[2] / down, box[3] / across, box[4] / down] END AS box
FROM (
    SELECT coalesce(records.row, listed.row) AS row, uri, listed.split AS split,
        meant.objects[1].label AS label, detail, meant.objects[1].box AS box,
        coalesce(meant.width, source_width) AS across,
        coalesce(meant.height, source_height) AS down,
        list_contains(string_split(changes, ','), 'orientation') AS is_turned
    FROM ({_LISTED}) AS listed LEFT JOIN records USING (uri)
) ORDER BY row, detail
"""
# All boxes of the list, in pixels of their images, and those that were lost as outside.
_PLACED = f"""
WITH sized AS (
    SELECT uri, regexp_replace(uri, '[^/]*$', '') AS folder, split, label_list,
        source_width AS width, source_height AS height,
        source_width * source_height / (records.width * records.height) AS enlarged
    FROM records
), listed AS (
{_LISTED})
SELECT NULL::VARCHAR AS file, folder, split, 1 AS unit, width, height, [{{
    'label': each.label, 'area': each.area * enlarged,
    'box': [each.xmin * width, each.ymin * height, each.xmax * width, each.ymax * height]
}} FOR each IN label_list] AS objects FROM sized
UNION ALL
SELECT NULL, folder, split, 1, width, height, [{{
    'label': each.label, 'area': NULL,
    'box': [each.box[1] * across, each.box[2] * down, each.box[3] * across, each.box[4] * down]
}} FOR each IN meant.objects]
FROM (
    SELECT sized.*, meant, width / coalesce(meant.width, width) AS across,
        height / coalesce(meant.height, height) AS down
    FROM sized JOIN listed USING (uri)
)
"""
_PARTIAL = """
SELECT any_value(records.row) AS row, uri, any_value(records.split) AS split,
    any_value(records.label) AS label, printf('%d of %d objects are lost', count(*),
    count(*) + any_value(len(label_list))) AS detail
FROM lost JOIN records USING (uri) GROUP BY uri ORDER BY row
"""
_EMPTY = f"""
SELECT split, count(*) AS records, count(*) FILTER (len(label_list) = 0) AS empty
FROM records WHERE label_list IS NOT NULL GROUP BY split
HAVING empty > {EMPTY_SHARE} * records ORDER BY split
"""

# A box is compared with so many others, whose left sides are next to its own.
_MAX_COMPARED = 100
_NOT_ALL = f"Each box was compared with the {_MAX_COMPARED} that begin next to it."
_OWN_ERRORS = "The first ones are the likeliest; many are errors of the detector."


def _find_odd(connection: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """Finds groups of boxes that a tool wrote wrongly."""
    from darkroom.targets.boxes.odd_boxes import find_odd_groups

    return [
        {"boxes": each.boxes, "detail": f"{each}"} for each in find_odd_groups(connection, _PLACED)
    ]


def _find_overlaps(rows: pa.Table, least: float, same_class: bool) -> Found:
    """Finds pairs of boxes of an image with more than a share in common."""
    # Whoever lists the checks needs no NumPy.
    from darkroom.targets.boxes.overlaps import find_overlaps

    return find_overlaps(rows, least, _MAX_COMPARED, same_class=same_class)


CHECKS = (
    TargetCheck(
        "tiny_boxes",
        "warn",
        "Boxes of a few pixels",
        _TINY,
        f"Boxes with a side of less than {TINY_PIXELS} pixels: {{count:,}}.",
        "Nothing can be seen in them. Look whether a click became a box, and delete it.",
    ),
    TargetCheck(
        "huge_boxes",
        "warn",
        "Boxes of whole images",
        _HUGE,
        f"Boxes that cover {HUGE_SHARE:.0%} of their image or more: {{count:,}}.",
        "Such a box says what a label says. Draw it around the object, or leave it out.",
    ),
    TargetCheck(
        "outside_boxes",
        "warn",
        "Boxes outside their images",
        _OUTSIDE,
        "Boxes that were rejected because they are outside their image: {count:,}.",
        "Often the boxes are of an image in another size, or before a turn, or x and y are "
        "swapped. See rejects.jsonl.",
    ),
    TargetCheck(
        "odd_boxes",
        "warn",
        "Groups of boxes that a tool wrote wrongly",
        "",
        "Groups of boxes that a tool probably wrote wrongly: {count:,}.",
        "Look at some of them in the gallery. Correct the list, or the tool, and convert again.",
        ask=_find_odd,
    ),
    TargetCheck(
        "partial_images",
        "warn",
        "Images that lost some of their objects",
        _PARTIAL,
        "Images whose record lacks some of their objects, which were rejected: {count:,}.",
        "A detector learns the lost objects as background. Correct their lines of rejects.jsonl "
        "and append them, or drop the images.",
    ),
    TargetCheck(
        "twin_boxes",
        "warn",
        "Boxes that are there twice",
        "",
        f"Pairs of boxes of one class with more than {TWIN_IOU:.0%} in common: {{count:,}}.",
        f"Delete one of them: both count. {_NOT_ALL}",
        partial(_find_overlaps, least=TWIN_IOU, same_class=True),
    ),
    TargetCheck(
        "crossed_classes",
        "warn",
        "Boxes of two classes at one place",
        "",
        f"Pairs of boxes of two classes with more than {CROSSED_IOU:.0%} in common: {{count:,}}.",
        f"One of the classes is wrong, or a class is a part of the other one. {_NOT_ALL}",
        partial(_find_overlaps, least=CROSSED_IOU, same_class=False),
    ),
    TargetCheck(
        "empty_images",
        "warn",
        "Splits of images without objects",
        _EMPTY,
        f"Splits with objects in less than {1 - EMPTY_SHARE:.0%} of their images: {{count:,}}.",
        "Look whether a tool lost annotations. Give images that nobody annotated no list of "
        "objects: an empty list says that nothing is there.",
    ),
    TargetCheck(
        "missing_boxes",
        "warn",
        "Objects that probably have no box",
        "",
        "Results of the detector where the list has no object: {count:,}.",
        f"Draw the boxes that are missing. {_OWN_ERRORS}",
        by_results=True,
    ),
    TargetCheck(
        "wrong_classes",
        "warn",
        "Boxes that probably have another class",
        "",
        "Boxes that the detector gives another class: {count:,}.",
        f"Correct those that are wrong. {_OWN_ERRORS}",
        by_results=True,
    ),
    TargetCheck(
        "shifted_boxes",
        "warn",
        "Boxes that are probably beside their objects",
        "",
        "Boxes of which the detector finds the object less than half in common: {count:,}.",
        f"Move those that are wrong. {_OWN_ERRORS}",
        by_results=True,
    ),
    TargetCheck(
        "false_boxes",
        "warn",
        "Boxes that probably have no object",
        "",
        "Boxes without any result of the detector: {count:,}.",
        f"Delete those that are wrong, first of classes that are mostly found. {_OWN_ERRORS}",
        by_results=True,
    ),
)
