"""Chunks of parsed rows, as columns, with the states of their images.

The states of remote images are looked up by listing their folders, where that is cheaper. A store
lists a thousand objects with one request, and the answer takes our processor as long as fifty
look-ups (benchmarks/fingerprint.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from itertools import chain

from pyarrow import fs

from darkroom import storage
from darkroom.errors import NOT_THE_DATA
from darkroom.manifest.rows import BLOCK_ROWS, COLUMNS, Chunk

CHUNK_ROWS = 32 * BLOCK_ROWS
# That ask disks and stores for the states of images: a shared disk takes as long as a store.
LOOKUP_THREADS = 32
# Of local images that are looked up in one call, which needs no interpreter.
_PART_ROWS = 2048
# A page of a listing must have at least as many of the images to be worth its cost.
_MIN_IMAGES = 100

# Size in bytes and version of an image; both None when they are not known.
State = tuple[int | None, str | None]


def read_chunks(blocks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Yields what `parse_blocks` does in chunks of `CHUNK_ROWS`, the last one shorter."""
    waiting: list[Chunk] = []
    for block in blocks:
        waiting.append(block)
        if sum(each.num_rows for each in waiting) == CHUNK_ROWS:
            yield _join(waiting)
            waiting = []
    if waiting:
        yield _join(waiting)


def _join(blocks: Sequence[Chunk]) -> Chunk:
    # A fingerprint has the text of these tuples.
    columns = {
        name: tuple(chain.from_iterable(block.columns[name] for block in blocks))
        for name in COLUMNS
    }
    return Chunk(columns, [reject for block in blocks for reject in block.rejects])


def look_up(chunk: Chunk, pool: Executor) -> None:
    """Adds size and version of the images of a chunk, which `pool` looks up."""
    states = _look_up(chunk.columns["uri"], pool)
    chunk.columns["size"] = [size for size, _ in states]
    chunk.columns["mtime"] = [version for _, version in states]


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

    Local images are looked up in parts, and remote ones one by one where no listing has them.
    """
    local = [uri for uri in uris if uri.startswith("/")]
    parts = [local[start : start + _PART_ROWS] for start in range(0, len(local), _PART_ROWS)]
    states = [state for part in pool.map(_look_up_local, parts) for state in part]
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
