"""Pairs are compared in blocks, and an image is read once as long as it is kept."""

from __future__ import annotations

import numpy as np

from darkroom.images import near_pixels
from darkroom.images.near_pixels import RecordPairs, _Looks


def test_each_pair_is_compared_and_what_was_needed_last_is_kept(monkeypatch):
    drawn = []

    def draw(places, mirrored, row):
        drawn.append(row)
        return _Looks(row, row if row in mirrored else None)

    record = {"path": "shard", "position": 0, "offset": 0, "length": 9}
    found = [{"row": each, **record} for each in range(20)]
    monkeypatch.setattr(near_pixels, "find_records", lambda *_: found)
    monkeypatch.setattr(near_pixels, "_draw", draw)
    monkeypatch.setattr(
        near_pixels,
        "_compare",
        lambda known, pair: 100 * known[pair[0]].mirrored + known[pair[1]].plain,
    )
    monkeypatch.setattr(near_pixels, "_BLOCK", 4)
    monkeypatch.setattr(near_pixels, "_MAX_KEPT", 6)
    pairs = RecordPairs("in", "in")

    def compare(one, other):
        drawn.clear()
        np.testing.assert_array_equal(pairs.compare(one, other), 100 * one + other)
        return sorted(drawn)

    assert compare(np.array([1, 1, 2]), np.array([2, 3, 3])) == [1, 2, 3]
    # Of the third image the mirror image is needed, too; the others are kept.
    assert compare(np.array([1, 3]), np.array([2, 1])) == [3]
    # Eight images, of which the last six are kept.
    assert compare(np.array([1, 4, 4, 4, 7]), np.array([3, 5, 6, 2, 8])) == [4, 5, 6, 7, 8]
    assert len(pairs._kept) == 6
    assert compare(np.array([7]), np.array([8])) == []
