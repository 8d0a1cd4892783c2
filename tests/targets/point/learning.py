"""Learning a point: two numbers of a record that are x and y, in pixels of the stored image."""

from __future__ import annotations

import tensorflow as tf

from darkroom.targets.numbers.learning import NumbersLearning


class PointLearning(NumbersLearning):
    """See `darkroom.targets.learning.Learning`; a target is {"point": float32 [2]}."""

    def parse(self, features, size):
        """Returns the point of a record; NaN where it is not known."""
        return {"point": super().parse(features, size)}

    def follow(self, targets, matrix, options):
        """Returns the points as float32 [B, 2], in pixels of the views."""
        x, y = tf.unstack(tf.cast(targets["point"], tf.float64), axis=-1)
        return {"point": tf.cast(tf.stack(matrix.move(x, y), axis=-1), tf.float32)}


LEARNING = PointLearning()
