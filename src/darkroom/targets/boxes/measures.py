"""Numbers of objects, for statistics and for people who look through images."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from darkroom.targets.arrays import join_images

COUNT = "image/object/count"
AREA_SHARE = "image/object/bbox/area"
SIDE = "image/object/bbox/side"
ASPECT = "image/object/bbox/aspect"


def measure_objects(rows: pa.Table) -> dict[str, pa.Array]:
    """Returns what objects are like, by the name of a feature.

    Args:
        rows: The columns `label`, `height` and `width` of an index.

    Returns:
        int64 [N]: how many objects an image has; null where nobody looked. And of each object,
        list<float> [N]: its share of the image; its side in pixels, which is the square root of its
        area; and its width over its height.
    """
    labels = rows["label"].combine_chunks()
    objects, images = labels.flatten(), pc.list_parent_indices(labels)
    across, down = (_measure(objects, *ends) for ends in (("xmin", "xmax"), ("ymin", "ymax")))
    width, height = (
        rows[name].combine_chunks().take(images).to_numpy(zero_copy_only=False)
        for name in ("width", "height")
    )
    area = across * down
    found = {
        AREA_SHARE: area,
        SIDE: np.sqrt(area * width * height),
        ASPECT: across * width / (down * height),
    }
    lists = {
        name: join_images(labels, pa.array(each, pa.float32())) for name, each in found.items()
    }
    return {COUNT: pc.list_value_length(labels).cast(pa.int64()), **lists}


def _measure(objects: pa.StructArray, low: str, high: str) -> np.ndarray[Any, Any]:
    ends = (objects.field(name).to_numpy(zero_copy_only=False) for name in (low, high))
    first, last = (each.astype(np.float64) for each in ends)
    length: np.ndarray[Any, Any] = last - first
    return length
