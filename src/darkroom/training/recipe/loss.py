"""The loss of a training."""

from __future__ import annotations

from typing import Any

import keras

SPARSE, DENSE = "sparse_categorical_crossentropy", "categorical_crossentropy"


class SmoothedCrossentropy(keras.losses.Loss):
    """Cross-entropy with smoothed labels, which are numbers. Keras's own takes vectors.

    Args:
        num_classes: C, the number of labels.
        label_smoothing: Label smoothing: the share of each label spread evenly over all labels.
    """

    def __init__(self, num_classes: int, label_smoothing: float) -> None:
        super().__init__(name="smoothed_crossentropy")
        self._num_classes, self._label_smoothing = num_classes, label_smoothing

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the loss of each image, [B], of labels [B] and probabilities [B, C]."""
        labels = keras.ops.cast(keras.ops.reshape(y_true, (-1,)), "int32")
        vectors = keras.ops.one_hot(labels, self._num_classes, dtype=y_pred.dtype)
        return keras.losses.categorical_crossentropy(
            vectors, y_pred, label_smoothing=self._label_smoothing
        )


def make_loss(num_classes: int, label_smoothing: float, *, has_vectors: bool) -> Any:
    """Returns the loss, for Keras's `compile`.

    Args:
        num_classes: C, the number of labels.
        label_smoothing: Label smoothing: the share of each label spread evenly over all labels.
        has_vectors: Labels are float32 [B, C], as mixup makes them; else int64 [B].
    """
    if not label_smoothing:
        return DENSE if has_vectors else SPARSE
    if has_vectors:
        return keras.losses.CategoricalCrossentropy(label_smoothing=label_smoothing)
    return SmoothedCrossentropy(num_classes, label_smoothing)
