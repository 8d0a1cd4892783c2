"""Pairs of images are compared once, also after an update and in another dataset."""

from __future__ import annotations

import numpy as np
import pytest

from darkroom.dataset.index import read_index
from darkroom.features import alike
from darkroom.features.alike import KnownPairs

pytest.importorskip("cv2")


def test_what_was_found_of_a_pair_is_kept_by_its_contents(index, tmp_path, monkeypatch):
    asked = []

    def compare(self, one, other, before, total):
        asked.extend(zip(one.tolist(), other.tolist(), strict=True))
        # Of the third row nothing can be told.
        return np.where((one == 3) | (other == 3), np.nan, one + other / 10).astype(np.float32)

    def ask(*pairs):
        asked.clear()
        return KnownPairs("records", index).compare(*np.array(pairs).T).round(3).tolist()

    monkeypatch.setattr(alike.RecordPairs, "compare", compare)
    monkeypatch.setenv("DARKROOM_CACHE", str(tmp_path / "cache"))
    assert ask((1, 2), (1, 3), (2, 4))[::2] == pytest.approx([1.2, 2.4])
    assert asked == [(1, 2), (1, 3), (2, 4)]
    # The mirror image of the first one is compared, too: the order counts.
    found = ask((2, 4), (1, 3), (2, 1), (1, 2))
    assert asked == [(1, 3), (2, 1)]
    assert found == pytest.approx([2.4, np.nan, 2.1, 1.2], nan_ok=True)
    # Other rows with these contents are the same images.
    rows = read_index(index)
    rows = rows.set_column(rows.column_names.index("row"), "row", (rows["row"].to_numpy() + 7,))
    monkeypatch.setattr(alike, "read_index", lambda folder, names: rows.select(names))
    assert ask((9, 11), (8, 9)) == pytest.approx([2.4, 1.2])
    assert asked == []
    monkeypatch.setattr(alike, "_FORM", "another")
    ask((8, 9))
    assert asked == [(8, 9)]
