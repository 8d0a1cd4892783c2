"""Principal components of features [N, D], in blocks: they may be in a file that is mapped."""

from __future__ import annotations

import numpy as np

from darkroom.runtime.arrays import Array

_BLOCK = 8_192


def measure_scatter(values: Array) -> tuple[Array, Array]:
    """Returns the mean of features, float32 [D], and their scatter matrix, float64 [D, D]."""
    mean = values.mean(0, dtype=np.float64).astype(np.float32)
    scatter = np.zeros((len(mean), len(mean)))
    for start in range(0, len(values), _BLOCK):
        block = values[start : start + _BLOCK] - mean
        scatter += block.T @ block
    return mean, scatter


def find_axes(scatter: Array, count: int) -> Array:
    """Returns the directions of the largest spread, first the largest: [D, at most count]."""
    axes: Array = np.linalg.eigh(scatter)[1][:, : -count - 1 : -1]
    # The sign of an axis is arbitrary, and differs between versions of LAPACK.
    axes *= np.sign(axes[abs(axes).argmax(0), range(axes.shape[1])])
    return axes


def project(values: Array, mean: Array, axes: Array) -> Array:
    """Returns the places of features on axes [D, A], seen from a mean [D]: float32 [N, A]."""
    axes, starts = axes.astype(np.float32), range(0, len(values), _BLOCK)
    return np.concatenate([(values[at : at + _BLOCK] - mean) @ axes for at in starts])
