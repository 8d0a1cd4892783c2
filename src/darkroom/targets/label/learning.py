"""Learning one label an image."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from darkroom.dataset.example import LABEL_NUMBER
from darkroom.targets.learning import Learning


class LabelLearning(Learning):
    """See `darkroom.targets.learning.Learning`; the tensor is a number, int64 []."""

    required = (LABEL_NUMBER,)

    def describe(self, size: int) -> Mapping[str, Any]:
        """Returns the feature of the number, as `tf.io.parse_example` takes it."""
        return {LABEL_NUMBER: tf.io.FixedLenFeature([], tf.int64)}

    def parse(self, features: Mapping[str, tf.Tensor], size: int) -> tf.Tensor:
        """Returns the number."""
        return features[LABEL_NUMBER]


LEARNING = LabelLearning()
