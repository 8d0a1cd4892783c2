"""How many objects of images there are, and what became of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from operator import attrgetter

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


# `dataclasses.astuple` copies each value: too slow for a part an image.
_list_counts = attrgetter(*(field.name for field in fields(ObjectCounts)))


def add_objects(parts: Iterable[ObjectCounts]) -> ObjectCounts:
    """Returns the sums of counts, and the most objects of a record."""
    *counts, most = zip(*map(_list_counts, [ObjectCounts(), *parts]), strict=True)
    return replace(ObjectCounts(*map(sum, counts)), most=max(most))
