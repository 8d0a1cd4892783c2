"""Chunks of parsed rows, as columns, with the states of their images.

The states of remote images are looked up by listing their folders, where that is cheaper. A store
lists a thousand objects with one request, and the answer takes our processor as long as fifty
look-ups (benchmarks/fingerprint.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from itertools import islice
from typing import Any, NamedTuple

from pyarrow import fs

from darkroom import storage
from darkroom.dataset.rejects import Reject
from darkroom.errors import NOT_THE_DATA
from darkroom.manifest.rows import Entry

CHUNK_ROWS = 16_384
# That ask stores for the states of images.
REMOTE_THREADS = 32
# A page of a listing must have at least as many of the images to be worth its cost.
_MIN_IMAGES = 100

# Size in bytes and version of an image; both None when they are not known.
State = tuple[int | None, str | None]


class Chunk(NamedTuple):
    """Successive rows of a source.

    Attributes:
        columns: The entries among them, by the names of `Entry`.
        rejects: The rejected rows.
    """

    columns: dict[str, Sequence[Any]]
    rejects: list[Reject]

    @property
    def num_rows(self) -> int:
        """Rows of both kinds."""
        return len(self.columns["key"]) + len(self.rejects)


def read_chunks(items: Iterable[Entry | Reject]) -> Iterator[list[Entry | Reject]]:
    """Yields the items in lists of `CHUNK_ROWS`, the last one shorter."""
    items = iter(items)
    while chunk := list(islice(items, CHUNK_ROWS)):
        yield chunk


def make_chunk(items: Sequence[Entry | Reject], pool: Executor) -> Chunk:
    """Returns rows as columns, with size and version of their images.

    Args:
        items: The rows.
        pool: Looks up the state of remote images.
    """
    entries = [item for item in items if isinstance(item, Entry)]
    rejects = [item for item in items if isinstance(item, Reject)]
    values: Any = list(zip(*entries, strict=True)) or [()] * len(Entry._fields)
    columns = dict(zip(Entry._fields, values, strict=True))
    states = _look_up(columns["uri"], pool)
    columns["size"] = [size for size, _ in states]
    columns["mtime"] = [version for _, version in states]
    return Chunk(columns, rejects)


def stat_image(uri: str) -> State:
    """Returns size in bytes and version of an image; None for both when they are unknown."""
    try:
        return storage.stat_file(uri)
    except NOT_THE_DATA:
        raise  # a state that is known only at times would make every run a new source
    except (OSError, ValueError):
        return None, None  # the conversion will say why


def _look_up(uris: Sequence[str], pool: Executor) -> list[State]:
    """Returns the state of each image, in the order of `uris`; an empty URI has none.

    Local images are looked up together, and remote ones one by one where no listing has them.
    """
    local = [uri for uri in uris if uri.startswith("/")]
    states = _look_up_local(local)
    if len(local) == len(uris):
        return states
    found = iter(states)
    remote = [uri for uri in uris if storage.is_remote(uri)]
    listed = list_states(remote, pool)
    others = pool.map(stat_image, [uri for uri in remote if uri not in listed])
    asked = (listed[uri] if uri in listed else next(others) for uri in remote)
    unknown: State = (None, None)
    return [next(found) if uri.startswith("/") else next(asked) if uri else unknown for uri in uris]


def _look_up_local(uris: Sequence[str]) -> list[State]:
    try:
        # All in one call: Python's own takes longer for each file, above all for a missing one.
        found = fs.LocalFileSystem().get_file_info(list(uris))
    except (OSError, ValueError):
        return [stat_image(uri) for uri in uris]  # one impossible path fails the whole call
    return [(info.size, None if info.mtime_ns is None else str(info.mtime_ns)) for info in found]


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
