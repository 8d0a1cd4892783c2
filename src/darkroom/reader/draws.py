"""Random numbers of images, as hashes: the definition that every framework's input shares.

A number depends only on the position of an image in its epoch, on seed and epoch, and on what it is
for. So any process can draw it, in any order. `darkroom.input.graph` draws the same ones by graph
operations.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from darkroom.runtime.arrays import Array

# What random numbers are for. Add new ones at the end: the order decides the numbers of a seed.
FLIP, BRIGHTNESS, CONTRAST, SATURATION, ANGLE, ROW, COLUMN, SHARE, TURN, PLACE = range(1, 11)
# Keeps the epochs of one seed apart from the epochs of the next seed.
_SEED_STEP = 1_000_003
# SplitMix64 (Steele, Lea and Flood, 2014): factors of the start, the steps and the finalizer.
START, STRIDE, PURPOSE = 0xD1342543DE82EF95, 0x9E3779B97F4A7C15, 0xDA942042E4DD58B5
FIRST, SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_BITS = (1 << 64) - 1
# Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
_PHILOX_FACTORS = 0xD2511F53, 0xCD9E8D57
_PHILOX_STEPS = 0x9E3779B9, 0xBB67AE85
# The key with which TensorFlow's stateless operations mix their seeds (`GenerateKey`).
_SEED_KEY = 0x3EC8F720, 0x02461E29
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def number_epoch(seed: int, epoch: int) -> int:
    """Returns the second seed of all images of an epoch."""
    return seed * _SEED_STEP + epoch


def draw_bits(positions: Array, epoch: int, purpose: int) -> Array:
    """Hashes positions.

    Args:
        positions: int64 [...].
        epoch: As `number_epoch` gives it.
        purpose: The use of the numbers. Each purpose gets independent numbers.

    Returns:
        uint64 [...].
    """
    state = positions.astype(np.uint64) * np.uint64(START)
    offset = (epoch * STRIDE + purpose * PURPOSE) & _BITS
    state = (state ^ state >> _HALF) + np.uint64(offset)
    state = (state ^ state >> np.uint64(30)) * np.uint64(FIRST)
    state = (state ^ state >> np.uint64(27)) * np.uint64(SECOND)
    return state ^ state >> np.uint64(31)


def draw_uniform(positions: Array, epoch: int, purpose: int) -> Array:
    """Returns uniform random numbers in [0, 1), float64 [...]; see `draw_bits`."""
    return (draw_bits(positions, epoch, purpose) >> np.uint64(11)) / float(1 << 53)


def draw_words(positions: Array, epoch: int, count: int) -> Array:
    """Returns what TensorFlow's stateless operations draw with the seeds (position, epoch).

    Args:
        positions: int64 [N].
        epoch: As `number_epoch` gives it.
        count: Numbers for each position, a multiple of 4.

    Returns:
        uint64 [N, count], each of 32 bits.
    """
    first = positions.astype(np.uint64)
    second = np.full_like(first, epoch & _BITS)
    zero = np.zeros_like(first)
    key = [zero + np.uint64(each) for each in _SEED_KEY]
    seeds = (first & _LOW, first >> _HALF, second & _LOW, second >> _HALF)
    # TensorFlow mixes the seeds once, and gives the result to a second generator.
    mixed = _philox(seeds, key)
    blocks = [
        _philox((zero + np.uint64(block), zero, mixed[2], mixed[3]), (mixed[0], mixed[1]))
        for block in range(count // 4)
    ]
    return np.stack([word for block in blocks for word in block], axis=1)


def _philox(counter: Sequence[Array], key: Sequence[Array]) -> tuple[Array, ...]:
    """Returns four numbers of 32 bits for each counter."""
    (a, b, c, d), (left, right) = counter, key
    for _ in range(10):
        one, other = a * np.uint64(_PHILOX_FACTORS[0]), c * np.uint64(_PHILOX_FACTORS[1])
        a, b, c, d = (
            (other >> _HALF) ^ b ^ left,
            other & _LOW,
            (one >> _HALF) ^ d ^ right,
            one & _LOW,
        )
        left = (left + np.uint64(_PHILOX_STEPS[0])) & _LOW
        right = (right + np.uint64(_PHILOX_STEPS[1])) & _LOW
    return a, b, c, d
