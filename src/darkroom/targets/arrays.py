"""What many records are labelled with, as arrays, of which batches are taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from darkroom.runtime.arrays import Array


class Objects(NamedTuple):
    """The objects of B images, one image after the other: each has any number of them.

    Attributes:
        counts: How many objects each image has, int64 [B].
        objects: What is known of each of the N objects, by name, [N, ...] each.
        images: What is known of each image besides, by name, [B] each.
    """

    counts: Array
    objects: Mapping[str, Array]
    images: Mapping[str, Array]


class Targets(Protocol):
    """What many records are labelled with; it can be pickled."""

    def take(self, rows: Array) -> Array | Objects:
        """Returns what some records are labelled with.

        Args:
            rows: int64 [B], the numbers of the records.

        Returns:
            [B, ...], or the objects of the images.
        """


class ArrayTargets:
    """Targets of one shape; see `Targets`.

    Args:
        make_array: As `TargetKind.make_array`.
        numbers: What it takes, of each record.
        size: The same as there.
    """

    def __init__(
        self, make_array: Callable[[list[Any], int], Array], numbers: pa.Array, size: int
    ) -> None:
        self._make_array, self._numbers, self._size = make_array, numbers, size

    def take(self, rows: Array) -> Array:
        """Returns what some records are labelled with, [B, ...]."""
        return self._make_array([self._numbers[row].as_py() for row in rows.tolist()], self._size)


def join_images(lists: pa.ListArray, values: pa.Array) -> pa.ListArray:
    """Returns values as lists, one for each image.

    Args:
        lists: Lists of the same lengths; null where that of the values is.
        values: The values of all lists, in their order.
    """
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    ends = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    # An offset that is null makes its list null.
    is_null = np.append(lists.is_null().to_numpy(zero_copy_only=False), False)
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32(), mask=is_null), values)
