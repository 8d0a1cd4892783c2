"""A hash of how an image looks, which stays nearly the same when it is compressed or scaled.

It has the signs of the 256 lowest waves of the image, 16 each way, as a DCT finds them. A mirrored
image has the same waves with other signs, and one turned by 90 degrees has rows for columns. So all
eight turns and flips of an image have hashes that follow from its own (`near_pairs`).

A border that is plain and as wide on opposite sides is left out. Plain and tiny images have no
hash: they would all look alike.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from darkroom.images.pixels import Pixels

HASH_BYTES = 32
# Waves of each direction.
NUM_WAVES = 16
# Samples of each direction: at most 128, so that sums are exact.
_MAX_SAMPLES, _MIN_PIXELS = 128, 32
# Copying whole rows takes less time than a walk through them; few images are wider.
_MAX_COPIED = 4 << 20
_AMPLITUDE = 256
# A weaker wave, in levels of 255, is noise.
_MIN_LEVEL = 0.05
# How much the levels of a plain border differ, which JPEG makes of one level; how much its widths.
_BORDER_LEVELS, _BORDER_SAMPLES = 12, 2


def _find_order() -> npt.NDArray[Any]:
    """Returns the places of the waves in the hash.

    There are four words of 64 bits: of waves that are even both ways, odd by column, odd by row and
    odd both ways. So each flip turns whole words around. A word has four bands of 16 bits, each
    with low and high waves.
    """
    row, column = (each.ravel() for each in np.mgrid[:NUM_WAVES, :NUM_WAVES])
    order: npt.NDArray[Any] = np.lexsort(
        (column, row, (row // 2 + column // 2) % 4, column % 2, row % 2)
    )
    return order


BIT_ORDER = _find_order()


def hash_look(pixels: Pixels) -> str | None:
    """Returns the perceptual hash of pixels, in hexadecimal; None if they are plain or tiny.

    Indexes keep its bits, and `images/near_pairs.py` compares them in the same `BIT_ORDER`.

    Args:
        pixels: uint8 [height, width] or [height, width, channels], upright; green counts.
    """
    height, width = pixels.shape[:2]
    if min(height, width) < _MIN_PIXELS:
        return None
    down, right = (-(-side // _MAX_SAMPLES) for side in (height, width))
    # As far from one end as from the other, so that a mirrored image has the same samples.
    rows = pixels[(height - 1) % down // 2 :: down]
    if right > 1 and rows.size <= _MAX_COPIED:
        rows = np.ascontiguousarray(rows)
    green = rows if rows.ndim == 2 else rows[..., rows.shape[2] // 2]
    sample = green[:, (width - 1) % right // 2 :: right]
    inside = _cut_border(np.ascontiguousarray(sample))
    if inside is None:
        return None
    # All are whole numbers below 2**24 and 2**53, so that every machine gets the same bits.
    across, along = (_make_waves(side) for side in inside.shape)
    waves = (across.single @ inside.astype(np.float32)).astype(np.float64) @ along.double.T
    bits = waves > _MIN_LEVEL * _AMPLITUDE**2 * inside.size
    return np.packbits(bits.take(BIT_ORDER)).tobytes().hex()


class _Waves(NamedTuple):
    """Waves in whole numbers, [16, samples], as float32 and as float64."""

    single: npt.NDArray[np.float32]
    double: npt.NDArray[np.float64]


@functools.lru_cache(maxsize=_MAX_SAMPLES)
def _make_waves(num_samples: int) -> _Waves:
    places = (np.arange(num_samples) + 0.5) / num_samples
    waves = np.round(_AMPLITUDE * np.cos(np.pi * np.arange(NUM_WAVES)[:, None] * places))
    return _Waves(waves.astype(np.float32), waves)


def _cut_border(sample: Pixels) -> Pixels | None:
    """Returns what is inside of a plain border; None of a plain image."""
    # Python's own numbers take a third of the time of NumPy's.
    level = sample.item(0, 0)
    corners = sample.item(0, -1), sample.item(-1, 0), sample.item(-1, -1)
    if any(abs(corner - level) > _BORDER_LEVELS for corner in corners):
        return sample
    for _ in range(2):  # rows, then columns
        lowest, highest = sample.min(axis=1), sample.max(axis=1)
        has_more = (lowest < level - _BORDER_LEVELS) | (highest > level + _BORDER_LEVELS)
        places = np.flatnonzero(has_more)
        if not len(places):
            return None
        first, stop = int(places[0]), int(places[-1]) + 1
        is_even = abs(first - (len(sample) - stop)) <= _BORDER_SAMPLES
        if is_even and 2 * (stop - first) >= len(sample):
            sample = sample[first:stop]
        sample = sample.T
    return sample
