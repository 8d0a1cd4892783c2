"""Candidates for near copies are compared as long as there are copies among them."""

from __future__ import annotations

from collections import Counter

import duckdb
import numpy as np
import pytest

from darkroom.images import near_records
from darkroom.images.alignment import can_align
from darkroom.images.near_records import _compare_likeliest, create_near_pairs


@pytest.mark.parametrize(
    ("num_copies", "num_unknown", "expected"),
    [(0, 0, 200), (3, 0, 400), (300, 0, 600), (900, 0, 1200), (0, 160, 2000)],
)
def test_pairs_are_compared_until_hardly_any_are_copies(num_copies, num_unknown, expected):
    """The first ones are copies, or nothing is known of them; 1,600 images, so 200 at once."""
    asked = []

    def compare(one, other, before, total):
        assert (other == one + 5000).all()
        assert (before, total) == (len(asked), 2000)
        asked.extend(one.tolist())
        found = np.where(one < num_copies, 0.9, 0.0)
        return np.where(one % 200 < num_unknown, np.nan, found)

    rows = np.arange(2000) + np.array([[0], [5000]])
    found = _compare_likeliest(compare, rows, 1600)
    assert asked == [*range(expected)]
    assert len(found) == expected
    assert np.count_nonzero(found > 0) == num_copies


def test_a_limit_is_said_and_told_before(monkeypatch):
    notes = []
    monkeypatch.setattr(near_records.progress, "note", notes.append)
    monkeypatch.setattr(near_records, "count_cores", lambda: 2)
    monkeypatch.setattr(near_records, "MAX_COMPARED", 12_000)
    found = _compare_likeliest(
        lambda one, other, before, total: np.ones(len(one)), np.zeros((2, 13_000), int), 100
    )
    assert len(found) == 12_000
    assert notes == [
        "Compares up to 12,000 pairs of images, until hardly any are copies: at most 2 min. "
        "To do without, set the policies of near copies to off."
    ]


@pytest.mark.skipif(not can_align(), reason="needs OpenCV")
@pytest.mark.parametrize(("num_images", "most"), [(9, 36), (289, 8 * 289)])
def test_images_that_are_all_alike_are_compared_with_the_likeliest(num_images, most):
    """Each has up to two other bits, so all of them are pairs of hashes."""
    asked = []

    class Comparer:
        def __init__(self, *folders):
            pass

        def compare(self, one, other, before, total):
            asked.extend(zip(one.tolist(), other.tolist(), strict=True))
            return np.ones(len(one), np.float32)

    random, middle = np.random.default_rng(0), 3**161
    looks = [
        middle ^ 1 << int(a) ^ 1 << int(b) for a, b in random.integers(256, size=(num_images, 2))
    ]
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE matched (row BIGINT, sha256 TEXT, pixels TEXT, perceptual_hash TEXT)"
        )
        rows = [(row, f"{row}", None, f"{look:064x}") for row, look in enumerate(looks)]
        connection.executemany("INSERT INTO matched VALUES (?, ?, ?, ?)", rows)
        compared = create_near_pairs(connection, ("", ""), comparer=Comparer)
    left = num_images * (num_images - 1) // 2 - len(asked)
    assert len({*asked}) == len(asked) <= most
    assert min(Counter(row for pair in asked for row in pair).values()) >= 8
    said = f"Less likely pairs that were not compared on pixels: {left:,}."
    assert compared.left_out == (said if num_images > 9 else "")
