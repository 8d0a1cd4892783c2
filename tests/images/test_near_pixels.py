"""Pairs are compared in an order in which few images are read twice, with few kept in memory."""

from __future__ import annotations

import numpy as np

from darkroom.images import near_pixels
from darkroom.images.near_pixels import compare_records


def test_each_pair_is_compared_and_hardly_any_image_is_read_twice(monkeypatch):
    drawn = []

    def draw(places, row):
        drawn.append(row)
        return row

    # 60 images, each like the two beside it, in no order.
    row = np.random.default_rng(0).permutation(60) + 5
    one, other = np.concatenate([row[:-1], row[:-2]]), np.concatenate([row[1:], row[2:]])
    record = {"path": "shard", "position": 0, "offset": 0, "length": 9}
    found = [{"row": each, **record} for each in range(5, 65)]
    monkeypatch.setattr(near_pixels, "find_records", lambda *_: found)
    monkeypatch.setattr(near_pixels, "_draw", draw)
    monkeypatch.setattr(near_pixels, "_compare", lambda kept, pair: 100 * kept[pair[0]] + pair[1])
    monkeypatch.setattr(near_pixels, "_BLOCK", 4)
    monkeypatch.setattr(near_pixels, "_MAX_KEPT", 8)
    np.testing.assert_array_equal(compare_records("in", "in", one, other), 100 * one + other)
    assert {*drawn} == {*row}
    assert len(drawn) < 70
