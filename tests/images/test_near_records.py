"""Candidates for near copies are compared as long as there are copies among them."""

from __future__ import annotations

import numpy as np
import pytest

from darkroom.images import near_records
from darkroom.images.near_records import _compare_likeliest


@pytest.mark.parametrize(
    ("num_copies", "num_unknown", "expected"),
    [(0, 0, 200), (3, 0, 400), (300, 0, 600), (900, 0, 1200), (0, 160, 2000)],
)
def test_pairs_are_compared_until_hardly_any_are_copies(num_copies, num_unknown, expected):
    """The first ones are copies, or nothing is known of them; 1,600 images, so 200 at once."""
    asked = []

    def compare(one, other, before):
        assert (other == one + 5000).all()
        assert before == len(asked)
        asked.extend(one.tolist())
        found = np.where(one < num_copies, 0.9, 0.0)
        return np.where(one % 200 < num_unknown, np.nan, found)

    rows = np.arange(2000) + np.array([[0], [5000]])
    found, is_done = _compare_likeliest(compare, rows, 1600)
    assert asked == [*range(expected)]
    assert (len(found), is_done) == (expected, True)
    assert np.count_nonzero(found > 0) == num_copies


def test_a_limit_is_said_and_told_before(monkeypatch):
    notes = []
    monkeypatch.setattr(near_records.progress, "note", notes.append)
    monkeypatch.setattr(near_records, "count_cores", lambda: 2)
    monkeypatch.setattr(near_records, "MAX_COMPARED", 12_000)
    found, is_done = _compare_likeliest(
        lambda one, other, before: np.ones(len(one)), np.zeros((2, 13_000), int), 100
    )
    assert (len(found), is_done) == (12_000, False)
    assert notes == [
        "Compares up to 12,000 pairs of images, until hardly any are copies: at most 2 min. "
        "To do without, set the policies of near copies to off."
    ]
