"""Features of images, kept on disk by the contents of the images.

Each view of each base has a folder, with a file for each group of images that was computed; so have
comparisons of pairs (`features.alike`). A file appears complete or not at all, and is never
changed, so several trainings may use a cache at once.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np

from darkroom import storage
from darkroom.errors import StorageError, describe_os_error
from darkroom.options.training import NO_FEATURE_CACHE
from darkroom.runtime import progress
from darkroom.runtime.arrays import Array
from darkroom.storage.user_cache import find_cache

_FILE = re.compile(r"features-[0-9a-f]{32}\.npz")
_KEY_BYTES = 32
_MAX_BYTES = 1 << 28


def choose_folder(feature_cache: str | None) -> str | None:
    """Returns the folder of the cache that an option names; None for no cache.

    The default one is left out where it cannot be made, as in a container without a home.

    Raises:
        OSError: The one that the option names cannot be made.
    """
    if feature_cache == NO_FEATURE_CACHE:
        return None
    if feature_cache is not None:
        folder = storage.absolute(feature_cache)
        storage.make_folder(folder)
        return folder
    try:
        folder = storage.join(find_cache(), "features")
        storage.make_folder(folder)
    except OSError as error:
        progress.note(f"Features are not kept. {describe_os_error(error)}")
        return None
    return folder


def find_cached(name: str) -> str | None:
    """Returns a folder of the default cache, which may not exist; None where there is no home."""
    with suppress(StorageError):
        return storage.join(find_cache(), "features", name)
    return None


def make_cache_key(sha256: bytes, shape: Sequence[int] | None = None) -> bytes:
    """Returns the key of an image, 32 bytes.

    Args:
        sha256: The SHA-256 of its bytes, as stored.
        shape: Height, width and channels of raw pixels, which say nothing of their form.
    """
    if shape is None:
        return sha256
    return hashlib.sha256(f"{[*shape]}".encode() + sha256).digest()


class FeatureCache:
    """The features of one view.

    Args:
        folder: Where they are; None keeps nothing.
    """

    def __init__(self, folder: str | None) -> None:
        self._folder = folder

    def load(self, rows: Mapping[bytes, Sequence[int]], features: Array) -> set[bytes]:
        """Fills in the features that are kept.

        Args:
            rows: The rows of each image, by its key.
            features: float32 [N, D], which is changed.

        Returns:
            The keys of the images that were found.
        """
        found: set[bytes] = set()
        if self._folder is None or not storage.is_folder(self._folder):
            return found
        for name in sorted(filter(_FILE.fullmatch, storage.list_folder(self._folder))):
            path = storage.join(self._folder, name)
            if storage.is_remote(path) or _may_have(path, rows):
                found |= _load_file(path, rows, features, found)
        return found

    def add(self, keys: Sequence[bytes], features: Array) -> None:
        """Keeps the features of images, if they are finite and can be written.

        Args:
            keys: The keys of the images, 32 bytes each.
            features: float32 [len(keys), D].
        """
        if self._folder is None or not keys or not np.isfinite(features).all():
            return
        file = io.BytesIO()
        joined = np.frombuffer(b"".join(keys), np.uint8).reshape(len(keys), -1)
        np.savez(file, keys=joined, features=features)
        try:
            storage.make_folder(self._folder)
            storage.write_bytes(storage.join(self._folder, _name_file(joined)), file.getvalue())
        except OSError as error:
            # A full disk, for example: the training does not need it.
            progress.note(f"What is computed is no longer kept. {describe_os_error(error)}")
            self._folder = None


def _name_file(keys: Array) -> str:
    return f"features-{hashlib.sha256(keys.tobytes()).hexdigest()[:32]}.npz"


def _may_have(path: str, rows: Mapping[bytes, Sequence[int]]) -> bool:
    """Reads the keys of a file alone, 1 % of it; a damaged one may have any."""
    try:
        with storage.open_read(path) as file, np.load(file, allow_pickle=False) as stored:
            return any(key in rows for key in _read_keys(path, stored))
    except Exception:  # noqa: BLE001  reading it as a whole tells whose fault it is
        return True


def _read_keys(path: str, stored: Mapping[str, Array]) -> list[bytes]:
    keys = stored["keys"]
    is_right = (keys.dtype, keys.shape[1:]) == (np.uint8, (_KEY_BYTES,))
    if not is_right or not path.endswith(_name_file(keys)):
        raise ValueError("its keys are not those of its name")
    return [key.tobytes() for key in keys]


def _load_file(
    path: str, rows: Mapping[bytes, Sequence[int]], features: Array, known: set[bytes]
) -> set[bytes]:
    """Fills in the features of a file that no other file had, and returns their keys."""
    try:
        data = storage.read_bytes(path, _MAX_BYTES)
    except storage.UNUSABLE:  # a folder, or another training has just deleted it
        return set()
    try:
        # From memory: all that is raised here is the file's fault.
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            # The cache may be that of many datasets: features are read where a key is wanted.
            keys = _read_keys(path, stored)
            wanted = [n for n, key in enumerate(keys) if key in rows and key not in known]
            if not wanted:
                return set()
            values = stored["features"]
        right = (np.float32, (len(keys), features.shape[1]))
        if (values.dtype, values.shape) != right or not np.isfinite(values).all():
            raise ValueError("its features are not those of its keys")
    except Exception:  # noqa: BLE001  numpy, zipfile and zlib raise whatever they meet
        # Without its deletion, it would be computed again each time.
        progress.note(f"{path} is damaged: what it had is computed again.")
        storage.delete_file(path)
        return set()
    for n in wanted:
        features[rows[keys[n]]] = values[n]
    return {keys[n] for n in wanted}
