"""Finds the images whose features are most alike: candidates for near copies, of any dataset size.

The first principal components hold what tells images apart; they find 99 % of what all numbers
find, in a twentieth of the time.
"""

from __future__ import annotations

import numpy as np

from darkroom.features.components import Array, find_axes, measure_scatter, project
from darkroom.features.table import Features

NUM_NEIGHBOURS, _NUM_COMPONENTS = 20, 64
# Of more images only those are compared that the first components say are alike.
_MAX_COMPARED = 100_000
# Images at once, so that memory is bounded: 100 MB of cosines; and those in a part of the pool.
_BLOCK, _PART = 256, 64


def find_neighbours(features: Features) -> tuple[Array, Array]:
    """Returns pairs of images whose features are alike: the twenty nearest of each one.

    Returns:
        The column `row` of the index of the one image and of the other one, int64 [pairs]. The
        nearest of each image come first. A pair may come twice.
    """
    values, rows = features.values, features.rows
    if len(rows) < 2:
        return rows[:0], rows[:0]
    mean, scatter = measure_scatter(values)
    points = scale(project(values, mean, find_axes(scatter, _NUM_COMPONENTS)))
    parts = _split(points, np.arange(len(points)))
    found = [find_nearest(points, part, part, NUM_NEIGHBOURS) for part in parts]
    nearest, cosines = map(np.concatenate, zip(*found, strict=True))
    order = np.argsort(-cosines, axis=0, kind="stable")
    ends = np.concatenate(parts)[order], np.take_along_axis(nearest, order, axis=0)
    one, other = (rows[each.T.ravel()] for each in ends)
    return one, other


def scale(points: Array) -> Array:
    """Returns points with the length 1, so that products are cosines."""
    # An image that is like the mean of all is like no other.
    scaled: Array = points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-12)
    return scaled


def find_nearest(points: Array, wanted: Array, pool: Array, count: int) -> tuple[Array, Array]:
    """Finds the nearest others of points of length 1, among a pool; both are given by number.

    Returns:
        Numbers of the nearest, int64 [wanted, count], the nearest first, and cosines, float32. Of a
        small pool, they are fewer.
    """
    count = min(count, len(pool) - 1)
    pool = np.pad(pool, (0, -len(pool) % _PART), constant_values=-1)
    others, step = points[pool], len(pool) // _PART
    numbers, found = np.empty((len(wanted), count), np.int64), np.empty((len(wanted), count), "f4")
    for start in range(0, len(wanted), _BLOCK):
        block = wanted[start : start + _BLOCK]
        cosines = points[block] @ others.T
        cosines[block[:, None] == pool] = -np.inf
        cosines[:, pool < 0] = -np.inf
        # The nearest are in the parts that have the nearest, so only these are sorted.
        best = cosines.reshape(len(block), _PART, step).max(axis=1)
        parts = np.argpartition(-best, min(count, step) - 1, axis=1)[:, :count, None]
        near = (parts + step * np.arange(_PART)).reshape(len(block), -1)
        order = np.argsort(-np.take_along_axis(cosines, near, 1), 1, kind="stable")[:, :count]
        near = np.take_along_axis(near, order, 1)
        numbers[start : start + _BLOCK] = pool[near]
        found[start : start + _BLOCK] = np.take_along_axis(cosines, near, 1)
    return numbers, found


def _split(points: Array, part: Array) -> list[Array]:
    """Returns parts of which each has few enough images, halved where they differ most."""
    if len(part) <= _MAX_COMPARED:
        return [part]
    own = points[part]
    order = np.argsort(own[:, own.var(axis=0).argmax()], kind="stable")
    low, high = np.array_split(part[order], 2)
    return _split(points, low) + _split(points, high)
