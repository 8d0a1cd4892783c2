"""The head for several labels an image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from darkroom.runtime.arrays import Array
from darkroom.targets.head import Head, KnownLoss, ReadTargets
from darkroom.targets.labels.thresholds import choose_thresholds
from darkroom.targets.learned import Learned


class BinaryCrossentropy(KnownLoss):
    """Binary cross-entropy of each label.

    Args:
        label_smoothing: The share of each answer, yes or no, that is spread evenly over both.
        weights: How much an image with a label counts for it, float32 [C], where others count 1.
    """

    def __init__(self, label_smoothing: float, weights: Array) -> None:
        super().__init__(name="binary_crossentropy")
        self._label_smoothing, self._weights = label_smoothing, weights

    def compare(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the loss of each label, of shares [B, C] and probabilities [B, C]."""
        ops, tiny = keras.ops, keras.config.epsilon()
        shares = y_true * (1 - self._label_smoothing) + self._label_smoothing / 2
        scores = ops.clip(y_pred, tiny, 1 - tiny)
        missed = -shares * ops.log(scores) * self._weights
        return missed - (1 - shares) * ops.log(1 - scores)


class KnownAveragePrecision(keras.metrics.AUC):
    """Mean average precision of the labels, over images that are annotated.

    Args:
        size: C, the number of labels.
    """

    def __init__(self, size: int) -> None:
        super().__init__(curve="PR", multi_label=True, num_labels=size, name="average_precision")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Adds images: labels [B, C], in which mixup makes shares, and probabilities [B, C]."""
        is_known = keras.ops.logical_not(keras.ops.isnan(y_true))
        super().update_state(
            keras.ops.where(is_known, keras.ops.round(y_true), 0.0),
            y_pred,
            keras.ops.cast(is_known[:, 0], "float32"),
        )


class LabelsHead(Head):
    """See `darkroom.targets.head.Head`; answers are the probability of each of C labels.

    Targets are 1 for each label of an image and 0 for the others, float32 [B, C]; NaN in all of
    them where it is not annotated.

    Args:
        size: C.
        weights: How much an image with a label counts for it, float32 [C]; None: all count 1.
    """

    kind = "labels"
    metric = "average_precision"
    balances = ("none", "weights")
    activation = "a sigmoid"
    asks_for_answers = True

    def __init__(self, size: int, weights: Array | None = None) -> None:
        self.size = size
        self._weights = np.ones(size, np.float32) if weights is None else weights

    @classmethod
    def fit(cls, names: Sequence[str], read: ReadTargets, balance: str) -> LabelsHead:
        """Returns the head, where images with a label count as much as those without it."""
        size = len(names)
        if balance == "none":
            return cls(size)
        have, known = np.zeros(size), 0
        for each in read(None):
            have += np.nansum(each, axis=0)
            known += int((~np.isnan(each[:, 0])).sum())
        # A label that no image has, and one that all have, need no weight.
        weights = np.where((have > 0) & (have < known), (known - have) / np.maximum(have, 1), 1)
        return cls(size, weights.astype(np.float32))

    def add(self, vectors: Any) -> Any:
        """Returns probabilities."""
        x = keras.layers.Dropout(0.2)(vectors)
        return keras.layers.Dense(self.size, activation="sigmoid", dtype="float32")(x)

    def make_loss(self, label_smoothing: float, *, has_vectors: bool) -> Any:
        """Returns the binary cross-entropy."""
        return BinaryCrossentropy(label_smoothing, self._weights)

    def list_metrics(self) -> list[Any]:
        """Returns the mean average precision."""
        return [KnownAveragePrecision(self.size)]

    def make_example(self, *, has_vectors: bool) -> Array:
        """Returns an image without labels."""
        return np.zeros((1, self.size), np.float32)

    def are_answers(self, outputs: Array, tolerance: float, *, from_logits: bool) -> bool:
        """Tells whether they are between 0 and 1. Logits may be anything."""
        is_within = (outputs >= -tolerance) & (outputs <= 1 + tolerance)
        return from_logits or bool(is_within.all())

    def serve(self, outputs: Any, *, from_logits: bool) -> Any:
        """Returns the probabilities."""
        scores = tf.cast(outputs, tf.float32)
        return tf.sigmoid(scores) if from_logits else scores

    def name_answers(self, answers: Any, learned: Learned) -> Mapping[str, Any]:
        """Returns the labels that reach their thresholds, else empty text, and all scores."""
        has = answers >= tf.constant(learned.thresholds)
        names = tf.where(has, tf.constant(learned.names)[None], "")
        return {"labels": names, "scores": answers}

    def learn(self, names: Sequence[str], answers: Array, truth: Array) -> Learned:
        """Returns the labels, with the thresholds that are best on the eval split."""
        return Learned("labels", tuple(names), choose_thresholds(answers, truth))


HEAD = LabelsHead
