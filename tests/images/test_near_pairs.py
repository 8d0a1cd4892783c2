"""Pairs of hashes in bands: compared with all pairs in all eight turns."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from darkroom.images import near_pairs
from darkroom.images.near_pairs import MAX_DIFFERENCE, find_near_pairs, list_groups
from darkroom.images.perceptual_hash import BIT_ORDER


def pack(signs: np.ndarray) -> np.ndarray:
    """Returns the hashes of the signs of waves, bool [hashes, 16, 16]."""
    return np.packbits(signs.reshape(-1, 256)[:, BIT_ORDER], axis=1)


def turn(signs: np.ndarray, mirror: bool, flip: bool, transpose: bool) -> np.ndarray:
    """Returns the signs of the waves of turned images: every second wave changes its sign."""
    odd = np.arange(16) % 2 == 1
    signs = signs ^ (odd[None, :] & mirror) ^ (odd[:, None] & flip)
    return signs.swapaxes(-1, -2) if transpose else signs


TURNS = list(itertools.product([False, True], repeat=3))


@pytest.fixture
def signs() -> np.ndarray:
    """Random signs, and for the first 80 of them a turned copy with 0 to 59 other bits."""
    random = np.random.default_rng(7)
    signs = random.integers(0, 2, (240, 16, 16), np.uint8)
    for number in range(80):
        copy = turn(signs[number], *TURNS[number % 8]).reshape(256)
        copy[random.choice(256, number * 3 // 4, replace=False)] ^= 1
        signs[160 + number] = copy.reshape(16, 16)
    return signs


def compare_all(signs: np.ndarray) -> dict[tuple[int, int], int]:
    turned = [turn(signs, *each).reshape(len(signs), 256) for each in TURNS]
    flat = signs.reshape(len(signs), 256)
    least = np.min([(flat[:, None] != each[None]).sum(2) for each in turned], axis=0)
    near = np.argwhere(np.triu(least <= MAX_DIFFERENCE, 1))
    return {(int(one), int(other)): int(least[one, other]) for one, other in near}


def as_dict(pairs) -> dict[tuple[int, int], int]:
    return {
        (int(one), int(other)): int(difference)
        for one, other, difference in zip(*pairs[:3], strict=True)
    }


def test_narrow_bands_find_all_pairs(signs):
    found = find_near_pairs(pack(signs))
    assert as_dict(found) == compare_all(signs)
    assert len(found.one) >= 55
    assert found.is_complete


def test_wide_bands_find_all_close_pairs_and_nothing_else(signs, monkeypatch):
    monkeypatch.setattr(near_pairs, "_MAX_NARROW", 0)
    found, expected = as_dict(find_near_pairs(pack(signs))), compare_all(signs)
    assert found.items() <= expected.items()
    close = {pair for pair, difference in expected.items() if difference <= 15}
    assert close <= found.keys()
    assert len(close) >= 20


def test_no_hash_and_one_hash_have_no_pairs():
    for count in (0, 1):
        found = find_near_pairs(np.zeros((count, 32), np.uint8))
        assert [len(each) for each in found[:3]] == [0, 0, 0]
        assert found.is_complete
        assert [*list_groups(count, found)] == []


def test_a_limit_is_told_where_all_hashes_are_alike(monkeypatch):
    random = np.random.default_rng(0)
    hashes = np.tile(random.integers(0, 256, 32, np.uint8), (100, 1))
    hashes[np.arange(100), np.arange(100) % 32] ^= np.arange(1, 101).astype(np.uint8)
    all_pairs = find_near_pairs(hashes)
    assert (len(all_pairs.one), all_pairs.is_complete) == (100 * 99 // 2, True)
    monkeypatch.setattr(near_pairs, "_MAX_PAIRS", 50)
    some = find_near_pairs(hashes)
    assert not some.is_complete
    assert as_dict(some).items() <= as_dict(all_pairs).items()
    # Each hash was compared with its neighbours at least.
    assert {*some.one, *some.other} == {*range(100)}


def test_a_group_does_not_drift_along_a_chain():
    # Each is near the next one only, and number 3 also near 5 and 6.
    one, other = np.array([0, 1, 2, 3, 3, 3]), np.array([1, 2, 3, 4, 5, 6])
    pairs = near_pairs.NearPairs(one, other, np.ones(6, int), True)
    groups = [sorted(group.tolist()) for group in list_groups(9, pairs)]
    assert groups == [[2, 3, 4, 5, 6], [0, 1]]
