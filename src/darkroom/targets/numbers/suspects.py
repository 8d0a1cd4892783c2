"""Doubt about numbers: they are far from what the images tell."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from darkroom.runtime.arrays import Array
from darkroom.targets.suspects import LEAST_EXPLAINED, MIN_IMAGES, NORMAL, Doubts, Suspecting

# In standard deviations of the differences. Of differences with a normal distribution, it suspects
# one in 500 million.
_LIMIT = 6.0
# What is learned of a number that may be wrong by a factor of a thousand, in standard deviations.
_MOST = 5.0


class NumbersSuspecting(Suspecting):
    """See `darkroom.targets.suspects.Suspecting`; the values are numbers in usual deviations."""

    score = "z"
    curvature = 1.0

    def encode(self, targets: Array, names: Sequence[str]) -> Array:
        """Returns the distances from the medians; numbers without any, or few, are unknown."""
        middle, spread = _measure(targets)
        usable = (spread > 0) & ((~np.isnan(targets)).sum(0) >= MIN_IMAGES)
        scaled: Array = (targets - middle) / np.where(usable, spread, np.nan)
        return scaled.clip(-_MOST, _MOST).astype(np.float32)

    def activate(self, values: Array) -> Array:
        """Returns the values."""
        return values

    def invert(self, shares: Array) -> Array:
        """Returns the shares."""
        return shares

    def judge(self, given: Array, told: Array, targets: Array, names: Sequence[str]) -> Doubts:
        """Suggests the numbers of an image with those that are suspected as they were foretold."""
        middle, spread = _measure(targets)
        right, worst, untold = targets.copy(), np.zeros(len(given)), []
        for column, name in enumerate(names):
            known = np.flatnonzero(~np.isnan(given[:, column]))
            if not len(known):
                continue
            error = given[known, column] - told[known, column]
            if np.square(error).mean() > (1 - LEAST_EXPLAINED) * given[known, column].var():
                untold.append(name)
                continue
            expected = told[known, column] * spread[column] + middle[column]
            error = targets[known, column] - expected
            shift, deviation = _measure(error)
            far = abs(error - shift) / max(deviation, np.finfo(np.float32).tiny)
            suspected = far > _LIMIT
            right[known[suspected], column] = expected[suspected]
            worst[known[suspected]] = np.maximum(worst[known], far)[suspected]
        images = np.flatnonzero(worst)
        images = images[np.argsort(-worst[images], kind="stable")]
        suggested = [[float(f"{number:.4g}") for number in right[n]] for n in images]
        return Doubts(images, suggested, worst[images], untold)


def _measure(values: Array) -> tuple[Array, Array]:
    """Returns the medians and the usual deviations of columns, without the missing numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column may have no number
        middle = np.nanmedian(values, 0)
        return middle, NORMAL * np.nanmedian(abs(values - middle), 0)


SUSPECTING = NumbersSuspecting()
