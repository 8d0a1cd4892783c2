"""Doubt about several labels an image: each of them is a question of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from darkroom.runtime.arrays import Array
from darkroom.targets.suspects import MIN_IMAGES, Doubts, Suspecting, suspect_classes

_UNSEEN = 0.02


class LabelsSuspecting(Suspecting):
    """See `darkroom.targets.suspects.Suspecting`; a value is the probability of a label."""

    score = "probability"
    curvature = 0.25

    def encode(self, targets: Array, names: Sequence[str]) -> Array:
        """Returns the targets; labels that few images have, or do not have, are unknown."""
        counts = [(targets == value).sum(0) for value in (0, 1)]
        found: Array = np.where(np.minimum(*counts) < MIN_IMAGES, np.float32(np.nan), targets)
        return found

    def activate(self, values: Array) -> Array:
        """Returns the logistic function."""
        found: Array = 1 / (1 + np.exp(-np.clip(values, -60, 60)))
        return found

    def invert(self, shares: Array) -> Array:
        """Returns log odds."""
        odds = shares * (1 - _UNSEEN) + _UNSEEN / 2
        found: Array = np.log(odds / (1 - odds))
        return found

    def judge(self, given: Array, told: Array, targets: Array, names: Sequence[str]) -> Doubts:
        """Suggests the labels of an image with those changed that are suspected."""
        right, own, untold = targets == 1, np.ones(len(given)), []
        for column, name in enumerate(names):
            known = ~np.isnan(given[:, column])
            classes = np.where(known, right[:, column], -1)
            both = np.column_stack([1 - told[:, column], told[:, column]])
            suspected, probability, is_untold = suspect_classes(classes, both)
            right[:, column] ^= suspected
            own[suspected] = np.minimum(own[suspected], probability[suspected])
            if is_untold.any():
                untold.append(name)
        images = np.flatnonzero(own < 1)
        images = images[np.argsort(own[images], kind="stable")]
        suggested = [[names[number] for number in np.flatnonzero(right[n])] for n in images]
        return Doubts(images, suggested, own[images], untold)


SUSPECTING = LabelsSuspecting()
