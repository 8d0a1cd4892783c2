"""The common part of all readers of annotations: what they tell of an image, and their rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from darkroom.dataset.read_as import Doubt, ReadAs
from darkroom.dataset.schema import Kind, Schema
from darkroom.errors import RejectError
from darkroom.manifest.sources.base import Row, Source, Value

_COLUMNS = (("image_uri", Kind.IMAGE), ("split", Kind.SPLIT), ("objects", Kind.OBJECTS))

TURNED = "rotated boxes read as the upright boxes around them"


class Annotated(NamedTuple):
    """An image with its objects.

    Attributes:
        uri: Its path or URI; a relative path is below the `base` of the source.
        split: The split that the annotations name; empty for none.
        objects: Its objects as a column of the kind `objects` has them, or the value of the column
            that a reader has in its place; None where nobody looked.
        fault: Why no record can be made of the image.
    """

    uri: str
    split: str
    objects: Value = None
    fault: RejectError | None = None


def place_in(
    width: Any, height: Any, objects: list[Any] | None, orientation: str | None = None
) -> dict[str, Any]:
    """Returns the objects of an image as a column of the kind `objects` has them.

    Args:
        width: Width of the image that their places are in: pixels, 1 for shares, None if unknown.
        height: Its height.
        objects: Them; None where nobody looked.
        orientation: The image in which they are, `upright` or `stored`; None where only the size
            tells it.
    """
    return {"width": width, "height": height, "orientation": orientation, "objects": objects}


def turn_rectangle(box: Sequence[float], degrees: float, pivot: float) -> list[tuple[float, float]]:
    """Returns the corners of a rectangle that is turned clockwise.

    Args:
        box: Its left and upper corner, width and height before it is turned.
        degrees: By how much.
        pivot: The point that stays, as a share of width and height: 0 for that corner, 0.5 for
            the middle.

    Raises:
        ValueError: It has no area.
    """
    left, top, across, down = box
    if min(across, down) <= 0:
        raise ValueError("its width or its height is not above 0")
    angle = math.radians(degrees)
    cos, sin = math.cos(angle), math.sin(angle)
    x, y = left + pivot * across, top + pivot * down
    return [
        (x + a * cos - b * sin, y + a * sin + b * cos)
        for a in (-pivot * across, (1 - pivot) * across)
        for b in (-pivot * down, (1 - pivot) * down)
    ]


def find_turned_hull(box: Sequence[float], degrees: float) -> list[float]:
    """Returns the corners of the upright box around a rectangle that CVAT turned.

    Args:
        box: As for `turn_rectangle`; it says the rectangle before it is turned about its middle.
        degrees: By how much.

    Raises:
        ValueError: It has no area, or a corner is not finite.
    """
    return find_hull(turn_rectangle(box, degrees, pivot=0.5))


def find_hull(points: Iterable[tuple[float, float]]) -> list[float]:
    """Returns the corners of the upright box around points.

    Raises:
        ValueError: One of them is not finite: comparing would lose it.
    """
    xs, ys = zip(*points, strict=True)
    if not math.isfinite(sum(xs) + sum(ys)):
        raise ValueError("a corner is not a finite number")
    return [min(xs), min(ys), max(xs), max(ys)]


class AnnotationSource(Source):
    """Reads annotations of boxes; see `Source`. A reader has the method `images`.

    Args:
        path: The source: a file, or a folder.
        base: Folder against which relative paths of images are resolved; their keys depend on
            their paths there.
        read_as: How it is read.
        has_splits: Whether the annotations name the splits.

    Attributes:
        counts: What was read in another form than it has, or not at all. `read_as` says it after
            the last row.
        doubts: What of it may not be meant, likewise.
        remarks: What else was decided, in words, likewise.
    """

    has_columns = False

    def __init__(self, path: str, base: str, read_as: ReadAs, *, has_splits: bool = False) -> None:
        self.name = path
        self.base = self.identity_base = base
        self.read_as = read_as
        self.counts: Counter[str] = Counter()
        self.doubts: list[Doubt] = []
        self.remarks: list[str] = []
        self._has_splits = has_splits
        left_out = None if has_splits else Kind.SPLIT
        self.schema = Schema(tuple(each for each in _COLUMNS if each[1] is not left_out))

    def images(self) -> Iterator[Annotated]:
        """Yields every image once, in the order of the annotations."""
        raise NotImplementedError

    def rows(self) -> Iterator[Row]:
        """Yields one row for each image."""
        for number, image in enumerate(self.images(), start=1):
            split: list[Value] = [image.split] if self._has_splits else []
            # An empty path would be the only reason that is told.
            uri = image.uri.removeprefix(f"{self.base}/")
            values = [uri, *split, image.objects] if image.uri or not image.fault else []
            yield Row(number, values, image.fault)
        self.read_as = replace(
            self.read_as,
            counts={what: count for what, count in self.counts.items() if count},
            doubts=(*self.read_as.doubts, *self.doubts),
            remarks=(*self.read_as.remarks, *self.remarks),
        )
