from __future__ import annotations

import numpy as np
import pytest

from darkroom.runtime import progress
from darkroom.training.features.cache import FeatureCache, choose_folder

KEYS = [bytes([n]) * 32 for n in range(5)]
VALUES = np.arange(15, dtype=np.float32).reshape(5, 3)


def _load(folder, rows, count=4):
    features = np.full((count, 3), -1, np.float32)
    return FeatureCache(str(folder)).load(rows, features), features


def test_features_are_found_by_the_key_of_their_image(tmp_path):
    cache = FeatureCache(str(tmp_path / "new" / "folder"))
    cache.add(KEYS[:3], VALUES[:3])
    cache.add(KEYS[3:], VALUES[3:])
    # An image may be there twice; one is not in the cache, and one of the cache is not wanted.
    found, features = _load(
        tmp_path / "new" / "folder", {KEYS[4]: [0, 3], KEYS[1]: [1], b"other": [2]}
    )
    assert found == {KEYS[4], KEYS[1]}
    np.testing.assert_array_equal(features[[0, 1, 3]], VALUES[[4, 1, 4]])
    np.testing.assert_array_equal(features[2], [-1, -1, -1])


@pytest.mark.parametrize("damage", ["truncated", "changed", "empty", "other"])
def test_a_damaged_file_is_deleted_and_says_so(tmp_path, monkeypatch, damage):
    notes: list[str] = []
    monkeypatch.setattr(progress, "note", notes.append)
    FeatureCache(str(tmp_path)).add(KEYS[:2], VALUES[:2])
    (path,) = tmp_path.iterdir()
    data = path.read_bytes()
    at = data.index(VALUES[1].tobytes())
    changed = data[:at] + b"\x01" + data[at + 1 :]
    path.write_bytes(
        {"truncated": data[:-30], "changed": changed, "empty": b"", "other": b"text"}[damage]
    )
    found, _ = _load(tmp_path, {KEYS[0]: [0], KEYS[1]: [1]})
    assert found == set()
    assert notes == [f"{path} is damaged: its features are computed again."]
    assert not path.exists()


def test_features_of_another_width_are_not_taken(tmp_path):
    FeatureCache(str(tmp_path)).add(KEYS[:1], np.zeros((1, 7), np.float32))
    assert _load(tmp_path, {KEYS[0]: [0]})[0] == set()


def test_other_files_stay(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    FeatureCache(str(tmp_path)).add(KEYS, VALUES)
    assert _load(tmp_path, {KEYS[2]: [0]})[0] == {KEYS[2]}
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_without_a_folder_nothing_is_kept():
    cache = FeatureCache(None)
    cache.add(KEYS, VALUES)
    assert cache.load({KEYS[0]: [0]}, np.zeros((1, 3), np.float32)) == set()


def test_the_folder_of_the_cache(tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert choose_folder(None) == f"{tmp_path}/.cache/darkroom/features"
    monkeypatch.setenv("XDG_CACHE_HOME", f"{tmp_path}/caches")
    assert choose_folder(None) == f"{tmp_path}/caches/darkroom/features"
    assert choose_folder("none") is None
    assert choose_folder("~/mine") == f"{tmp_path}/mine"


def test_a_home_that_cannot_be_written_ends_no_training(tmp_path, monkeypatch):
    notes: list[str] = []
    monkeypatch.setattr(progress, "note", notes.append)
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", f"{tmp_path}/file")
    assert choose_folder(None) is None
    assert notes[0].startswith(f"Features are not kept. {tmp_path}/file")
