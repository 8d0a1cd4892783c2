"""Tells by their pixels whether images are copies, also cropped, turned or mirrored.

Key points that both have say where the one is in the other; then the pixels are compared. Two
images before the same wall have many key points in common, too. So it is asked whether most parts
of the overlap are alike, not only the whole. Text, a bar or a logo may hide the others, if those
that are left are nearly equal.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import NamedTuple

import numpy as np

from darkroom.runtime.arrays import Array
from darkroom.runtime.lazy_names import is_installed

COMPARED_SIDE = 320
# Tells pairs of which a part is covered from others, by one number.
COVERED = 2.0
_MAX_POINTS, _FAST_LEVELS = 700, 7
# Text has so many strong key points that others are found, too, and chosen evenly from 4 x 4 cells.
_NUM_FOUND, _NUM_CELLS = 1_000, 4
# An image with fewer key points has too little to be sure about.
_MIN_POINTS = 12
# A key point is found again if the second best is worse by far.
_MAX_RATIO = 0.8
# The first key points are compared first: most pairs that are not copies have fewer of them in
# common, and 98 % of the crops of 75 % have as many (decision 39).
_NUM_FIRST, _MIN_FIRST = 300, 14
_MIN_MATCHES, _MAX_PIXELS = 10, 3.0
_MAX_SCALE = 4.0
# Shares of the smaller image that overlap, and parts of the overlap in each direction.
_MIN_OVERLAP, _NUM_PARTS = 0.2, 4
# Pixels that are wholly in both images.
_WHOLE = 250
# How alike the whole overlap is, three quarters of its parts and half of them; or six of ten, where
# something covers the others.
_MIN_WHOLE, _MIN_MOST, _MIN_HALF, _MIN_UNCOVERED = 0.85, 0.7, 0.86, 0.92
# A part is plain if its levels differ less; small parts say nothing.
_MIN_LEVELS, _MIN_PART = 5.0, 20


class Sketch(NamedTuple):
    """What is kept of an image for comparisons.

    Attributes:
        gray: uint8 [height, width], half of the size where key points are.
        points: float32 [K, 2], x and y, first the strongest of each cell.
        marks: uint8 [K, 32], a descriptor of each.
    """

    gray: Array
    points: Array
    marks: Array


def can_align() -> bool:
    """Whether OpenCV is installed."""
    return is_installed("cv2")


@cache
def _load_opencv() -> ModuleType:
    import cv2

    # It would start threads for each image, beside those that compare.
    cv2.setNumThreads(1)
    return cv2


def make_sketch(gray: Array, *, mirrored: bool = False) -> Sketch:
    """Finds the key points of an image.

    Args:
        gray: uint8 [height, width], of any size.
        mirrored: Mirror the image first.
    """
    cv2 = _load_opencv()
    factor = COMPARED_SIDE / max(gray.shape)
    way = cv2.INTER_AREA if factor < 1 else cv2.INTER_LINEAR
    sides = [max(2, round(side * factor)) for side in reversed(gray.shape)]
    gray = cv2.resize(gray, sides, interpolation=way)
    if mirrored:
        gray = cv2.flip(gray, 1)
    finder = cv2.ORB_create(nfeatures=_NUM_FOUND, fastThreshold=_FAST_LEVELS)
    points, marks = finder.detectAndCompute(gray, None)
    half = cv2.resize(gray, [side // 2 for side in sides], interpolation=cv2.INTER_AREA)
    if marks is None:
        return Sketch(half, np.empty((0, 2), np.float32), np.empty((0, 32), np.uint8))
    places = cv2.KeyPoint_convert(points)
    order = _spread(places, np.array([point.response for point in points]), sides)
    return Sketch(half, places[order], marks[order])


def _spread(places: Array, strengths: Array, sides: list[int]) -> Array:
    """Returns the numbers of the key points to keep: the strongest of each cell come first."""
    column, row = (places * _NUM_CELLS / sides).astype(int).T
    cell = row * _NUM_CELLS + column
    order = np.lexsort([-strengths, cell])
    cells = cell[order]
    rank = np.empty(len(order), int)
    rank[order] = np.arange(len(order)) - np.searchsorted(cells, cells)
    kept: Array = np.lexsort([-strengths, rank])[:_MAX_POINTS]
    return kept


def compare(one: Sketch, other: Sketch) -> float:
    """Returns how alike two images are where they overlap.

    Returns:
        The correlation of their pixels, at most 1, or where something covers most of the rest that
        of what it leaves; `COVERED` more where something covers a part of one of them. 0 if they
        are not copies; NaN where one of them has too few key points to tell.
    """
    if min(len(one.points), len(other.points)) < _MIN_POINTS:
        return np.nan
    first = (each.marks[:_NUM_FIRST] for each in (one, other))
    has_many = min(len(one.points), len(other.points)) > _NUM_FIRST
    if has_many and len(_match(*first)[0]) < _MIN_FIRST:
        return 0.0
    mine, others = _match(one.marks, other.marks)
    if len(mine) < _MIN_MATCHES:
        return 0.0
    cv2 = _load_opencv()
    matrix, is_inlier = cv2.estimateAffinePartial2D(
        other.points[others], one.points[mine], ransacReprojThreshold=_MAX_PIXELS
    )
    if matrix is None or np.count_nonzero(is_inlier) < _MIN_MATCHES:
        return 0.0
    scale = float(np.hypot(*matrix[:, 0]))
    if not 1 / _MAX_SCALE < scale < _MAX_SCALE:
        return 0.0
    matrix[:, 2] /= 2  # Pixels are compared at half of the size.
    sides = one.gray.shape[::-1]
    way = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    moved = cv2.warpAffine(other.gray, matrix, sides, flags=way)
    is_both = cv2.warpAffine(np.full_like(other.gray, 255), matrix, sides) > _WHOLE
    smaller = min(one.gray.size, other.gray.size * scale * scale)
    if np.count_nonzero(is_both) < _MIN_OVERLAP * smaller:
        return 0.0
    return _correlate_parts(one.gray, moved, is_both)


def _match(one: Array, other: Array) -> tuple[Array, Array]:
    """Returns the numbers of the key points that both have, in the one image and in the other."""
    cv2 = _load_opencv()
    distances, nearest = cv2.batchDistance(one, other, cv2.CV_32S, normType=cv2.NORM_HAMMING, K=2)
    mine = np.flatnonzero(distances[:, 0] < _MAX_RATIO * distances[:, 1])
    return mine, nearest[mine, 0]


def _correlate_parts(one: Array, other: Array, is_both: Array) -> float:
    """Returns the correlation of the overlap, or of what is not covered; 0 if they are unlike."""
    down, across = np.flatnonzero(is_both.any(axis=1)), np.flatnonzero(is_both.any(axis=0))
    box = np.s_[down[0] : down[-1] + 1, across[0] : across[-1] + 1]
    values = []
    images = (each[box].astype(np.float32) for each in (one, other, is_both))
    for rows in zip(*(np.array_split(each, _NUM_PARTS) for each in images), strict=True):
        columns = (np.array_split(each, _NUM_PARTS, axis=1) for each in rows)
        for a, b, both in zip(*columns, strict=True):
            a, b = a[both > 0], b[both > 0]
            if a.size >= _MIN_PART and max(a.std(), b.std()) >= _MIN_LEVELS:
                values.append(_correlate(a, b))
    whole = _correlate(one[is_both], other[is_both])
    least, most, uncovered, half = np.quantile(values or 0.0, [0, 0.25, 0.4, 0.5])
    is_rest_alike = bool(uncovered >= _MIN_UNCOVERED)
    if whole < _MIN_WHOLE or most < _MIN_MOST or half < _MIN_HALF:
        whole = float(uncovered) * is_rest_alike
    return whole + COVERED * (is_rest_alike and bool(least < _MIN_MOST))


def _correlate(one: Array, other: Array) -> float:
    one, other = one - one.mean(), other - other.mean()
    product = float(np.sqrt((one * one).sum() * (other * other).sum()))
    return float((one * other).sum()) / product if product else 0.0
