"""Finds the pairs of perceptual hashes that are nearly equal, also turned or mirrored.

Hashes are compared where they share a band of bits, so a million of them take half a minute. A flip
turns whole words of a hash around (`perceptual_hash`), which leaves a band of the first word as it
is, and makes any other one its complement. So one look at a band finds all flips; the hashes of the
images turned by 90 degrees are in the same table.

All pairs within 15 bits share a band of 16 bits, and most of those with more differences. Fewer
hashes are compared in narrower bands, which nearly all of these pairs share.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from darkroom.images.perceptual_hash import BIT_ORDER, NUM_WAVES
from darkroom.runtime.arrays import Array

# Bits of 256 in which copies of an image may differ.
MAX_DIFFERENCE = 48
_WORD_BITS = 64
# Of the first word's bits hardly any pair has more different, but nearly all other images do.
_MAX_IN_WORD = 24
# So many hashes are compared in bands of 8 bits, more in bands of 16.
_MAX_NARROW = 3_000
# Limits of each band, where nearly all images look alike: comparisons, and pairs more than hashes.
_MAX_COMPARED, _MAX_PAIRS = 150_000_000, 100_000
# Comparisons at once, so that they stay in the cache of a processor.
_BLOCK = 1 << 15
# Pairs and their difference in one number, which sorts.
_DIFFERENCES = 256


class NearPairs(NamedTuple):
    """Pairs of hashes that are nearly equal.

    Attributes:
        one: Number of the one hash, int64 [pairs].
        other: Number of the other one, which is larger, int64 [pairs].
        difference: Bits in which they differ, in the turn where they are most alike.
        is_complete: False where so many hashes look alike that not all were compared.
    """

    one: Array
    other: Array
    difference: Array
    is_complete: bool


def find_near_pairs(hashes: Array) -> NearPairs:
    """Finds the pairs of hashes that are nearly equal.

    Args:
        hashes: uint8 [hashes, 32], each once.
    """
    count, hashes = len(hashes), np.ascontiguousarray(hashes)
    table = np.concatenate([hashes, _turn(hashes)])
    width = np.uint8 if count <= _MAX_NARROW else np.uint16
    bands = table.view(width)
    words = table.view(np.uint64)
    found, is_complete = [np.empty(0, np.int64)], True
    for band in range(bands.shape[1]):
        keys = bands[:, band]
        if band * keys.itemsize * 8 >= _WORD_BITS:
            keys = np.minimum(keys, ~keys)
        pairs, has_all = _compare_band(keys, words, count)
        found = [np.unique(np.concatenate([*found, pairs]))]
        is_complete &= has_all
    pairs, difference = np.divmod(found[0], _DIFFERENCES)
    # Turned in two ways, a pair may be near twice: the smaller difference comes first.
    is_first = np.diff(pairs, prepend=-1) > 0
    one, other = np.divmod(pairs[is_first], max(count, 1))
    return NearPairs(one, other, difference[is_first], is_complete)


def _turn(hashes: Array) -> Array:
    """Returns the hashes of the images with rows for columns."""
    places = np.argsort(BIT_ORDER).reshape(NUM_WAVES, NUM_WAVES).T.ravel()[BIT_ORDER]
    turned = np.empty_like(hashes)
    for start in range(0, len(hashes), _BLOCK):
        bits = np.unpackbits(hashes[start : start + _BLOCK], axis=1)
        turned[start : start + _BLOCK] = np.packbits(bits[:, places], axis=1)
    return turned


def _compare_band(keys: Array, words: Array, count: int) -> tuple[Array, bool]:
    """Returns the near pairs of which both have the same key, and whether these are all."""
    order = np.argsort(keys, kind="stable")
    keys, first, second = keys[order], words[order, 0], words[order, 1]
    same = np.arange(len(keys))
    # How many hashes with the same key come after each one.
    num_after = np.searchsorted(keys, keys, side="right") - same - 1
    found, num_compared, num_found, step = [np.empty(0, np.int64)], 0, 0, 0
    # Neighbours are compared first, so that a limit is felt where most hashes are alike.
    while len(same):
        step += 1
        same = same[num_after.take(same) >= step]
        if num_compared > _MAX_COMPARED or num_found > _MAX_PAIRS + count:
            return np.concatenate(found), not len(same)
        num_compared += len(same)
        for start in range(0, len(same), _BLOCK):
            one = same[start : start + _BLOCK]
            is_close = _count_bits(first.take(one) ^ first.take(one + step)) <= _MAX_IN_WORD
            one = one[is_close]
            bits = _count_bits(second.take(one) ^ second.take(one + step))
            one = one[np.minimum(bits, _WORD_BITS - bits) <= _MAX_IN_WORD]
            pairs = _encode_pairs(order[one], order[one + step], words, count)
            found.append(pairs)
            num_found += len(pairs)
    return np.concatenate(found), True


def _encode_pairs(one: Array, other: Array, words: Array, count: int) -> Array:
    """Returns the pairs that are near, as numbers that hold their difference, too."""
    even, column, row, both = (_count_bits(words[one, n] ^ words[other, n]) for n in range(4))
    # Each flip turns two of the odd words around.
    whole = 2 * _WORD_BITS
    turns = [
        column + row + both,
        whole - column - row + both,
        whole - column - both + row,
        whole - row - both + column,
    ]
    difference = even + np.minimum.reduce(turns)
    one, other = one % count, other % count
    # A symmetric image is near itself.
    is_near = (difference <= MAX_DIFFERENCE) & (one != other)
    low, high = np.minimum(one, other)[is_near], np.maximum(one, other)[is_near]
    codes: Array = (low * count + high) * _DIFFERENCES + difference[is_near]
    return codes


def _count_bits(words: Array) -> Array:
    """Returns how many bits of each word are set, int32: also with NumPy 1, by a table."""
    counts = _BITS.take(words.view(np.uint16)).view(np.uint32)
    found: Array = ((counts * np.uint32(0x01010101)) >> np.uint32(24)).astype(np.int32)
    return found


_BITS = np.unpackbits(np.arange(1 << 16, dtype=np.uint16).view(np.uint8)).reshape(-1, 16)
_BITS = _BITS.sum(axis=1, dtype=np.uint8)


def list_groups(count: int, pairs: NearPairs) -> Iterator[Array]:
    """Yields the numbers of the hashes of each group, of which all are near the first one.

    So a group does not drift from one image to the next. The hash that is near most others is the
    first of its group.

    Args:
        count: The number of hashes.
        pairs: Their pairs.
    """
    ends, mates = np.concatenate([pairs[:2], pairs[1::-1]], axis=1)
    order = np.argsort(ends, kind="stable")
    starts = np.searchsorted(ends[order], np.arange(count + 1))
    mates, is_free = mates[order], np.ones(count, bool)
    num_mates = np.diff(starts)
    for center in np.argsort(-num_mates, kind="stable")[: np.count_nonzero(num_mates)]:
        if is_free[center]:
            near = mates[starts[center] : starts[center + 1]]
            group = np.concatenate([[center], near[is_free[near]]])
            is_free[group] = False
            if len(group) > 1:
                yield group
