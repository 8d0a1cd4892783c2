"""Whether a Keras model gives the answers of its head, tried with noise before anyone uses it."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from darkroom.errors import UsageError
from darkroom.targets.head import Head, is_half
from darkroom.targets.label.probabilities import SUM_TOLERANCE

_NUM_IMAGES = 2
# The sum of float16 probabilities is less exact.
_HALF_TOLERANCE = 1e-2


def check_answers(
    model: Any,
    name: str,
    image_size: tuple[int, int],
    head: Head,
    *,
    from_logits: bool = False,
    more: str = "",
) -> None:
    """Checks the output of a model.

    Args:
        model: A Keras model, uint8 [N, height, width, 3] to [N, C].
        name: How the error calls it.
        image_size: (height, width) in pixels.
        head: What it learns; C is its size.
        from_logits: Whether it must give logits.
        more: What else than a last layer helps where it gives no probabilities.

    Raises:
        UsageError: It gives answers of another shape, no probabilities, or no logits.
    """
    noise = np.random.default_rng(0).integers(0, 256, (_NUM_IMAGES, *image_size, 3), np.uint8)
    given = model(noise, training=False)
    if not tf.is_tensor(given) or given.shape != (_NUM_IMAGES, head.size):
        shown = [1, *given.shape[1:]] if tf.is_tensor(given) else f"a {type(given).__name__}"
        raise UsageError(
            f"{name} gives {shown} for one image, expected [1, {head.size}].",
            f"End the model with a layer of {head.size} units, one for each label or number.",
        )
    tolerance = _HALF_TOLERANCE if is_half(given) else SUM_TOLERANCE
    scores = tf.cast(given, tf.float32).numpy()
    # Values that are not finite are found where they are scored.
    if not np.isfinite(scores).all() or head.are_answers(
        scores, tolerance, from_logits=from_logits
    ):
        return
    raise UsageError(
        f"{name} {'gives' if from_logits else 'does not give'} probabilities: "
        f"{scores[0, :5].tolist()}... for an image of noise.",
        "Leave out from_logits." if from_logits else f"End the model with {head.activation}{more}.",
    )
