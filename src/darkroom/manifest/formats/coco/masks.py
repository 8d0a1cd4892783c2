"""The box of a mask of COCO: of polygons, or of runs of pixels in columns (RLE)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_MOST_PIXELS, _MOST_BITS = 1 << 31, 50


def find_box(mask: Any) -> list[float] | None:
    """Returns the corners of the box around a mask, in pixels; None if it has none.

    Args:
        mask: Polygons, [[x1, y1, x2, y2, ...], ...], or RLE: {"size": [height, width], "counts":
            numbers, or text with them}.
    """
    try:
        return _find_box_of_runs(mask) if isinstance(mask, dict) else _find_box_of_points(mask)
    except (LookupError, TypeError, ValueError, OverflowError):
        return None


def _find_box_of_points(polygons: Sequence[Sequence[float]]) -> list[float] | None:
    points = np.concatenate([np.asarray(each, np.float64).reshape(-1, 2) for each in polygons])
    return [*points.min(axis=0).tolist(), *points.max(axis=0).tolist()]


def _find_box_of_runs(mask: dict[str, Any]) -> list[float] | None:
    """Returns the box of runs of pixels, by turns outside and inside the mask, column by column."""
    height, _ = size = [int(side) for side in mask["size"]]
    counts = mask["counts"]
    runs = np.asarray(_parse_runs(counts) if isinstance(counts, str) else counts, np.int64)
    ends = np.cumsum(runs)
    if min(size) < 1 or runs.min() < 0 or ends[-1] != size[0] * size[1] or ends[-1] > _MOST_PIXELS:
        return None
    is_run = runs[1::2] > 0
    first, last = ends[:-1:2][: len(is_run)][is_run], ends[1::2][is_run] - 1
    if not len(first):
        return None
    # A run that goes on in the next column has the last row of one, and the first of the other.
    is_long = first // height != last // height
    top = np.where(is_long, 0, first % height).min()
    bottom = np.where(is_long, height - 1, last % height).max()
    left, right = first.min() // height, last.max() // height
    return [float(left), float(top), float(right + 1), float(bottom + 1)]


def _parse_runs(text: str) -> list[int]:
    """Returns the lengths of runs from their compressed text.

    A character has five bits, and whether more follow. From the third on, a number is the
    difference to the second before it.
    """
    runs: list[int] = []
    value = shift = 0
    for character in text:
        code = ord(character) - 48
        if not 0 <= code < 64 or shift > _MOST_BITS:
            raise ValueError(f"{character!r} is not in a text of runs")
        value |= (code & 0x1F) << shift
        shift += 5
        if not code & 0x20:
            value -= (code & 0x10) << (shift - 4)
            runs.append(value + (runs[-2] if len(runs) > 2 else 0))
            value = shift = 0
    return runs
