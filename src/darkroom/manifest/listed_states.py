"""States of remote images from listings of their folders, where that takes fewer requests.

A store lists a thousand objects with one request, whose answer takes our processor as long as fifty
look-ups (benchmarks/fingerprint.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor

from darkroom import storage
from darkroom.errors import TransientStorageError

# Images that a page must have told of for it to be worth its cost.
_MIN_IMAGES = 100


def list_states(uris: Sequence[str], pool: Executor) -> dict[str, storage.FileInfo]:
    """Returns sizes and versions of images by URI, of those that listings tell of.

    The others have to be looked up: those in folders where few are asked for, those that do not
    exist, and those in folders that may not be listed.

    Args:
        uris: URIs of remote images, best in the order of their names.
        pool: Asks for the listings of several folders at the same time.

    Raises:
        TransientStorageError: A store failed again and again.
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
    """Lists a folder from the first name to the last, as long as the pages are worth it."""
    wanted = sorted(names)
    found: dict[str, storage.FileInfo] = {}
    try:
        for page in storage.list_remote_states(folder, wanted[0]):
            told = page.keys() & names
            found.update((f"{folder}/{name}", page[name]) for name in told)
            if len(told) < _MIN_IMAGES or max(page) >= wanted[-1]:
                break
    except TransientStorageError:
        raise
    except OSError:
        pass  # who may read images need not be allowed to list them
    return found
