"""Regions that people drew in Label Studio, as boxes in pixels.

Places are in percent of the image, and a rectangle may be turned about its upper left corner. It is
turned in pixels, as a turn of percents is none in an image that is not square.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from darkroom.errors import RejectError
from darkroom.manifest.formats.base import TURNED, find_hull, place_in, turn_rectangle

# Where labels are given apart, a region has a result without a label, and one with it.
_BARE = frozenset(("rectangle", "polygon", "brush", "ellipse", "keypoint", "vector", "bitmask"))
_RECTANGLE = ("x", "y", "width", "height")
_SIZE = ("original_width", "original_height")
# What Python raises of values that are none, and of those that are absent.
_NOT_NUMBERS = (LookupError, TypeError, ValueError, OverflowError)
_NO_REGIONS = "choices, texts and relations, not read"
_POLYGONS = "polygons read as their boxes"


def is_region(result: Mapping[str, Any]) -> bool:
    """Tells whether a result is a part of an image; others are choices, texts and relations."""
    kind = str(result.get("type"))
    return kind in _BARE or kind.endswith("labels")


def read_results(results: Sequence[Any], counts: Counter[str]) -> dict[str, Any]:
    """Returns the results of an annotation, as a cell of objects has them.

    Args:
        results: All that was drawn and chosen. What is not an object of JSON stays, as a fault.
        counts: Takes the numbers of what is not read, or read as something simpler.
    """
    objects: list[Any] = [each for each in results if not isinstance(each, dict)]
    found = [each for each in results if isinstance(each, dict)]
    counts[_NO_REGIONS] += sum(not is_region(each) for each in found)
    regions = [*filter(is_region, found)]
    size = next(filter(None, map(_find_size, regions)), None)
    labelled = {str(each.get("id")) for each in regions if _list_labels(each)}
    for region in regions:
        labels = _list_labels(region)
        if labels or str(region.get("id")) not in labelled:
            said = {"id": region.get("id"), **_place(region, size)}
            counts[TURNED] += "box" in said and _is_turned(region["value"])
            objects += [{"label": label, **said} for label in labels or [None]]
    counts[_POLYGONS] += sum(
        _list_labels(each) != [] and "points" in each["value"] for each in regions
    )
    width, height = size or (1, 1)
    return place_in(width, height, objects)


def _list_labels(region: Mapping[str, Any]) -> Sequence[Any]:
    value = region.get("value")
    labels = value.get(str(region.get("type"))) if isinstance(value, dict) else None
    return labels if isinstance(labels, list) else []


def _find_size(region: Mapping[str, Any]) -> tuple[float, float] | None:
    """Returns width and height of the image in pixels; None where a region does not say it."""
    try:
        width, height = (float(region[name]) for name in _SIZE)
    except _NOT_NUMBERS:
        return None
    return (width, height) if min(width, height) > 0 and max(width, height) < math.inf else None


def _place(region: Mapping[str, Any], size: tuple[float, float] | None) -> dict[str, Any]:
    """Returns the box of a region, or its fault.

    Args:
        region: The region.
        size: Width and height of the image in pixels; None where they are not known.
    """
    try:
        if _find_size(region) not in (None, size):
            raise ValueError("the size of its image is not that of the other regions")
        return {"box": find_hull(_list_points(region, size))}
    except _NOT_NUMBERS as error:
        return {"fault": RejectError("bad_box", f"{error}")}


def _is_turned(value: Mapping[str, Any]) -> bool:
    return not value.get("points") and bool(float(value.get("rotation") or 0))


def _list_points(
    region: Mapping[str, Any], size: tuple[float, float] | None
) -> list[tuple[float, float]]:
    """Returns the corners of a rectangle or polygon, in pixels, or in shares without a size.

    Raises:
        ValueError: It is something else; so are the other `_NOT_NUMBERS`.
    """
    value = region.get("value")
    width, height = size or (1.0, 1.0)
    if isinstance(value, dict) and value.get("points"):
        return [(float(x) * width / 100, float(y) * height / 100) for x, y in value["points"]]
    if not isinstance(value, dict) or not value.keys() >= {*_RECTANGLE}:
        raise ValueError(f"a region of type {region.get('type')!s:.40} is not read as a box")
    sides = zip(_RECTANGLE, (width, height, width, height), strict=True)
    left, top, across, down = (float(value[name]) * side / 100 for name, side in sides)
    degrees = float(value.get("rotation") or 0)
    if degrees and size is None:
        raise ValueError("it is turned, and original_width and original_height are not known")
    return turn_rectangle((left, top, across, down), degrees, pivot=0)
