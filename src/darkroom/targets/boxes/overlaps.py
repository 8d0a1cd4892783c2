"""Pairs of boxes of an image that are nearly the same, without comparing all with all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from darkroom.runtime.arrays import Array
from darkroom.runtime.text import MAX_LISTED_ROWS
from darkroom.targets.boxes.located import locate_object
from darkroom.targets.checks import Found

_SIDES = ("xmin", "ymin", "xmax", "ymax")


def find_overlaps(rows: pa.Table, least: float, most_compared: int, *, same_class: bool) -> Found:
    """Finds pairs of boxes that have most of both in common; those of crowds are left out.

    Args:
        rows: The columns `row`, `uri`, `split`, `label`, `source_width` and `source_height` of an
            index.
        least: Their intersection over union is more.
        most_compared: With how many a box is compared, whose left sides are next to its own.
        same_class: Whether the pairs are of one class; else of two.
    """
    labels = rows["label"].combine_chunks()
    objects = labels.flatten()
    names = objects.field("label").dictionary_encode()
    corners = np.stack([_view(objects.field(side)).astype(np.float64) for side in _SIDES])
    image = pc.list_parent_indices(labels).to_numpy()
    order = np.lexsort((corners[0], image))
    order = order[~_view(objects.field("is_crowd"))[order]]
    number = order - np.searchsorted(image, image[order])
    sides, image, name = corners[:, order], image[order], _view(names.indices)[order]
    # A box that begins further to the right has less in common with the one on the left.
    ends = sides[0] + (1 - least) * (sides[2] - sides[0])
    count, best, one = 0, np.empty((3, 0)), np.arange(len(order))
    for step in range(1, most_compared + 1):
        one = one[one + step < len(order)]
        one = one[(image[one + step] == image[one]) & (sides[0, one + step] <= ends[one])]
        if not len(one):
            break
        pairs = one[(name[one + step] == name[one]) == same_class]
        shares = compare_boxes(sides[:, pairs], sides[:, pairs + step])
        found = np.stack([shares, pairs, pairs + step])[:, shares > least]
        count += found.shape[1]
        best = np.concatenate([best, found], 1)
        best = best[:, np.argsort(-best[0], kind="stable")[:MAX_LISTED_ROWS]]
    texts = names.dictionary.take(pa.array(name)).to_pylist() if count else []
    return Found(count, [*_list_rows(rows, best, image, texts, number, sides)])


def _view(values: pa.Array) -> Array:
    array: Array = values.to_numpy(zero_copy_only=False)
    return array


def compare_boxes(one: Array, other: Array) -> Array:
    """Returns the intersection over union of boxes, float64 [N], of corners [4, N]."""
    across, down = np.minimum(one[2:], other[2:]) - np.maximum(one[:2], other[:2])
    common = np.maximum(across, 0) * np.maximum(down, 0)
    areas = sum((each[2] - each[0]) * (each[3] - each[1]) for each in (one, other))
    shares: Array = common / np.maximum(areas - common, np.finfo(np.float64).tiny)
    return shares


def _list_rows(
    rows: pa.Table, best: Array, image: Array, names: list[str], number: Array, sides: Array
) -> Iterator[tuple[float, dict[str, Any]]]:
    """Yields the share of each pair, and its row of a finding."""
    for share, one, other in zip(best[0], *best[1:].astype(np.int64), strict=True):
        facts = rows.drop(["label"]).slice(image[one], 1).to_pylist()[0]
        size = facts.pop("source_width"), facts.pop("source_height")
        said = {
            "label": names[one],
            "object": locate_object(int(number[one]), sides[:, one], *size),
            "detail": f"{share:.3f} of both in common with object {number[other] + 1}, "
            f"{names[other]}",
        }
        yield float(share), {**facts, **said}
