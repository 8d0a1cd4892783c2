"""What every kind of target says about doubt: which targets of images are probably wrong."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple, Protocol

import numpy as np

from darkroom.runtime.arrays import Array

# Fewer images of a label cannot tell what it looks like.
MIN_IMAGES = 5
# A target is suspected below the first share of the probability that is usual for its label; below
# the second, if all others of its label are so alike that it stands out by 4 standard deviations of
# log odds. Of 874 photographs as they are, some 1 % then are (decision 40).
_LIMIT, _LIMIT_APART, _APART = 0.03, 0.1, 4.0
# 1.4826 times the median distance is the standard deviation of a normal distribution.
NORMAL = 1.4826
# Tjur's coefficient of discrimination, and the share of the variance that is explained: below it,
# the images do not tell a label, or a number.
LEAST_EXPLAINED = 0.1


class Doubts(NamedTuple):
    """The targets that are probably wrong, the worst first.

    Attributes:
        images: Numbers of the images, int64 [M].
        suggested: What is probably right, for each, as the index has it.
        scores: How likely each target is, or how far from what was expected; float [M].
        untold: Names of the labels or numbers that the images do not tell, which are not judged.
    """

    images: Array
    suggested: Sequence[Any]
    scores: Array
    untold: Sequence[str]


class Suspecting(Protocol):
    """How a kind of target is foretold from features, by K values an image.

    A foretold value is `activate` of the mean of a linear function and `invert` of what the
    neighbours have.

    Attributes:
        score: What `Doubts.scores` are called.
        curvature: The most by which `activate` changes where its input changes by 1.
        has_classes: Whether exactly one value of an image is 1, and the others are 0.
    """

    score: str
    curvature: float
    has_classes: bool = False

    def encode(self, targets: Array, names: Sequence[str]) -> Array:
        """Returns what is foretold, float32 [N, K], with NaN where nothing is known.

        Args:
            targets: What `TargetKind.make_array` gives.
            names: The labels, or the names of the numbers.
        """

    def activate(self, values: Array) -> Array:
        """Returns what a linear function foretells."""

    def invert(self, shares: Array) -> Array:
        """Returns what `activate` makes shares of."""

    def judge(self, given: Array, told: Array, targets: Array, names: Sequence[str]) -> Doubts:
        """Returns which targets are probably wrong.

        Args:
            given: From `encode`.
            told: What was foretold, float [N, K].
            targets: As for `encode`.
            names: As for `encode`.
        """


def find_suspecting(name: str) -> Suspecting:
    """Returns what a kind says about doubt."""
    suspecting: Suspecting = import_module(f"darkroom.targets.{name}.suspects").SUSPECTING
    return suspecting


def suspect_classes(given: Array, told: Array) -> tuple[Array, Array, Array]:
    """Compares the given classes with the likely ones.

    Args:
        given: Number of the class of each image, int64 [N]; -1 where it is not known.
        told: The probabilities of the classes, float [N, K].

    Returns:
        Whether each image is suspected, the probability of its given class, and which classes the
        images do not tell.
    """
    size = told.shape[1]
    known = np.flatnonzero(given >= 0)
    own = np.ones(len(given))
    own[known] = told[known, given[known]]
    usual, limits, elsewhere = np.zeros(size), np.zeros(size), np.zeros(size)
    for number in np.unique(given[known]):
        is_own = given[known] == number
        mine, others = told[known[is_own], number], told[known[~is_own], number]
        usual[number], elsewhere[number] = mine.mean(), others.mean() if len(others) else 0
        odds = np.log(mine + 1e-9) - np.log(1 - mine + 1e-9)
        middle = np.median(odds)
        apart = middle - _APART * NORMAL * np.median(abs(odds - middle))
        most = min(1 / (1 + np.exp(-apart)), _LIMIT_APART * usual[number])
        limits[number] = max(most, _LIMIT * usual[number])
    untold = (usual > 0) & (usual - elsewhere < LEAST_EXPLAINED)
    # Nor is a class suggested that the images do not tell.
    likely = told.argmax(1)
    suspected = (own < limits[given]) & (likely != given) & ~untold[given] & ~untold[likely]
    return suspected & (given >= 0), own, untold
