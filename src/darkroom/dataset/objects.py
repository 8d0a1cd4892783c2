"""How many objects of images there are, and what became of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass

from darkroom.runtime.json_values import Count


@dataclass(frozen=True)
class ObjectCounts:
    """Counts of objects: those of the source are written, rejected, deduplicated or merged.

    Attributes:
        written: Objects in records.
        rejected: Those that are in none, alone or with their image.
        deduplicated: Those of images that are excluded.
        merged: Those that equal another one of their image, which is written.
        alone: How many of the rejected ones were rejected alone: each has a line of the rejects.
        cut: How many of the written ones were cut at the edge of their image, before merging.
        most: The most objects that a record has, to which readers pad the others.
    """

    written: Count = 0
    rejected: Count = 0
    deduplicated: Count = 0
    merged: Count = 0
    alone: Count = 0
    cut: Count = 0
    most: Count = 0

    @property
    def read(self) -> int:
        """Number of objects of the source."""
        return self.written + self.rejected + self.deduplicated + self.merged


_NONE = astuple(ObjectCounts())


def add_objects(parts: Iterable[Sequence[int]]) -> tuple[int, ...]:
    """Returns the sums of counts, and the most objects of a record.

    Both are the values of `ObjectCounts`: to make one of these for each image takes too long.
    """
    *counts, most = zip(_NONE, *parts, strict=True)
    return *map(sum, counts), max(most)
