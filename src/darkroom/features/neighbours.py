"""Finds the images whose features are most alike: candidates for near copies, of any dataset size.

Features are compared by their first principal components, each divided by its spread: what all
images of a dataset have in common counts little, and what is rare in it counts much. Where many
images are alike, a pair has to be more alike than they are (decision 39).
"""

from __future__ import annotations

import numpy as np

from darkroom.features.components import find_axes, measure_scatter, project
from darkroom.features.table import Features
from darkroom.images.near_records import Neighbours
from darkroom.runtime import progress
from darkroom.runtime.arrays import Array

NUM_NEIGHBOURS, _NUM_COMPONENTS = 20, 256
# Of fewer images each component is known less well.
_IMAGES_EACH = 4
# Of more images only those are compared that the first components say are alike.
_MAX_COMPARED = 100_000
# Images at once, so that memory is bounded: 100 MB of cosines; and those in a part of the pool.
_BLOCK, _PART = 256, 64
# Images that are nearer are equal.
_LEAST_REACH = 1e-3


def find_neighbours(features: Features) -> Neighbours:
    """Returns the pairs of images whose features are alike."""
    values, order = features.values, np.argsort(features.rows)
    rows = features.rows[order]
    if len(rows) < 2:
        nothing = np.ones((len(rows), 1), np.float32)
        return Neighbours(rows[:0], rows[:0], rows, nothing, nothing[:, 0])
    points = find_points(values, min(_NUM_COMPONENTS, max(2, len(values) // _IMAGES_EACH)))[order]
    points = scale_to_length_one(points / np.maximum(points.std(axis=0), 1e-12))
    found, reach = [], np.empty(len(rows), np.float32)
    for part in _split(points, np.arange(len(points))):
        nearest, cosines = find_nearest(points, part, part, NUM_NEIGHBOURS)
        found.append(np.stack([np.repeat(part, nearest.shape[1]), nearest.ravel()]))
        reach[part] = np.maximum(1 - cosines[:, -1], _LEAST_REACH)
    one, other = rows[np.concatenate(found, axis=1)]
    return Neighbours(one, other, rows, points, reach)


def find_points(values: Array, count: int, sample: Array | None = None) -> Array:
    """Returns features [N, D] by at most so many principal components, first the largest.

    The components are those of the sample, or of all features if it is None.
    """
    mean, scatter = measure_scatter(values if sample is None else sample)
    return project(values, mean, find_axes(scatter, count))


def scale_to_length_one(points: Array) -> Array:
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
        progress.advance(start + len(block), len(wanted), "images compared by features")
    return numbers, found


def _split(points: Array, part: Array) -> list[Array]:
    """Returns parts of which each has few enough images, halved where they differ most."""
    if len(part) <= _MAX_COMPARED:
        return [part]
    own = points[part]
    order = np.argsort(own[:, own.var(axis=0).argmax()], kind="stable")
    low, high = np.array_split(part[order], 2)
    return _split(points, low) + _split(points, high)
