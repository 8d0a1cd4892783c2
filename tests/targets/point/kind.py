"""What a point says about itself: two numbers, x and y, in pixels of the stored image."""

from __future__ import annotations

import numpy as np

from darkroom.targets.numbers.kind import NumbersKind


class PointKind(NumbersKind):
    """See `darkroom.targets.kind.TargetKind`; the value is [x, y]."""

    name = "point"
    moves = True

    def follow(self, targets, matrix, size, options):
        """Returns the points as float32 [B, 2], in pixels of the views."""
        return np.stack(matrix.move(*targets.T.astype(float)), axis=1).astype(np.float32)


KIND = PointKind()
