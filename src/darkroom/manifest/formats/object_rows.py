"""Tables with a row for each object, as of the tutorials of TensorFlow.

Rows of an image may be anywhere in a table, so all are read before its first image is complete.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from darkroom.dataset.schema import ObjectColumns
from darkroom.errors import DataError, RejectError
from darkroom.manifest.formats.base import Annotated, AnnotationSource, place_in
from darkroom.manifest.formats.places import find_images
from darkroom.manifest.sources.base import Source
from darkroom.manifest.sources.listing import Listing
from darkroom.manifest.sources.lists import open_list
from darkroom.options.manifest import ManifestOptions

# Of cells in the one text that an object is until its image is complete: it takes a fifth of the
# memory of its cells. No cell has this character.
_SEPARATOR = "\0"
_NO_SIZE = ("", "0", "0.0")

# By the cells of an image: texts of its objects, and what is wrong with some.
_Rows = dict[tuple[str, ...], list[str | RejectError]]


class ObjectRows(AnnotationSource):
    """Reads a table with a row for each object, as of the tutorials of TensorFlow; see `Source`.

    Rows that name one image, its split and its size are of that image. A row without class and box
    has an image without objects. Rows of a path that differ in split or size contradict each other,
    and so are rows of several images.

    Args:
        table: The reader of its rows.
        layout: What its columns have.
        options: How it is read.
        listing: What is below the folder that the user named, if it is not the list.
    """

    has_types = False

    def __init__(
        self,
        table: Source,
        layout: ObjectColumns,
        options: ManifestOptions,
        listing: Listing | None = None,
    ) -> None:
        self._table, self._layout = table, layout
        # The split, if there is one, is before the image, and the size of the image after it.
        self._image = int(bool(layout.split))
        # A DataFrame is in no folder.
        path = table.name if table.identity_base else table.base
        self._place = find_images(path, self._read_names, options.image_dir, listing)
        form = f"{table.read_as.form} with a row for each object"
        read_as = replace(table.read_as, form=form)
        super().__init__(table.name, self._place.folder, read_as, has_splits=bool(layout.split))

    def _read_names(self) -> Iterator[str]:
        return (str(row.values[self._image]) for row in self._table.rows() if row.values)

    def images(self) -> Iterator[Annotated]:
        """Yields every image, in the order of their first rows, and then rows without an image."""
        rows, alone = self._gather()
        for cells, objects in rows.items():
            split = cells[0] if self._layout.split else ""
            size = self._find_size(cells[self._image + 1 :])
            value = place_in(*size, [*map(self._read_object, objects)])
            yield Annotated(self._place.resolve(cells[self._image]), split, value)
        for fault in alone:
            yield Annotated("", "", None, fault)

    def _gather(self) -> tuple[_Rows, list[RejectError]]:
        """Returns the objects by the cells of their images, and the faults of rows without any."""
        rows: _Rows = {}
        alone: list[RejectError] = []
        end = self._image + 1 + len(self._layout.size)
        for row in self._table.rows():
            cells = ["" if cell is None else str(cell) for cell in row.values]
            if row.fault and not cells:
                alone.append(row.fault)
                continue
            objects = rows.setdefault(tuple(cells[:end]), [])
            if row.fault:
                objects.append(row.fault)
            elif any(map(str.strip, cells[end:])):
                objects.append(_SEPARATOR.join((str(row.row), *cells[end:])))
        return rows, alone

    def _find_size(self, cells: Sequence[str]) -> tuple[Any, Any]:
        """Returns width and height of the image in which boxes are; None where it has no size."""
        known = [None if cell.strip() in _NO_SIZE else cell for cell in cells] or [None, None]
        return known[0], known[1]

    def _read_object(self, said: str | RejectError) -> dict[str, Any]:
        if isinstance(said, RejectError):
            return {"fault": said}
        row, label, *box = said.split(_SEPARATOR)
        found = {"id": f"in row {row}", "label": label, "box": box}
        return {**found, **self._place_box(box)}

    def _place_box(self, box: Sequence[str]) -> dict[str, Any]:
        """Returns the corners of a box in place of its cells, or the fault of them."""
        return {"box": [*box]}


def open_object_rows(
    path: str, options: ManifestOptions, listing: Listing | None = None
) -> ObjectRows:
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
    return ObjectRows(table, table.schema.objects, options, listing)
