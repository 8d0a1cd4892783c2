"""Whether the output of a model is probabilities, and probabilities of logits."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from darkroom.errors import DataError
from darkroom.targets.scoring import Floats, check_finite

# How far the sum of the probabilities of an image may be from 1.
SUM_TOLERANCE = 1e-3


def are_probabilities(scores: Floats, tolerance: float = SUM_TOLERANCE) -> bool:
    """Tells whether each row of scores [N, C] is within 0 and 1, and has a sum of 1.

    Args:
        scores: The scores.
        tolerance: How far the sum may be from 1, and a score outside of 0 and 1.
    """
    return bool(_are_distributions(scores, tolerance).all())


def _are_distributions(scores: Floats, tolerance: float) -> npt.NDArray[np.bool_]:
    """Tells of each row whether it is probabilities, bool [N]."""
    # A mean of probabilities may be 1.0000001.
    is_within = (scores >= -tolerance) & (scores <= 1 + tolerance)
    is_one = abs(scores.sum(axis=1, dtype=np.float64) - 1) <= tolerance
    return np.asarray(is_within.all(axis=1) & is_one)


def make_probabilities(scores: Floats, model_dir: str, *, from_logits: bool) -> Floats:
    """Returns the probabilities of an exported model's output, [N, C].

    Args:
        scores: Its output.
        model_dir: The folder of its SavedModel.
        from_logits: Whether that is logits.

    Raises:
        DataError: It is not finite, not probabilities, or not logits.
    """
    check_finite(scores)
    is_right = _are_distributions(scores, SUM_TOLERANCE)
    if not len(scores) or is_right.all() != from_logits:
        if not from_logits:
            return scores
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        found: Floats = powers / powers.sum(axis=1, keepdims=True)
        return found
    # The first row that is wrong; where all are probabilities, the first of all.
    shown = ", ".join(f"{each:.4g}" for each in scores[is_right.argmin(), :5])
    if from_logits:
        raise DataError(
            f"from_logits is True, but the model in {model_dir} gives probabilities: {shown}.",
            "Leave out from_logits.",
        )
    raise DataError(
        f"The model in {model_dir} does not give probabilities: for an image {shown}, "
        "expected numbers from 0 to 1 with a sum of 1.",
        "If they are logits, export it again with export_model(..., from_logits=True). Until then, "
        "evaluate and predict of Python take from_logits=True, too.",
    )
