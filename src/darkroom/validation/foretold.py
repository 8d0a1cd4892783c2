"""What the other images tell about each image: a linear head and the neighbours, on features.

Nothing of what is told about an image was learned from it, or from an image that looks the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from darkroom.features.components import find_axes, measure_scatter, project
from darkroom.features.neighbours import find_nearest, scale_to_length_one
from darkroom.runtime.arrays import Array
from darkroom.targets.suspects import Suspecting

NUM_FOLDS = 5
# Principal components that the head sees, and those by which neighbours are found.
_HEAD_AXES, _LOOK_AXES = 256, 128
# As in scikit-learn: the smaller, the smaller the weights.
_C = 0.02
# How much of the scatter is spread over all axes, and how much less sure a discriminant is than it
# says: its images are not of a normal distribution (decision 40).
_SPREAD, _SURE = 0.6, 0.3
# After them, probabilities differ by less than 0.01 from those of a search without an end.
_STEPS = 100
_SEARCHED, _VOTERS = 30, 20
# Cosine from which two images may be copies: neither teaches the other.
_SAME = 0.9
# Images that are foretold at once, and those that may be neighbours of the others: they bound the
# memory, and the time for a million images.
_BLOCK, _MOST_VOTERS = 1_024, 100_000


class Looks(NamedTuple):
    """Images as the head sees them, and their neighbours.

    Attributes:
        axes: float32 [N, A], principal components of the standardised features.
        neighbours: Numbers of the nearest other images, int64 [N, 30], the nearest first.
        votes: Their weights, float32 [N, 30]: 0 for copies and all but the nearest 20.
        folds: The part of each image, uint8 [N].
    """

    axes: Array
    neighbours: Array
    votes: Array
    folds: Array


def compare_looks(values: Array, contents: Array) -> Looks:
    """Prepares features, which takes minutes for 100,000 images.

    Args:
        values: The features, float32 [N, D], N of at least 2.
        contents: Equal where images have the same pixels, [N].
    """
    random = np.random.default_rng(0)
    mean, scatter = measure_scatter(values)
    spread = np.sqrt(np.diag(scatter) / len(values))
    spread[spread == 0] = np.inf
    head = find_axes(scatter / np.outer(spread, spread), _HEAD_AXES) / spread[:, None]
    both = np.column_stack([head, find_axes(scatter, _LOOK_AXES)])
    axes, looks = np.split(project(values, mean, both), [head.shape[1]], axis=1)
    pool = all_images = np.arange(len(values))
    if len(pool) > _MOST_VOTERS:
        pool = np.sort(random.choice(pool, _MOST_VOTERS, replace=False))
    neighbours, cosines = find_nearest(scale_to_length_one(looks), all_images, pool, _SEARCHED)
    same = (cosines >= _SAME) | (contents[neighbours] == contents[:, None])
    votes = np.where(same, 0, np.maximum(cosines, 0) ** 3)
    votes[np.cumsum(~same, 1) > _VOTERS] = 0
    # Images of one group are in one fold: those of one content, and those that look like its first.
    _, groups = np.unique(contents, return_inverse=True)
    closest = np.where(same, groups[neighbours], groups[:, None]).min(1, initial=len(values))
    first = all_images.copy()
    np.minimum.at(first, groups, closest)
    folds = random.permutation(len(values))[first[groups]] % NUM_FOLDS
    return Looks(axes, neighbours, votes, folds.astype(np.uint8))


def foretell(looks: Looks, given: Array, kind: Suspecting) -> Array:
    """Foretells what images are labelled with, each from images of the other folds and neighbours.

    Args:
        looks: The images.
        given: float32 [N, K]; NaN where nothing is known.
        kind: How their target is foretold.

    Returns:
        float32 [N, K].
    """
    known = ~np.isnan(given)
    clean = np.where(known, given, 0)
    told = np.empty_like(clean)
    for fold in range(NUM_FOLDS):
        inside = looks.folds == fold
        taught = ~inside & known.any(1)
        weights = _fit(looks.axes[taught], clean[taught], known[taught], kind)
        if kind.has_classes:
            weights = (weights + _discriminate(looks.axes[taught], clean[taught])) / 2
        told[inside] = looks.axes[inside] @ weights[:-1] + weights[-1]
    # What all images have counts as much as a weak neighbour: some images have no other.
    common = clean.sum(0) / np.maximum(known.sum(0), 1)
    for start in range(0, len(told), _BLOCK):
        block = slice(start, start + _BLOCK)
        votes, several = looks.votes[block, :, None], looks.neighbours[block]
        sums = (votes * clean[several]).sum(1) + 1e-3 * common
        shares = sums / ((votes * known[several]).sum(1) + 1e-3)
        told[block] = kind.activate((told[block] + kind.invert(shares)) / 2)
    return told


def _fit(axes: Array, given: Array, known: Array, kind: Suspecting) -> Array:
    """Returns the weights of a linear head, [A + 1, K], with the constant last.

    The axes are uncorrelated, so each has a step of its own, which never is too long; Nesterov's
    momentum shortens the way, and starts again when it leads astray.
    """
    axes = np.column_stack([axes, np.ones(len(axes), np.float32)])
    penalty = np.full((axes.shape[1], 1), 1 / _C, np.float32)
    penalty[-1] = 1e-6
    step = 1 / (kind.curvature * np.square(axes).sum(0)[:, None] + penalty)
    weights = ahead = np.zeros((axes.shape[1], given.shape[1]), np.float32)
    pace = 1.0
    for _ in range(_STEPS):
        slope = axes.T @ ((kind.activate(axes @ ahead) - given) * known) + penalty * ahead
        moved = ahead - step * slope
        if np.vdot(ahead - moved, moved - weights) > 0:
            pace = 1.0
        faster = (1 + np.sqrt(1 + 4 * pace * pace)) / 2
        ahead = moved + np.float32((pace - 1) / faster) * (moved - weights)
        weights, pace = moved, faster
    return weights


def _discriminate(axes: Array, given: Array) -> Array:
    """Returns Fisher's linear discriminant of classes, [A + 1, K], with the constant last.

    It knows only the means of classes and how images scatter around them, so a few wrong labels, or
    copies that share one, move it less than a head that learns each of them.
    """
    counts = np.maximum(given.sum(0), 1e-3)
    centers = given.T @ axes / counts[:, None]
    rest = axes - given @ centers
    scatter = rest.T @ rest / len(axes)
    even = np.eye(len(scatter), dtype=np.float32) * max(scatter.trace() / len(scatter), 1e-12)
    scatter = (1 - _SPREAD) * scatter + _SPREAD * even
    slopes = np.linalg.solve(scatter, centers.T)
    constant = np.log(counts / len(axes)) - (centers.T * slopes).sum(0) / 2
    weights: Array = _SURE * np.vstack([slopes, constant])
    return weights
