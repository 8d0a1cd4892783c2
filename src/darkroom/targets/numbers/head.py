"""The head for numbers: a linear layer on features of parts of an image."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from darkroom.errors import DataError
from darkroom.runtime.arrays import Array
from darkroom.runtime.text import list_first
from darkroom.targets.head import Head, KnownLoss, ReadTargets
from darkroom.targets.learned import Learned

# Rows and columns of the parts that have features of their own: a mean over a whole image says
# little about where something is.
_GRID = 3
# So many images tell means and spreads well enough.
_MOST_TARGETS = 1 << 16


class Huber(KnownLoss):
    """Huber's loss of numbers in standard deviations: squared below 1, and linear above.

    Args:
        spreads: Standard deviation of each number, float32 [K].
    """

    def __init__(self, spreads: Array) -> None:
        super().__init__(name="huber")
        self._spreads = spreads

    def compare(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the loss of each number."""
        error = keras.ops.absolute(y_true - y_pred) / self._spreads
        return keras.ops.where(error < 1, 0.5 * error * error, error - 0.5)


class KnownR2(keras.metrics.Metric):
    """Mean R² of the numbers: the share of their variance that answers explain.

    Args:
        size: K, how many numbers an image has.
        means: Their means, by which large numbers keep their digits, float32 [K].
    """

    def __init__(self, size: int, means: Array) -> None:
        super().__init__(name="r2")
        self._means = means
        self._sums = self.add_weight(shape=(4, size), initializer="zeros", name="sums")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Adds images: numbers [B, K], NaN where one is missing, and answers [B, K]."""
        ops = keras.ops
        is_known = ops.logical_not(ops.isnan(y_true))
        values = ops.where(is_known, y_true - self._means, 0.0)
        errors = ops.where(is_known, y_true - ops.cast(y_pred, "float32"), 0.0)
        parts = (ops.cast(is_known, "float32"), values, values * values, errors * errors)
        self._sums.assign_add(ops.stack([ops.sum(part, axis=0) for part in parts]))

    def result(self) -> Any:
        """Returns the mean over the numbers that differ between images."""
        ops = keras.ops
        count, total, squares, errors = ops.unstack(self._sums, 4)
        variance = squares - total * total / ops.maximum(count, 1.0)
        differs = variance > keras.config.epsilon() * squares
        found = ops.where(differs, 1 - errors / ops.where(differs, variance, 1.0), 0.0)
        return ops.sum(found) / ops.maximum(ops.sum(ops.cast(differs, "float32")), 1.0)


class NumbersHead(Head):
    """See `darkroom.targets.head.Head`; answers are K numbers in the units of the list.

    Targets are float32 [B, K]; NaN where a number is missing.

    Args:
        size: K.
        means: Mean of each number over the training images, float32 [K].
        spreads: Its standard deviation, float32 [K].
    """

    kind = "numbers"
    metric = "r2"
    balances = ("none",)
    activation = "a linear layer"
    refusal = math.nan

    def __init__(self, size: int, means: Array, spreads: Array) -> None:
        self.size, self._means, self._spreads = size, means, spreads

    @classmethod
    def fit(cls, names: Sequence[str], read: ReadTargets, balance: str) -> NumbersHead:
        """Returns the head for numbers with the means and standard deviations of the targets."""
        size, images = len(names), 0
        count, mean, squares = np.zeros(size), np.zeros(size), np.zeros(size)
        for each in read(_MOST_TARGETS):
            known = (~np.isnan(each)).sum(axis=0)
            total = np.maximum(count + known, 1)
            values = np.nan_to_num(each.astype(np.float64) - mean)
            # Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm", 1979.
            part = values.sum(axis=0) / np.maximum(known, 1)
            apart = np.where(np.isnan(each), 0, values - part)
            squares += (apart**2).sum(axis=0) + part**2 * count * known / total
            mean += part * known / total
            count += known
            images += len(each)
        if images and not count.all():
            lost = [name for name, known in zip(names, count, strict=True) if not known]
            raise DataError(
                f"None of the {images:,} images of the train split has {list_first(lost)}.",
                "Add images whose numbers are known, or leave the column out of --target-columns "
                "(target_columns= in Python).",
            )
        spreads = np.sqrt(squares / np.maximum(count, 1))
        # A constant has no spread, and nothing to learn.
        spreads = np.where(spreads > 0, spreads, 1)
        return cls(size, mean.astype(np.float32), spreads.astype(np.float32))

    def pool(self, features: Any) -> Any:
        """Returns the mean of each part of an image, one after the other."""
        _, height, width, _ = features.shape
        steps = max(1, height // _GRID), max(1, width // _GRID)
        sides = [
            side - (min(side, _GRID) - 1) * step
            for side, step in zip((height, width), steps, strict=True)
        ]
        means = keras.layers.AveragePooling2D(sides, steps)(features)
        # So many features together would move an answer far in a single step.
        share = 1 / (means.shape[1] * means.shape[2])
        return keras.layers.Flatten()(keras.layers.Rescaling(share)(means))

    def finish(self, outputs: Any) -> Any:
        """Returns numbers in their units, of numbers in standard deviations from the mean."""
        return keras.layers.Rescaling(self._spreads, self._means, dtype="float32")(outputs)

    def add(self, vectors: Any) -> Any:
        """Returns the numbers."""
        x = keras.layers.Dropout(0.2)(vectors)
        return self.finish(keras.layers.Dense(self.size, dtype="float32")(x))

    def make_loss(self, label_smoothing: float, *, has_vectors: bool) -> Any:
        """Returns Huber's loss."""
        return Huber(self._spreads)

    def list_metrics(self) -> list[Any]:
        """Returns the mean R²."""
        return [KnownR2(self.size, self._means)]

    def make_example(self, *, has_vectors: bool) -> Array:
        """Returns the means."""
        return self._means[None]

    def are_answers(self, outputs: Array, tolerance: float, *, from_logits: bool) -> bool:
        """Tells that they can be anything, but not logits."""
        return not from_logits

    def serve(self, outputs: Any, *, from_logits: bool) -> Any:
        """Returns the numbers."""
        return tf.cast(outputs, tf.float32)

    def name_answers(self, answers: Any, learned: Learned) -> Mapping[str, Any]:
        """Returns the numbers."""
        return {"values": answers}

    def learn(self, names: Sequence[str], answers: Array, truth: Array) -> Learned:
        """Returns the names of the numbers."""
        return Learned("numbers", tuple(names))


HEAD = NumbersHead
