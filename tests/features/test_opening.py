"""Features of a dataset without a table of them: those of its images that the cache has."""

from __future__ import annotations

import numpy as np

from darkroom.dataset.index import read_index
from darkroom.features import opening
from darkroom.features.cache import FeatureCache
from darkroom.features.opening import NETWORK_IDENTITY, open_features


def keep(tmp_path, view, rows):
    """Puts features into the cache: the number of each row."""
    values = np.repeat(np.array([[row["row"]] for row in rows], np.float32), 4, axis=1)
    keys = [bytes.fromhex(row["sha256"]) for row in rows]
    FeatureCache(f"{tmp_path}/features/{NETWORK_IDENTITY}-{view}").add(keys, values)


def test_features_of_nearly_all_images_are_taken_from_the_cache(index, tmp_path, monkeypatch):
    rows = read_index(index, ["row", "sha256"]).to_pylist()
    monkeypatch.setattr(opening, "NETWORK_WIDTH", 4)
    monkeypatch.setenv("DARKROOM_CACHE", str(tmp_path))
    assert open_features(index) is None
    keep(tmp_path, "stretch", rows[:7])
    assert open_features(index) is None
    keep(tmp_path, "center_crop", [*rows[:2], *rows[3:]])
    found = open_features(index)
    assert found.model == f"efficientnet-lite0 {NETWORK_IDENTITY}-center_crop"
    assert found.is_cached
    expected = [row["row"] for row in (*rows[:2], *rows[3:])]
    assert found.rows.tolist() == expected
    np.testing.assert_array_equal(found.values[:, 3], expected)
    # Those of embed come first.
    keep(tmp_path, "stretch", rows)
    found = open_features(index)
    assert found.model == f"efficientnet-lite0 {NETWORK_IDENTITY}"
    assert found.rows.tolist() == [row["row"] for row in rows]
