"""Images whose pixels say where they come from: the slow way to see where a point goes."""

from __future__ import annotations

from typing import Any

import numpy as np

from darkroom.targets.geometry import Matrix


def make_coordinates(height: int, width: int) -> np.ndarray:
    """Returns uint8 [height, width, 3]: with x, red rises and blue falls; with y, green rises.

    The fast decoder of JPEGs makes red and blue darker by a level; their difference stays.
    """
    y, x = np.mgrid[0:height, 0:width] + 0.5
    colors = np.stack([x * 200 / width, y * 200 / height, 200 - x * 200 / width], -1) + 28
    return colors.round().astype(np.uint8)


def check_points(pixels: Any, matrix: Matrix, source: tuple[int, int]) -> None:
    """Checks that each pixel is where the matrix says that its point of the source went.

    A color is rounded, so a single pixel is a few places off; the mean of a quarter is not.

    Args:
        pixels: uint8 [H, W, 3], what became of `make_coordinates`.
        matrix: What a step said.
        source: (height, width) of the source.
    """
    matrix = Matrix(*map(float, matrix))
    red, green, blue = np.moveaxis(np.asarray(pixels).astype(float) - 28, -1, 0)
    x, y = (red - blue + 200) * source[1] / 400, green * source[0] / 200
    expected = np.mgrid[0 : x.shape[0], 0 : x.shape[1]][::-1] + 0.5
    enlarged = max(1.0, abs(matrix.xx) + abs(matrix.xy), abs(matrix.yx) + abs(matrix.yy))
    # At the edges, a filter sees fewer pixels.
    off = ((np.stack(matrix.move(x, y)) - expected) / enlarged)[:, 2:-2, 2:-2]
    assert np.abs(off).max() < 4
    rows, columns = off.shape[1] // 2, off.shape[2] // 2
    for quarter in (off[:, :rows], off[:, rows:]):
        for part in (quarter[..., :columns], quarter[..., columns:]):
            assert np.abs(part.mean((1, 2))).max() < 0.25, part.mean((1, 2))
