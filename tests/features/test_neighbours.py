"""Which images are alike by their features: the same as by comparing all of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from darkroom.features import neighbours
from darkroom.features.neighbours import (
    NUM_NEIGHBOURS,
    find_nearest,
    find_neighbours,
    scale_to_length_one,
)
from darkroom.features.table import Features


def make_features(count: int) -> Features:
    # A large mean that all share, and pairs that are nearly equal.
    values = np.random.default_rng(1).normal(size=(count, 96)).astype(np.float32)
    values[1::2] = values[: count // 2 * 2 : 2] + 0.3 * values[1::2]
    contents = pa.chunked_array([pa.nulls(count, pa.string())])
    return Features("model", np.arange(count) * 3 + 1, values + 50, contents)


def is_pair(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return (one - 1) // 6 == (other - 1) // 6


def test_the_nearest_are_those_that_are_planted():
    features = make_features(600)
    one, other, *_ = found = find_neighbours(features)
    assert len(one) == 600 * NUM_NEIGHBOURS
    assert (one != other).all()
    apart = found.measure(one, other)
    nearest = np.argsort(apart)[:600]
    assert is_pair(one[nearest], other[nearest]).all()
    assert apart.max() <= 1.001
    # Where images are in no order of their rows, and what has no features is compared first.
    order = np.random.default_rng(0).permutation(600)
    mixed = find_neighbours(
        features._replace(rows=features.rows[order], values=features.values[order])
    )
    np.testing.assert_allclose(mixed.measure(one, other), apart, atol=1e-3)
    assert found.measure(np.array([1, 1, 5000]), np.array([4, 2, 1])).tolist() == [
        pytest.approx(apart[(one == 1) & (other == 4)][0]),
        0,
        0,
    ]


def test_a_pair_has_to_be_more_alike_where_many_are_alike():
    # Half of the images are nearly one image; the others are nothing alike but for one pair.
    random = np.random.default_rng(3)
    values = random.normal(size=(400, 96)).astype(np.float32)
    values[:200] = values[0] + 0.2 * values[:200]
    values[399] = values[398] + 0.5 * values[399]
    features = make_features(400)._replace(rows=np.arange(400), values=values)
    found = find_neighbours(features)
    assert (
        found.measure(np.array([398]), np.array([399]))
        < found.measure(np.arange(99), np.arange(100, 199)).min()
    )


def test_the_nearest_of_a_pool_are_those_of_all_its_cosines(monkeypatch):
    monkeypatch.setattr(neighbours, "_PART", 4)
    monkeypatch.setattr(neighbours, "_BLOCK", 64)
    points = scale_to_length_one(np.random.default_rng(2).normal(size=(401, 8)).astype(np.float32))
    wanted, pool = np.arange(100), np.arange(1, 401, 3)
    numbers, cosines = find_nearest(points, wanted, pool, 7)
    expected = points[wanted] @ points[pool].T
    expected[wanted[:, None] == pool] = -1
    order = np.argsort(-expected, axis=1)[:, :7]
    np.testing.assert_array_equal(numbers, pool[order])
    np.testing.assert_allclose(cosines, np.take_along_axis(expected, order, 1), atol=1e-6)


def test_more_images_are_compared_in_parts(monkeypatch):
    monkeypatch.setattr(neighbours, "_MAX_COMPARED", 100)
    features = make_features(700)
    one, other, *_ = find_neighbours(features)
    assert len(one) == 700 * NUM_NEIGHBOURS
    assert len(set(one[is_pair(one, other)])) > 500


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_few_images_have_few_neighbours(count):
    one, other, *_ = find_neighbours(make_features(count))
    pairs = {*zip(one.tolist(), other.tolist(), strict=True)}
    rows = [1 + 3 * number for number in range(count)]
    assert pairs == {(a, b) for a in rows for b in rows if a != b}
