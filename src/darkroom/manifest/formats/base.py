"""The common part of all readers of annotations: what they tell of an image, and their rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from darkroom.dataset.read_as import Doubt, ReadAs
from darkroom.dataset.schema import Kind, Schema
from darkroom.manifest.sources.base import BadRow, Row, Source, Value

_COLUMNS = (("image_uri", Kind.IMAGE), ("split", Kind.SPLIT), ("objects", Kind.OBJECTS))

# Reason code and detail, where no record can be made of an image, or no object.
Fault = tuple[str, str]


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
    fault: Fault | None = None


def place_in(width: Any, height: Any, objects: list[Any] | None) -> dict[str, Any]:
    """Returns the objects of an image as a column of the kind `objects` has them.

    Args:
        width: Width of the image that their places are in: pixels, 1 for shares, None if unknown.
        height: Its height.
        objects: Them; None where nobody looked.
    """
    return {"width": width, "height": height, "orientation": None, "objects": objects}


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
    """

    has_columns = False

    def __init__(self, path: str, base: str, read_as: ReadAs, *, has_splits: bool = False) -> None:
        self.name = path
        self.base = self.identity_base = base
        self.read_as = read_as
        self.counts: Counter[str] = Counter()
        self.doubts: list[Doubt] = []
        self._has_splits = has_splits
        left_out = None if has_splits else Kind.SPLIT
        self.schema = Schema(tuple(each for each in _COLUMNS if each[1] is not left_out))

    def images(self) -> Iterator[Annotated]:
        """Yields every image once, in the order of the annotations."""
        raise NotImplementedError

    def rows(self) -> Iterator[Row | BadRow]:
        """Yields one row for each image."""
        for number, image in enumerate(self.images(), start=1):
            split: list[Value] = [image.split] if self._has_splits else []
            # An empty path would be the only reason that is told.
            uri = image.uri.removeprefix(f"{self.base}/")
            values = [uri, *split, image.objects] if image.uri or not image.fault else []
            yield BadRow(number, *image.fault, values) if image.fault else Row(number, values)
        counts = {what: count for what, count in self.counts.items() if count}
        doubts = (*self.read_as.doubts, *self.doubts)
        self.read_as = replace(self.read_as, counts=counts, doubts=doubts)
