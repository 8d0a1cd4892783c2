"""From which score an image has a label: the threshold with the highest F1; plain NumPy."""

from __future__ import annotations

import numpy as np

from darkroom.targets.labels.metrics import Bools, rank_images
from darkroom.targets.scoring import Floats

# A label with fewer images, or that fewer images lack, has the threshold of all labels together.
_LEAST = 10
_UNKNOWN = 0.5


def choose_thresholds(scores: Floats, truth: Floats) -> tuple[float, ...]:
    """Returns the threshold of each label.

    Args:
        scores: [N, C], the probability of each label.
        truth: [N, C], 1 for each label of an image, else 0; NaN in all of them if it is not
            annotated.
    """
    is_known = ~np.isnan(truth).any(axis=1)
    scores, has = scores[is_known], truth[is_known] > 0
    common = _find_best(scores.ravel(), has.ravel())
    return tuple(
        _find_best(scores[:, label], has[:, label])
        if _LEAST <= has[:, label].sum() <= len(has) - _LEAST
        else common
        for label in range(scores.shape[1])
    )


def _find_best(scores: Floats, has: Bools) -> float:
    """Returns the threshold with the highest F1, in the middle between two scores."""
    if not has.any():
        return _UNKNOWN
    scores, found, is_last = rank_images(scores.astype(np.float64), has)
    f1 = 2 * found / (np.arange(1, len(scores) + 1) + has.sum())
    best = int(np.where(is_last, f1, -1).argmax())
    following = scores[best + 1] if best + 1 < len(scores) else 0.0
    return round(float((scores[best] + following) / 2), 6)
