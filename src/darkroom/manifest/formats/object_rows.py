"""Tables with a row for each object: of the tutorials of TensorFlow, and of AutoML and Vertex AI.

Rows of an image may be anywhere in a table, so all are read before its first image is complete.
"""

from __future__ import annotations

import math
import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from darkroom.dataset.schema import Columns, ObjectColumns
from darkroom.dataset.splits import mention_split
from darkroom.errors import DataError
from darkroom.manifest.formats.base import (
    Annotated,
    AnnotationSource,
    Fault,
    find_hull,
    place_in,
)
from darkroom.manifest.formats.places import find_images
from darkroom.manifest.sources.base import BadRow, Source
from darkroom.manifest.sources.csv import CsvSource
from darkroom.manifest.sources.lists import open_list
from darkroom.options.manifest import ManifestOptions, parse_source_encoding

_SAMPLE_ROWS = 100
# Of cells in the one text that an object is until its image is complete: it takes a fifth of the
# memory of its cells. No cell has this character.
_SEPARATOR = "\0"
_NO_SIZE = ("", "0", "0.0")
_VERTICES = ("x1", "y1", "x2", "y2", "x3", "y3", "x4", "y4")
# Of shares of the image: they are rounded.
_TOLERANCE = 1e-6

# By the cells of an image: texts of its objects, and what is wrong with some.
_Rows = dict[tuple[str, ...], list[str | Fault]]


class ObjectRows(AnnotationSource):
    """Reads a table with a row for each object, as of the tutorials of TensorFlow; see `Source`.

    Rows that name one image, its split and its size are of that image. A row without class and box
    has an image without objects. Rows of a path that differ in split or size contradict each other,
    and so are rows of several images.

    Args:
        table: The reader of its rows.
        layout: What its columns have.
        options: How it is read.
    """

    has_types = False

    def __init__(self, table: Source, layout: ObjectColumns, options: ManifestOptions) -> None:
        self._table, self._layout = table, layout
        # The split, if there is one, is before the image, and the size of the image after it.
        self._image = int(bool(layout.split))
        first = islice(self._table.rows(), _SAMPLE_ROWS)
        names = [str(row.values[self._image]) for row in first if row.values]
        named = mention_split(posixpath.basename(table.name))
        # A DataFrame is in no folder.
        path = table.name if table.identity_base else table.base
        base, self._spell = find_images(path, names, options.image_dir, named)
        form = f"{table.read_as.form} with a row for each object"
        read_as = replace(table.read_as, form=form)
        super().__init__(table.name, base, read_as, has_splits=bool(layout.split))

    def images(self) -> Iterator[Annotated]:
        """Yields every image, in the order of their first rows, and then rows without an image."""
        rows, alone = self._gather()
        for cells, objects in rows.items():
            split = cells[0] if self._layout.split else ""
            size = self._find_size(cells[self._image + 1 :])
            value = place_in(*size, [*map(self._read_object, objects)])
            yield Annotated(self._spell(cells[self._image]), split, value)
        for fault in alone:
            yield Annotated("", "", None, fault)

    def _gather(self) -> tuple[_Rows, list[Fault]]:
        """Returns the objects by the cells of their images, and the faults of rows without any."""
        rows: _Rows = {}
        alone: list[Fault] = []
        end = self._image + 1 + len(self._layout.size)
        for row in self._table.rows():
            cells = ["" if cell is None else str(cell) for cell in row.values]
            if isinstance(row, BadRow) and not cells:
                alone.append((row.reason, row.detail))
                continue
            objects = rows.setdefault(tuple(cells[:end]), [])
            if isinstance(row, BadRow):
                objects.append((row.reason, row.detail))
            elif any(map(str.strip, cells[end:])):
                objects.append(_SEPARATOR.join((str(row.row), *cells[end:])))
        return rows, alone

    def _find_size(self, cells: Sequence[str]) -> tuple[Any, Any]:
        """Returns width and height of the image in which boxes are; None where it has no size."""
        known = [None if cell.strip() in _NO_SIZE else cell for cell in cells] or [None, None]
        return known[0], known[1]

    def _read_object(self, said: str | Fault) -> dict[str, Any]:
        if isinstance(said, tuple):
            return {"fault": said}
        row, label, *box = said.split(_SEPARATOR)
        found = {"id": f"in row {row}", "label": label, "box": box}
        return {**found, **self._place(box)}

    def _place(self, box: Sequence[str]) -> dict[str, Any]:
        """Returns the corners of a box in place of its cells, or the fault of them."""
        return {"box": [*box]}


def open_object_rows(path: str, options: ManifestOptions) -> ObjectRows:
    """Returns the reader of a list that has a row for each object.

    Raises:
        DataError: It does not have the columns for that.
    """
    # What the user says of columns is not about these.
    table = open_list(path, ManifestOptions(source_encoding=options.source_encoding))
    if table.schema.objects is None:
        names = [*dict(table.schema.columns), *table.read_as.unread]
        raise DataError(
            f"{path} does not have the columns of boxes: {names!r:.200}.",
            "Expected filename, class, xmin, ymin, xmax and ymax.",
        )
    return ObjectRows(table, table.schema.objects, options)


class AutoMLSource(ObjectRows):
    """Reads the CSV with boxes of AutoML and Vertex AI, which has no header.

    A row is `ml_use,uri,label,x1,y1,x2,y2,x3,y3,x4,y4`, in shares of the image. The second and the
    fourth vertex may be empty.
    """

    def __init__(self, path: str, options: ManifestOptions) -> None:
        layout = ObjectColumns("image_uri", "ml_use", (), "label", _VERTICES)
        encoding = parse_source_encoding(options.source_encoding)
        super().__init__(CsvSource(path, Columns(layout.schema), encoding), layout, options)

    def _find_size(self, cells: Sequence[str]) -> tuple[Any, Any]:
        return 1, 1

    def _place(self, box: Sequence[str]) -> dict[str, Any]:
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
            return {"fault": ("bad_box", f"the vertices are {given!r:.200}: {error}")}


def _is_upright(points: Sequence[tuple[float, float]]) -> bool:
    """Tells whether points are the corners of an upright box, in their order around it."""
    sides = zip(points, [*points[1:], *points[:1]], strict=True)
    return len(points) == 4 and all(
        math.isclose(x, next_x, abs_tol=_TOLERANCE) != math.isclose(y, next_y, abs_tol=_TOLERANCE)
        for (x, y), (next_x, next_y) in sides
    )
