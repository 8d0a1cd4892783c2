"""Which result of a detector is about which object, as COCO matches them, without loops over boxes.

In each image, the results of a class take the objects of that class, the highest score first: each
the free object with which it has most in common. Objects that are not judged are taken last, and
any number of times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from darkroom.runtime.arrays import Array
from darkroom.targets.boxes.object_type import SIDES
from darkroom.targets.boxes.overlaps import compare_boxes
from darkroom.targets.boxes.results import Results

# Columns of an index that say what there is.
TRUTH_COLUMNS = ["label", "height", "width", "source_height", "source_width"]
# Results of an image and a class, as COCO counts them.
MAX_RESULTS = 100
_BLOCK_PAIRS = 1 << 20
# An index has boxes in floats of 32 bits: what has just enough in common in a list may have less.
_ROUNDING = 1e-6


class Truth(NamedTuple):
    """The objects of a dataset.

    Attributes:
        image: The places of their images in the index, int64 [N].
        label: The numbers of their classes, from 0, int64 [N].
        boxes: Left, top, right and bottom as shares of the image, float64 [4, N].
        area: In pixels of the file, float64 [N].
        is_crowd: Whether it stands for several objects, bool [N].
        is_ignored: Whether it is not judged, as a crowd or as difficult, bool [N].
        pixels: How many pixels each image of the index has in its file, float64 [images].
        is_annotated: Whether somebody looked at it, bool [images].
    """

    image: Array
    label: Array
    boxes: Array
    area: Array
    is_crowd: Array
    is_ignored: Array
    pixels: Array
    is_annotated: Array

    def take(self, images: Array) -> Truth:
        """Returns the objects of some images, which a mask of the index chooses."""
        objects = [each[..., images[self.image]] for each in self[:-2]]
        chosen: Truth = Truth._make([*objects, self.pixels[images], self.is_annotated[images]])
        return chosen._replace(image=(np.cumsum(images) - 1)[chosen.image])


class Pairs(NamedTuple):
    """Results and objects of an image that have something in common.

    Attributes:
        result: The numbers of the results, int64 [N].
        object: The numbers of the objects, int64 [N].
        share: Their intersection over union, float64 [N]; of a crowd, how much of the result is in
            it.
    """

    result: Array
    object: Array
    share: Array


def read_truth(index: pa.Table, labels: Sequence[str]) -> Truth:
    """Returns the objects of `TRUTH_COLUMNS` of an index."""
    column = index["label"].combine_chunks()
    objects, image = column.flatten(), pc.list_parent_indices(column).to_numpy()
    fields = dict(zip([each.name for each in objects.type], objects.flatten(), strict=True))
    values = {name: each.to_numpy(zero_copy_only=False) for name, each in fields.items()}
    names = pa.array([*labels], pa.string())
    sides = ("height", "width")
    stored, pixels = (
        np.prod([index[start + side].to_numpy() for side in sides], 0, np.float64)
        for start in ("", "source_")
    )
    return Truth(
        image,
        pc.index_in(fields["label"], names).to_numpy(zero_copy_only=False).astype(np.int64),
        np.stack([values[side] for side in SIDES]).astype(np.float64),
        values["area"] * (pixels / stored)[image],
        values["is_crowd"],
        values["is_crowd"] | values["difficult"],
        pixels,
        column.is_valid().to_numpy(zero_copy_only=False),
    )


def rank_results(found: Results, truth: Truth) -> tuple[Results, Array]:
    """Returns the results of annotated images by image, class and score, and their ranks there."""
    order = np.lexsort((-found.score, found.label, found.image))
    order = order[truth.is_annotated[found.image[order]]]
    found = found.take(order)
    is_next = np.diff(found.image, prepend=-1) | np.diff(found.label, prepend=-1)
    firsts = np.flatnonzero(is_next)
    rank = np.arange(len(order)) - np.repeat(firsts, np.diff([*firsts, len(order)]))
    is_kept = rank < MAX_RESULTS
    return found.take(is_kept), rank[is_kept]


def count_silent(found: Results, truth: Truth) -> int:
    """Returns how many annotated images have none of the results of annotated images."""
    return int(truth.is_annotated.sum()) - len(np.unique(found.image))


def pair_boxes(found: Results, truth: Truth, least: float, *, same_class: bool) -> Pairs:
    """Returns the pairs of an image that have at least a share in common."""
    blocks = [*_pair_blocks(found, truth, least, same_class=same_class)]
    return Pairs(*(np.concatenate(each) for each in zip(*blocks, strict=True)))


def _pair_blocks(
    found: Results, truth: Truth, least: float, *, same_class: bool
) -> Iterator[tuple[Array, ...]]:
    size = 1 + max(truth.label.max(initial=0), found.label.max(initial=0)) if same_class else 0
    wanted, there = (
        each.image * size + each.label if size else each.image for each in (found, truth)
    )
    order = np.argsort(there, kind="stable")
    first, stop = (np.searchsorted(there[order], wanted, side) for side in ("left", "right"))
    counts = stop - first
    block = np.cumsum(counts) // _BLOCK_PAIRS
    for results in np.split(np.arange(len(wanted)), np.flatnonzero(np.diff(block)) + 1):
        count = counts[results]
        one = np.repeat(results, count)
        start = np.repeat(first[results] - (np.cumsum(count) - count), count)
        other = order[start + np.arange(len(one))]
        share = _compare(found.boxes[:, one], truth.boxes[:, other], truth.is_crowd[other])
        is_near = share >= least - _ROUNDING
        yield one[is_near], other[is_near], share[is_near]


def _compare(one: Array, other: Array, is_crowd: Array) -> Array:
    share = compare_boxes(one, other)
    own, its = ((each[2] - each[0]) * (each[3] - each[1]) for each in (one, other))
    common = share * (own + its) / (1 + share)
    return np.where(is_crowd, common / np.maximum(own, np.finfo(np.float64).tiny), share)


def match_boxes(
    pairs: Pairs, rank: Array, truth: Truth, is_ignored: Array, least: Sequence[float]
) -> Array:
    """Returns the object that each result takes, int32 [results, thresholds]; -1 for none.

    Args:
        pairs: Pairs of one class, of at least the least threshold.
        rank: The rank of each result in its image and class.
        truth: The objects.
        is_ignored: Which of them are not judged.
        least: What a result must have in common with its object, at least.
    """
    taken = np.full((len(rank), len(least)), -1, np.int32)
    is_taken = np.zeros((len(truth.image), len(least)), bool)
    # Of a result the last pair that is free is the best one, if its object is judged.
    order = np.lexsort((pairs.object, pairs.share, pairs.result, rank[pairs.result]))
    result, other, share = (each[order] for each in pairs)
    ends = np.flatnonzero(np.diff(rank[result])) + 1
    bounds = np.array(least) - _ROUNDING
    for step in np.split(np.arange(len(order)), ends) if len(order) else ():
        one, objects = result[step], other[step]
        is_free = ~is_taken[objects] | truth.is_ignored[objects, None]
        is_free &= share[step, None] >= bounds
        place = 1 + np.arange(len(step)) + np.where(is_ignored[objects], 0, len(step))
        firsts = np.flatnonzero(np.diff(one, prepend=-1))
        best = np.maximum.reduceat(np.where(is_free, place[:, None], 0), firsts, 0)
        at, column = np.nonzero(best)
        chosen = objects[(best[at, column] - 1) % len(step)]
        taken[one[firsts[at]], column] = chosen
        is_taken[chosen, column] = True
    return taken
