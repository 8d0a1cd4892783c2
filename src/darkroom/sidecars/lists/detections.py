"""Results of a detector in place of the objects of a dataset, for people who correct them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from darkroom.runtime.arrays import Array
from darkroom.targets.boxes.kind import KIND
from darkroom.targets.boxes.moving import are_boxes
from darkroom.targets.boxes.object_type import FLAGS, SIDES
from darkroom.targets.boxes.results import Results

# Columns of an index beside those by which results find their images.
PLACE_COLUMNS = ("height", "width")


def make_labels(
    found: Results, is_looked: Array, index: pa.Table, names: Sequence[str]
) -> pa.ListArray:
    """Returns the column `label` of an index with results as objects, the surest of an image first.

    Args:
        found: The results.
        is_looked: Which images the detector looked at, bool [images].
        index: `PLACE_COLUMNS` of the index.
        names: The label map.
    """
    found = found._replace(boxes=found.boxes.clip(0, 1).astype(np.float32))
    found = found.take(are_boxes(*found.boxes))
    found = found.take(np.lexsort((-found.score, found.image)))
    pixels = index["height"].to_numpy() * index["width"].to_numpy()
    left, top, right, bottom = found.boxes
    fields = {
        "label": np.array(names, object)[found.label],
        **dict(zip(SIDES, found.boxes, strict=True)),
        **dict.fromkeys(FLAGS, np.zeros(len(found.label), bool)),
        "area": ((right - left) * (bottom - top) * pixels[found.image]).astype(np.float32),
    }
    columns = [pa.array(fields[each.name], each.type) for each in KIND.column.value_type]
    objects = pa.StructArray.from_arrays(columns, fields=[*KIND.column.value_type])
    ends = np.searchsorted(found.image, np.arange(len(index) + 1)).astype(np.int32)
    # An offset that is null makes its list null.
    offsets = pa.array(ends, pa.int32(), mask=np.append(~is_looked, False))
    return pa.ListArray.from_arrays(offsets, objects)
