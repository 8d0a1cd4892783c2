"""The objects of many records as arrays, and those of a batch where its views show them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from darkroom.runtime.arrays import Array
from darkroom.targets.arrays import Objects
from darkroom.targets.boxes.moving import are_boxes, move_boxes
from darkroom.targets.boxes.object_type import FLAGS, SIDES
from darkroom.targets.geometry import Matrix


class BoxTargets:
    """The objects of many records; see `darkroom.targets.arrays.Targets`.

    Args:
        column: The column `label` of an index.
        numbers: The numbers of the labels, lists like those of the column.
        height: int [R], heights of the stored images in pixels.
        width: int [R], their widths.
    """

    def __init__(
        self, column: pa.ListArray, numbers: pa.ListArray, height: Array, width: Array
    ) -> None:
        fields = _list_fields(column)
        self._columns = {
            "boxes": np.stack([_to_numpy(fields[side]) for side in SIDES], axis=1),
            "labels": _to_numpy(numbers.flatten()),
            **{name: _to_numpy(fields[name]) for name in (*FLAGS, "area")},
        }
        self._counts = _to_numpy(pc.fill_null(pc.list_value_length(column), 0)).astype(np.int64)
        self._starts = np.cumsum(self._counts) - self._counts
        self._is_known = _to_numpy(column.is_valid())
        self._sides = np.stack((width, height, width, height), axis=1)

    def take(self, rows: Array) -> Objects:
        """Returns the objects of some records: `boxes` in pixels of the stored images.

        Args:
            rows: int64 [B], the numbers of the records.

        Returns:
            Of the N objects `boxes`, float64 [N, 4]: left, top, right, bottom; `labels`, int64 [N],
            from 0; `is_crowd` and `difficult`, bool [N]; `area`, float32 [N], in pixels of the
            stored images. Of the images `annotated`, bool [B].
        """
        counts = self._counts[rows]
        images = np.repeat(np.arange(len(rows)), counts)
        before = np.cumsum(counts) - counts
        places = (self._starts[rows] - before)[images] + np.arange(len(images))
        found = {name: values[places] for name, values in self._columns.items()}
        found["boxes"] = found["boxes"].astype(np.float64) * self._sides[rows][images]
        return Objects(counts, found, {"annotated": self._is_known[rows]})


def follow_boxes(
    targets: Objects, matrix: Matrix, size: tuple[Any, Any], min_visible: float, first_label: int
) -> Objects:
    """Returns the objects that the views of a batch show, where they are there.

    Args:
        targets: From `BoxTargets.take`.
        matrix: Where a point of each stored image is in its view: numbers, or [B].
        size: (height, width) of the views in pixels: numbers, or [B].
        min_visible: How much of a box, 0 to 1, must be in the view.
        first_label: The number of the first label.

    Returns:
        The same, with `boxes` as float32 and `area` in pixels of the views, without those that are
        not shown. An area is that of the whole object, also where a view shows a part.
    """
    num_images = len(targets.counts)
    images = np.repeat(np.arange(num_images), targets.counts)
    values = np.empty((8, num_images))
    for row, value in zip(values, (*matrix, *size), strict=True):
        row[:] = value
    *own, height, width = values[:, images]
    boxes, is_shown = move_boxes(
        targets.objects["boxes"], Matrix(*own), (height, width), min_visible, np
    )
    labels = targets.objects["labels"] + first_label
    area = (targets.objects["area"] * Matrix(*own).growth).astype(np.float32)
    moved = {**targets.objects, "boxes": boxes.astype(np.float32), "labels": labels, "area": area}
    shown = {name: values[is_shown] for name, values in moved.items()}
    return Objects(np.bincount(images[is_shown], minlength=num_images), shown, targets.images)


def find_wrong_boxes(column: pa.ListArray) -> int:
    """Returns the first row of an index with a box that cannot be one; -1 if there is none."""
    fields = _list_fields(column)
    # What is missing is NaN, of which all comparisons are false.
    is_box = are_boxes(*(_to_numpy(fields[side]) for side in SIDES))
    for name in ("label", *FLAGS):
        is_box &= _to_numpy(fields[name].is_valid())
    if is_box.all():
        return -1
    return int(pc.list_parent_indices(column)[int(np.argmin(is_box))].as_py())


def _list_fields(column: pa.ListArray) -> dict[str, pa.Array]:
    """Returns the fields of all objects, by name."""
    objects = column.flatten()
    return dict(zip([field.name for field in objects.type], objects.flatten(), strict=True))


def _to_numpy(values: pa.Array) -> Array:
    found: Array = values.to_numpy(zero_copy_only=False)
    return found
