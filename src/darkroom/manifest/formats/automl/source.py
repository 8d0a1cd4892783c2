"""Reads the CSV with boxes of AutoML and Vertex AI: a row has the vertices of a box as shares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from darkroom.dataset.schema import Columns, ObjectColumns
from darkroom.errors import RejectError
from darkroom.manifest.formats.base import find_hull
from darkroom.manifest.formats.object_rows import ObjectRows
from darkroom.manifest.sources.csv import CsvSource
from darkroom.manifest.sources.listing import Listing
from darkroom.options.manifest import ManifestOptions

_VERTICES = ("x1", "y1", "x2", "y2", "x3", "y3", "x4", "y4")
# Of shares of the image: they are rounded.
_TOLERANCE = 1e-6


class AutoMLSource(ObjectRows):
    """Reads the CSV with boxes of AutoML and Vertex AI, which has no header.

    A row is `ml_use,uri,label,x1,y1,x2,y2,x3,y3,x4,y4`, in shares of the image. The second and the
    fourth vertex may be empty.
    """

    def __init__(self, path: str, options: ManifestOptions, listing: Listing | None = None) -> None:
        layout = ObjectColumns("image_uri", "ml_use", (), "label", _VERTICES)
        table = CsvSource(path, Columns(layout.schema), options.source_encoding)
        super().__init__(table, layout, options, listing)

    def _find_size(self, cells: Sequence[str]) -> tuple[Any, Any]:
        return 1, 1

    def _place_box(self, box: Sequence[str]) -> dict[str, Any]:
        points = [*zip(box[::2], box[1::2], strict=True)]
        given = [point for point in points if any(map(str.strip, point))]
        if given == [points[0], points[2]]:
            return {"box": [*points[0], *points[2]]}
        try:
            vertices = [(float(x), float(y)) for x, y in given]
            if not _is_upright(vertices):
                raise ValueError("they are not those of an upright box, one after the other")
            return {"box": find_hull(vertices)}
        except ValueError as error:
            return {"fault": RejectError("bad_box", f"the vertices are {given!r:.200}: {error}")}


def _is_upright(points: Sequence[tuple[float, float]]) -> bool:
    """Tells whether points are the corners of an upright box, in their order around it."""
    sides = zip(points, [*points[1:], *points[:1]], strict=True)
    return len(points) == 4 and all(
        math.isclose(x, next_x, abs_tol=_TOLERANCE) != math.isclose(y, next_y, abs_tol=_TOLERANCE)
        for (x, y), (next_x, next_y) in sides
    )
