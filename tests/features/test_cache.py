from __future__ import annotations

import errno
import io

import numpy as np
import pytest

from darkroom import storage
from darkroom.features.cache import FeatureCache, choose_folder
from darkroom.runtime import progress

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


def _pack(keys=None, features=VALUES[:2]):
    file = io.BytesIO()
    keys = np.frombuffer(b"".join(KEYS[:2]), np.uint8).reshape(2, 32) if keys is None else keys
    np.savez(file, keys=keys, features=features)
    return file.getvalue()


_DAMAGED = {
    "another width": _pack(features=np.zeros((2, 7), np.float32)),
    "rows missing": _pack(features=VALUES[:1]),
    "float64": _pack(features=VALUES[:2].astype(np.float64)),
    "text": _pack(features=VALUES[:2].astype(str)),
    "NaN": _pack(features=VALUES[:2] * np.nan),
    "a key that is a number": _pack(keys=np.uint8(3)),
    "keys of another width": _pack(keys=np.zeros((2, 16), np.uint8)),
    "keys of another file": _pack(keys=np.zeros((2, 32), np.uint8)),
    "truncated": _pack()[:-30],
    "changed": _pack().replace(VALUES[1].tobytes(), b"\x01" + VALUES[1].tobytes()[1:]),
    "another file": b"text",
}


@pytest.mark.parametrize("data", _DAMAGED.values(), ids=_DAMAGED.keys())
def test_what_does_not_fit_is_computed_again(tmp_path, monkeypatch, data):
    notes: list[str] = []
    monkeypatch.setattr(progress, "note", notes.append)
    FeatureCache(str(tmp_path)).add(KEYS[:2], VALUES[:2])
    (path,) = tmp_path.iterdir()
    path.write_bytes(data)
    (tmp_path / "notes.txt").write_text("mine")
    found, features = _load(tmp_path, {KEYS[0]: [0], KEYS[1]: [1]})
    assert found == set()
    assert (features == -1).all()
    assert notes == [f"{path} is damaged: what it had is computed again."]
    # No other file of the folder is read or deleted.
    assert [each.name for each in tmp_path.iterdir()] == ["notes.txt"]


def test_a_folder_under_the_name_is_not_a_file_of_the_cache(tmp_path):
    FeatureCache(str(tmp_path)).add(KEYS[:2], VALUES[:2])
    (tmp_path / f"features-{0:032}.npz").mkdir()
    assert _load(tmp_path, {KEYS[0]: [0]})[0] == {KEYS[0]}


def test_an_error_of_the_store_deletes_nothing(tmp_path, monkeypatch):
    FeatureCache(str(tmp_path)).add(KEYS[:2], VALUES[:2])

    def fail(*_, **options):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(storage, "read_bytes", fail)
    with pytest.raises(OSError, match="Input/output error"):
        _load(tmp_path, {KEYS[0]: [0]})
    assert len(list(tmp_path.iterdir())) == 1


def test_a_full_disk_ends_no_training(tmp_path, monkeypatch):
    notes: list[str] = []
    monkeypatch.setattr(progress, "note", notes.append)
    cache = FeatureCache(str(tmp_path))

    def fail(path, data):
        raise OSError(errno.ENOSPC, "No space left on device", path)

    monkeypatch.setattr(storage, "write_bytes", fail)
    cache.add(KEYS[:2], VALUES[:2])
    cache.add(KEYS[2:], VALUES[2:])
    (note,) = notes
    assert note.startswith(f"What is computed is no longer kept. {tmp_path}/features-")


def test_features_that_are_not_finite_are_not_kept(tmp_path):
    FeatureCache(str(tmp_path)).add(KEYS[:2], VALUES[:2] * np.nan)
    assert not list(tmp_path.iterdir())


def test_without_a_folder_nothing_is_kept():
    cache = FeatureCache(None)
    cache.add(KEYS, VALUES)
    assert cache.load({KEYS[0]: [0]}, np.zeros((1, 3), np.float32)) == set()


def test_the_folder_of_the_cache(tmp_path, monkeypatch):
    monkeypatch.delenv("DARKROOM_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert choose_folder(None) == f"{tmp_path}/.cache/darkroom/features"
    monkeypatch.setenv("XDG_CACHE_HOME", f"{tmp_path}/caches")
    assert choose_folder(None) == f"{tmp_path}/caches/darkroom/features"
    monkeypatch.setenv("DARKROOM_CACHE", f"{tmp_path}/own")
    assert choose_folder(None) == f"{tmp_path}/own/features"
    assert choose_folder("none") is None
    assert choose_folder("~/mine") == f"{tmp_path}/mine"


def test_a_home_that_cannot_be_written_ends_no_training(tmp_path, monkeypatch):
    notes: list[str] = []
    monkeypatch.setattr(progress, "note", notes.append)
    (tmp_path / "file").touch()
    monkeypatch.delenv("DARKROOM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", f"{tmp_path}/file")
    assert choose_folder(None) is None
    assert notes[0].startswith(f"Features are not kept. {tmp_path}/file")
    with pytest.raises(OSError, match="Not a directory"):
        choose_folder(f"{tmp_path}/file/cache")
