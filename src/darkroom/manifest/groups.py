"""Joins rows into groups, and gives groups to splits or folds.

Pure functions of numbers: a row is a place in arrays, which are in an order that does not depend on
that of the source.
"""

from __future__ import annotations

import numpy as np

from darkroom.runtime.arrays import Array

_CHUNK_UNITS = 65_536


def join_groups(num_rows: int, rows: Array, groups: Array) -> Array:
    """Returns the first row of the group in which each row is, [N].

    Groups that share a row are one.

    Args:
        num_rows: N, the number of rows.
        rows: A row of each membership, [M].
        groups: Its group, a number from 0, [M].
    """
    first = np.arange(num_rows)
    if not len(rows):
        return first
    while True:
        least = np.full(groups.max() + 1, num_rows)
        np.minimum.at(least, groups, first[rows])
        joined = first.copy()
        np.minimum.at(joined, first[rows], least[groups])
        # Rows follow the first row of their group to the first row of that one's.
        while not np.array_equal(joined, followed := joined[joined]):
            joined = followed
        if np.array_equal(joined, first):
            return first
        first = joined


def deal_units(units: Array, classes: Array, lacking: Array) -> tuple[Array, Array]:
    """Gives units to bins: the largest first, each to the bin that lacks most of its classes.

    What a bin lacks of a class counts as a share of what all lack, so rare classes count as much as
    frequent ones. Where bins lack the same, the one with most room for rows gets the unit. With
    units of one row, no bin ends a whole row away from what it lacked, if all together lack as many
    rows as there are.

    Args:
        units: The unit of each row, [N]; of units of one size, those with small numbers come first.
        classes: The class of each row, [N].
        lacking: How many rows of each class each bin lacks, [C, B]; -inf where it gets none.

    Returns:
        The numbers of the units, and their bins, [U] each.
    """
    num_classes = len(lacking)
    pairs, counts = np.unique(units * num_classes + classes, return_counts=True)
    found, starts, lengths = np.unique(pairs // num_classes, return_index=True, return_counts=True)
    kinds, totals = pairs % num_classes, np.bincount(classes, minlength=num_classes).tolist()
    sizes = np.add.reduceat(counts, starts)
    order = np.argsort(-sizes, kind="stable")
    rest, room, chosen = lacking.tolist(), lacking.sum(axis=0).tolist(), np.zeros_like(found)
    for part in np.array_split(order, len(order) // _CHUNK_UNITS + 1):
        columns = part, starts[part], lengths[part], kinds[starts[part]], sizes[part]
        for unit, start, length, kind, size in zip(*map(np.ndarray.tolist, columns), strict=True):
            if length == 1:
                scores, mine = rest[kind], [(kind, size)]
            else:
                own = slice(start, start + length)
                mine = [*zip(kinds[own].tolist(), counts[own].tolist(), strict=True)]
                scores = [
                    sum(count / totals[each] * rest[each][place] for each, count in mine)
                    for place in range(len(room))
                ]
            best = scores.index(max(scores))
            if scores.count(scores[best]) > 1:
                ties = [place for place, score in enumerate(scores) if score == scores[best]]
                best = max(ties, key=room.__getitem__)
            chosen[unit] = best
            room[best] -= size
            for each, count in mine:
                rest[each][best] -= count
    return found, chosen
