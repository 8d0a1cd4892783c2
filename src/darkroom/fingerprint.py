"""A source's fingerprint: it changes when a row does, or an image that a row names.

A changed image at the same path would otherwise be served from a cache: pipelines see properties
and artifacts, not the files behind a path.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from darkroom import storage
from darkroom.rejects import Reject
from darkroom.rows import Entry, ManifestOptions, parse_rows, stat_image
from darkroom.sources import AnySource, open_sources

_THREADS = 32
_CHUNK = 4_096


class Fingerprint:
    """BLAKE2b-128 over the rows of a source and the state of their images, in order."""

    def __init__(self) -> None:
        self._digest = hashlib.blake2b(digest_size=16)

    def update(self, item: Entry | Reject) -> None:
        """Adds a row, with its image's size and version as far as it has them."""
        self._digest.update(repr(tuple(item)).encode(errors="backslashreplace"))

    def hexdigest(self) -> str:
        """Returns the fingerprint, 32 hexadecimal digits."""
        return self._digest.hexdigest()


def fingerprint_source(source: AnySource, options: ManifestOptions | None = None) -> str:
    """Returns the fingerprint of a source and of all images that it names.

    Remote images are looked up one by one, 32 at a time.

    Raises:
        DataError: The source as a whole cannot be used.
        OSError: It cannot be read.
    """
    options = options or ManifestOptions()
    rows = parse_rows(open_sources(source, options.schema), options)
    fingerprint = Fingerprint()
    with ThreadPoolExecutor(_THREADS) as pool:
        for item in _look_up(rows, pool):
            fingerprint.update(item)
    return fingerprint.hexdigest()


def _look_up(rows: Iterator[Entry | Reject], pool: ThreadPoolExecutor) -> Iterator[Entry | Reject]:
    while chunk := list(islice(rows, _CHUNK)):
        if any(storage.is_remote(item.uri) for item in chunk):
            yield from pool.map(_with_version, chunk)
        else:
            yield from chunk


def _with_version(item: Entry | Reject) -> Entry | Reject:
    if isinstance(item, Reject) or not storage.is_remote(item.uri):
        return item
    size, version = stat_image(item.uri)
    return item._replace(size=size, mtime=version)
