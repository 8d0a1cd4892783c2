"""Looks up the states of remote images by listing their folders, where that is cheaper.

A store lists a thousand objects with one request, and the answer takes our processor as long as
fifty look-ups (benchmarks/fingerprint.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor

from darkroom import storage
from darkroom.errors import NOT_THE_DATA

# A page of a listing must have at least as many of the images to be worth its cost.
_MIN_IMAGES = 100


def list_states(uris: Sequence[str], pool: Executor) -> dict[str, storage.FileInfo]:
    """Returns sizes and versions of images by URI, as far as listings have them.

    The others have to be looked up: those in folders with few of the images, missing ones, and
    those in folders that may not be listed.

    Args:
        uris: URIs of remote images, best in the order of their names.
        pool: Lists several folders at the same time.

    Raises:
        StorageError: A store failed repeatedly, or does not accept the credentials.
    """
    folders: defaultdict[str, set[str]] = defaultdict(set)
    for uri in uris:
        folder, _, name = uri.rpartition("/")
        folders[folder].add(name)
    dense = {folder: names for folder, names in folders.items() if len(names) >= _MIN_IMAGES}
    found: dict[str, storage.FileInfo] = {}
    for part in pool.map(_list_folder, dense, dense.values()):
        found.update(part)
    return found


def _list_folder(folder: str, names: Iterable[str]) -> dict[str, storage.FileInfo]:
    """Lists a folder from the first name to the last, while the pages are worth their cost."""
    wanted = sorted(names)
    found: dict[str, storage.FileInfo] = {}
    try:
        for page in storage.list_remote_states(folder, wanted[0]):
            told = page.keys() & names
            found.update((f"{folder}/{name}", page[name]) for name in told)
            if len(told) < _MIN_IMAGES or max(page) >= wanted[-1]:
                break
    except NOT_THE_DATA:
        raise
    except OSError:
        pass  # reading images may be allowed where listing them is not
    return found
