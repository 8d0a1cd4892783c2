"""Entries of a manifest: their fields, and chunks of them as columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from itertools import islice
from typing import Any, NamedTuple

from pyarrow import fs

from darkroom import storage
from darkroom.dataset.rejects import Reject
from darkroom.errors import NOT_THE_DATA
from darkroom.manifest.listed_states import list_states

CHUNK_ROWS = 16_384

# Size in bytes and version of an image; both None when they are not known.
State = tuple[int | None, str | None]


class Entry(NamedTuple):
    """An example as the manifest knows it, before duplicates are dropped.

    Attributes:
        key: Its key, 32 hexadecimal digits.
        id: The text whose hash the key is.
        uri: URI of its image; empty when it has none.
        split: `train`, `eval` or `test`.
        declared: The split that the row declares; empty when the row has none.
        label: Its label; None when the source has none.
        row: Its number in the source.
        order: Its place in the seeded order of its split.
        size: Bytes of its image when that is known cheaply.
        mtime: Version of its image (modification time or etag) when that is known cheaply.
        extra: Its input columns by name.
    """

    key: str
    id: str
    uri: str
    split: str
    declared: str
    label: str | None
    row: int
    order: int
    size: int | None
    mtime: str | None
    extra: dict[str, Any]


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


def make_chunk(items: Sequence[Entry | Reject], pool: Executor | None = None) -> Chunk:
    """Returns rows as columns, with size and version of their images.

    Args:
        items: The rows.
        pool: Looks up the state of remote images; without it their state stays unknown.
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


def _look_up(uris: Sequence[str], pool: Executor | None) -> list[State]:
    local = [uri for uri in uris if uri.startswith("/")]
    states = _look_up_local(local)
    if len(local) == len(uris):
        return states
    found = iter(states)
    remote = [uri for uri in uris if storage.is_remote(uri)]
    asked: Iterator[State] = iter(())
    if pool:
        listed = list_states(remote, pool)
        others = pool.map(stat_image, [uri for uri in remote if uri not in listed])
        asked = (listed[uri] if uri in listed else next(others) for uri in remote)
    unknown: State = (None, None)
    return [
        next(found) if uri.startswith("/") else next(asked, unknown) if uri else unknown
        for uri in uris
    ]


def _look_up_local(uris: Sequence[str]) -> list[State]:
    try:
        # All in one call: Python's own takes longer for each file, above all for a missing one.
        found = fs.LocalFileSystem().get_file_info(list(uris))
    except (OSError, ValueError):
        return [stat_image(uri) for uri in uris]  # one impossible path fails the whole call
    return [(info.size, None if info.mtime_ns is None else str(info.mtime_ns)) for info in found]
