"""Learning numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from darkroom.targets.learning import Learning
from darkroom.targets.numbers.kind import TARGET


class NumbersLearning(Learning):
    """See `darkroom.targets.learning.Learning`.

    The tensor is float32 [K], in the units of the list; NaN where a number is missing.
    """

    required: tuple[str, ...] = ()

    def describe(self, size: int) -> Mapping[str, Any]:
        """Returns the feature of the numbers."""
        return {TARGET: tf.io.FixedLenFeature([size], tf.float32, [np.nan] * size)}

    def parse(self, features: Mapping[str, tf.Tensor], size: int) -> tf.Tensor:
        """Returns the numbers."""
        return features[TARGET]


LEARNING = NumbersLearning()
