"""Doubt about one label an image: another label is far more likely."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from darkroom.runtime.arrays import Array
from darkroom.targets.suspects import MIN_IMAGES, Doubts, Suspecting, suspect_classes

# Each class gets a little of the votes that neighbours may have for others alone.
_UNSEEN = 0.02


class LabelSuspecting(Suspecting):
    """See `darkroom.targets.suspects.Suspecting`; the values are the classes' probabilities."""

    score = "probability"
    curvature = 0.5
    has_classes = True

    def encode(self, targets: Array, names: Sequence[str]) -> Array:
        """Returns 1 for the class of an image and 0 for others; a class with few is unknown."""
        found = np.zeros((len(targets), len(names)), np.float32)
        found[np.arange(len(targets)), targets] = 1
        found[np.bincount(targets, minlength=len(names))[targets] < MIN_IMAGES] = np.nan
        return found

    def activate(self, values: Array) -> Array:
        """Returns the softmax."""
        powers: Array = np.exp(values - values.max(1, keepdims=True))
        powers /= powers.sum(1, keepdims=True)
        return powers

    def invert(self, shares: Array) -> Array:
        """Returns logarithms."""
        logarithms: Array = np.log(shares * (1 - _UNSEEN) + _UNSEEN / shares.shape[1])
        return logarithms

    def judge(self, given: Array, told: Array, targets: Array, names: Sequence[str]) -> Doubts:
        """Suggests the most likely label."""
        classes = np.where(np.isnan(given[:, 0]), -1, targets)
        suspected, own, untold = suspect_classes(classes, told)
        images = np.flatnonzero(suspected)
        images = images[np.argsort(own[images], kind="stable")]
        suggested = [names[number] for number in told[images].argmax(1)]
        return Doubts(images, suggested, own[images], [names[n] for n in np.flatnonzero(untold)])


SUSPECTING = LabelSuspecting()
