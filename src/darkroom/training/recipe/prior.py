"""The prior of each label, before an image is seen: training adds it to the answer."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from darkroom.errors import UsageError
from darkroom.options.recipe import PRIOR
from darkroom.training.recipe.balance import Counts


class PriorShift(keras.layers.Layer):
    """Multiplies probabilities by the share of each label, and makes their sum 1 again.

    In training only. So the output of the layers before it counts every label the same.

    Args:
        counts: Training images of each label, int64 [C].
    """

    def __init__(self, counts: Counts) -> None:
        # As the last layer of a model.
        super().__init__(name="prior", dtype="float32")
        self._shares = np.asarray(counts / counts.sum(), np.float32)

    def call(self, scores: Any, training: bool = False) -> Any:
        """Returns probabilities [B, C] of probabilities [B, C]."""
        if not training:
            return scores
        shifted = keras.ops.cast(scores, "float32") * self._shares
        return shifted / keras.ops.sum(shifted, axis=-1, keepdims=True)


def add_prior(model: Any, counts: Counts | None) -> Any:
    """Returns a model with the same weights, whose answers in training have the prior.

    Args:
        model: A Keras model of one input, to probabilities [B, C].
        counts: Training images of each label, int64 [C]; None for the model as it is.

    Raises:
        UsageError: The model has its own loss or training step.
    """
    if counts is None:
        return model
    if model.compiled or type(model).train_step is not keras.Model.train_step:
        raise UsageError(
            f"balance is {PRIOR!r}, but the model {model.name} has its own loss or training step.",
            "Use --balance weights.",
        )
    [given] = model.inputs
    inputs = keras.Input(given.shape[1:], dtype=given.dtype)
    return keras.Model(inputs, PriorShift(counts)(model(inputs)), name=model.name)
