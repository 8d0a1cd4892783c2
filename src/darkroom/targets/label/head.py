"""The head of a classifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from darkroom.runtime.arrays import Array
from darkroom.targets.head import Head, ReadTargets, is_half
from darkroom.targets.label.probabilities import are_probabilities
from darkroom.targets.learned import Learned


class SmoothedCrossentropy(keras.losses.Loss):
    """Cross-entropy with smoothed labels, which are numbers. Keras's own takes vectors.

    Args:
        size: C, the number of labels.
        label_smoothing: Label smoothing: the share of each label spread evenly over all labels.
    """

    def __init__(self, size: int, label_smoothing: float) -> None:
        super().__init__(name="smoothed_crossentropy")
        self._size, self._label_smoothing = size, label_smoothing

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the loss of each image, [B], of labels [B] and probabilities [B, C]."""
        labels = keras.ops.cast(keras.ops.reshape(y_true, (-1,)), "int32")
        vectors = keras.ops.one_hot(labels, self._size, dtype=y_pred.dtype)
        return keras.losses.categorical_crossentropy(
            vectors, y_pred, label_smoothing=self._label_smoothing
        )


class LabelHead(Head):
    """See `darkroom.targets.head.Head`; answers are the probabilities of C labels.

    Targets are numbers, int64 [B]; with mixup shares, float32 [B, C].
    """

    kind = "label"
    metric = "accuracy"
    balances = ("none", "weights", "sampling", "prior")
    counts_labels = True
    activation = "a softmax"

    def __init__(self, size: int) -> None:
        self.size = size

    @classmethod
    def fit(cls, names: Sequence[str], read: ReadTargets, balance: str) -> LabelHead:
        """Returns the head; it depends on no target."""
        return cls(len(names))

    def add(self, vectors: Any) -> Any:
        """Returns probabilities."""
        x = keras.layers.Dropout(0.2)(vectors)
        # float32 even with mixed precision: half-precision probabilities do not add up to one.
        return keras.layers.Dense(self.size, activation="softmax", dtype="float32")(x)

    def make_loss(self, label_smoothing: float, *, has_vectors: bool) -> Any:
        """Returns the cross-entropy."""
        if not label_smoothing:
            return "categorical_crossentropy" if has_vectors else "sparse_categorical_crossentropy"
        if has_vectors:
            return keras.losses.CategoricalCrossentropy(label_smoothing=label_smoothing)
        return SmoothedCrossentropy(self.size, label_smoothing)

    def list_metrics(self) -> list[Any]:
        """Returns the accuracy; Keras chooses that for numbers or for vectors itself."""
        return ["accuracy"]

    def make_example(self, *, has_vectors: bool) -> Array:
        """Returns the first label."""
        return np.eye(1, self.size, dtype=np.float32) if has_vectors else np.zeros(1, np.int64)

    def are_answers(self, outputs: Array, tolerance: float, *, from_logits: bool) -> bool:
        """Tells whether they are probabilities, or not."""
        return are_probabilities(outputs, tolerance) != from_logits

    def serve(self, outputs: Any, *, from_logits: bool) -> Any:
        """Returns the probabilities."""
        scores = tf.cast(outputs, tf.float32)
        if from_logits:
            return tf.nn.softmax(scores)
        # Probabilities of half the precision do not add up to one.
        return scores / tf.reduce_sum(scores, -1, keepdims=True) if is_half(outputs) else scores

    def name_answers(self, answers: Any, learned: Learned) -> Mapping[str, Any]:
        """Returns the most likely label, its probability, and all probabilities."""
        return {
            "label": tf.gather(tf.constant(learned.names), tf.argmax(answers, axis=-1)),
            "score": tf.reduce_max(answers, axis=-1),
            "scores": answers,
        }

    def learn(self, names: Sequence[str], answers: Array, truth: Array) -> Learned:
        """Returns the labels."""
        return Learned("label", tuple(names))


HEAD = LabelHead
