"""The folder on this machine of what every dataset and training of the user shares."""

from __future__ import annotations

import os

from darkroom.errors import StorageError
from darkroom.storage.uris import absolute

CACHE_VARIABLE = "DARKROOM_CACHE"


def find_cache(cache_dir: str | os.PathLike[str] | None = None) -> str:
    """Returns the folder of the cache.

    Raises:
        StorageError: There is no home folder, and no other folder was given.
    """
    if cache_dir is not None or os.environ.get(CACHE_VARIABLE):
        return absolute(cache_dir or os.environ[CACHE_VARIABLE])
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if not os.path.isabs(base):
        raise StorageError(
            "There is no folder for copies of remote datasets: this user has no home folder.",
            f"Choose one with cache_dir or {CACHE_VARIABLE}.",
        )
    return os.path.join(base, "darkroom")
