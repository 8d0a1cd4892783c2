"""Learning any number of labels an image."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from darkroom.dataset.example import LABEL_NUMBER
from darkroom.targets.labels.kind import LABELS_KNOWN
from darkroom.targets.learning import Learning


class LabelsLearning(Learning):
    """See `darkroom.targets.learning.Learning`.

    The tensor is float32 [C]: 1 for each label of the image, else 0; NaN where it is not annotated.
    """

    required = (LABELS_KNOWN,)

    def describe(self, size: int) -> Mapping[str, Any]:
        """Returns the features of the numbers, and of whether they are known."""
        return {
            LABEL_NUMBER: tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
            LABELS_KNOWN: tf.io.FixedLenFeature([], tf.int64),
        }

    def parse(self, features: Mapping[str, tf.Tensor], size: int) -> tf.Tensor:
        """Returns the vector of a record."""
        # One operation, which is called for every image.
        vector = tf.raw_ops.DenseBincount(
            input=features[LABEL_NUMBER],
            size=tf.constant(size, tf.int64),
            weights=tf.constant([], tf.float32),
            binary_output=True,
        )
        return tf.where(features[LABELS_KNOWN] > 0, vector, np.nan)


LEARNING = LabelsLearning()
