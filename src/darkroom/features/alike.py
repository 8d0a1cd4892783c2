"""Compares pairs of images by their pixels, each pair once: what was found is in the cache.

It is about the contents of images, so it also holds after an update, and in another dataset.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from PIL import __version__ as pillow_version

from darkroom.dataset.index import read_index
from darkroom.features.cache import FeatureCache, find_cached
from darkroom.images.near_pixels import RecordPairs
from darkroom.runtime.arrays import Array

# Changes when a comparison would find something else.
_FORM = 3
_COLUMNS = ("row", "sha256", "format", "height", "width", "channels")


class KnownPairs:
    """Compares pairs as `RecordPairs` does, and those that are known not again.

    Args:
        examples: The folder of the dataset.
        index_dir: The folder of its index.
    """

    def __init__(self, examples: str, index_dir: str) -> None:
        import cv2

        self._pairs = RecordPairs(examples, index_dir)
        self._index = read_index(index_dir, [*_COLUMNS]).drop_null()
        self._cache = FeatureCache(find_cached(f"alike-{_FORM}-{cv2.__version__}-{pillow_version}"))

    def compare(self, one: Array, other: Array, before: int = 0, total: int = 0) -> Array:
        """Does what `RecordPairs.compare` does, with the pairs that are not known."""
        is_asked = pc.is_in(self._index["row"], pa.array(np.union1d(one, other)))
        asked = self._index.filter(is_asked).to_pydict().values()
        contents = {row: parts for row, *parts in zip(*asked, strict=True)}
        places: dict[bytes, list[int]] = {}
        for place, (a, b) in enumerate(zip(one.tolist(), other.tolist(), strict=True)):
            if a in contents and b in contents:
                key = hashlib.sha256(f"{contents[a]} {contents[b]}".encode()).digest()
                places.setdefault(key, []).append(place)
        found = np.full((len(one), 1), np.nan, np.float32)
        known = self._cache.load(places, found)
        left = np.isnan(found[:, 0])
        found[left, 0] = self._pairs.compare(one[left], other[left], before, total)
        new = {key: found[own[0]] for key, own in places.items() if key not in known}
        new = {key: each for key, each in new.items() if np.isfinite(each)}
        self._cache.add([*new], np.array([*new.values()]))
        return found[:, 0]
