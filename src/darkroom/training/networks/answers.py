"""Whether a Keras model gives probabilities, tried with images of noise before anyone uses it."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from darkroom.errors import UsageError
from darkroom.targets.label.probabilities import SUM_TOLERANCE, are_probabilities

_NUM_IMAGES = 2
# The sum of float16 probabilities is less exact.
_HALF_TOLERANCE = 1e-2


def check_answers(
    model: Any,
    name: str,
    image_size: tuple[int, int],
    num_classes: int,
    *,
    from_logits: bool = False,
    hint: str = "End the model with a softmax.",
) -> None:
    """Checks the output of a model.

    Args:
        model: A Keras model, uint8 [N, height, width, 3] to [N, C].
        name: How the error calls it.
        image_size: (height, width) in pixels.
        num_classes: C, the number of labels.
        from_logits: Whether it must give logits.
        hint: What to do where it gives no probabilities.

    Raises:
        UsageError: It gives scores of another shape, no probabilities, or no logits.
    """
    noise = np.random.default_rng(0).integers(0, 256, (_NUM_IMAGES, *image_size, 3), np.uint8)
    given = model(noise, training=False)
    if not tf.is_tensor(given) or given.shape != (_NUM_IMAGES, num_classes):
        shown = [1, *given.shape[1:]] if tf.is_tensor(given) else f"a {type(given).__name__}"
        raise UsageError(
            f"{name} gives {shown} for one image, expected [1, {num_classes}].",
            f"End the model with a layer of {num_classes} units, one for each label.",
        )
    tolerance = _HALF_TOLERANCE if is_half(given) else SUM_TOLERANCE
    scores = tf.cast(given, tf.float32).numpy()
    # Values that are not finite are found where they are scored.
    if not np.isfinite(scores).all() or are_probabilities(scores, tolerance) != from_logits:
        return
    raise UsageError(
        f"{name} {'gives' if from_logits else 'does not give'} probabilities: "
        f"{scores[0, :5].tolist()}... for an image of noise.",
        "Leave out from_logits." if from_logits else hint,
    )


def is_half(scores: Any) -> bool:
    """Tells whether a model gives numbers of half the precision."""
    return bool(scores.dtype in (tf.float16, tf.bfloat16))
