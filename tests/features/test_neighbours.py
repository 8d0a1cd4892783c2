"""Which images are alike by their features: the same as by comparing all of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from darkroom.features import neighbours
from darkroom.features.neighbours import NUM_NEIGHBOURS, find_nearest, find_neighbours, scale
from darkroom.features.table import Features


def make_features(count: int) -> Features:
    # A large mean that all share, and pairs that are nearly equal.
    values = np.random.default_rng(1).normal(size=(count, 96)).astype(np.float32)
    values[1::2] = values[: count // 2 * 2 : 2] + 0.3 * values[1::2]
    contents = pa.chunked_array([pa.nulls(count, pa.string())])
    return Features("model", np.arange(count) * 3 + 1, values + 50, contents)


def test_the_nearest_come_first_and_are_those_by_all_numbers():
    features = make_features(600)
    one, other = find_neighbours(features)
    assert len(one) == 600 * NUM_NEIGHBOURS
    assert {(a - 1) // 6 == (b - 1) // 6 for a, b in zip(one[:600], other[:600], strict=True)} == {
        True
    }
    assert (one != other).all()
    # With as many components as numbers, they are those of the cosine.
    own = features.values - features.values.mean(axis=0)
    own /= np.linalg.norm(own, axis=1, keepdims=True)
    nearest = np.argsort(-(own[:1] @ own.T)[0])[1:4]
    found = other[one == features.rows[0]]
    assert len(set(found[:10]) & set(features.rows[nearest])) >= 2


def test_the_nearest_of_a_pool_are_those_of_all_its_cosines(monkeypatch):
    monkeypatch.setattr(neighbours, "_PART", 4)
    monkeypatch.setattr(neighbours, "_BLOCK", 64)
    points = scale(np.random.default_rng(2).normal(size=(401, 8)).astype(np.float32))
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
    one, other = find_neighbours(features)
    assert len(one) == 700 * NUM_NEIGHBOURS
    is_pair = (one - 1) // 6 == (other - 1) // 6
    assert len(set(one[is_pair])) > 500


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_few_images_have_few_neighbours(count):
    one, other = find_neighbours(make_features(count))
    pairs = {*zip(one.tolist(), other.tolist(), strict=True)}
    rows = [1 + 3 * number for number in range(count)]
    assert pairs == {(a, b) for a in rows for b in rows if a != b}
