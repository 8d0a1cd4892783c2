"""A source's fingerprint: it changes when a row does, or an image that a row names.

A changed image at the same path would otherwise be served from a cache: pipelines see properties
and artifacts, not the files behind a path.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from darkroom.entries import Chunk, make_chunk, read_chunks
from darkroom.exclusions import hash_exclusions
from darkroom.rows import ManifestOptions, parse_rows
from darkroom.sources import AnySource, open_sources

_THREADS = 32
# The id is in the key; the order follows from the key and the seed.
_TEXTS = ("key", "uri", "split", "declared")
_OTHERS = ("label", "size", "mtime", "extra")


class Fingerprint:
    """BLAKE2b-128 over the rows of a source and the state of their images, in order.

    Args:
        options: How rows become entries; a list of exclusions counts with what it holds.
    """

    def __init__(self, options: ManifestOptions) -> None:
        self._digest = hashlib.blake2b(digest_size=16, key=str(options.seed).encode())
        if options.exclude is not None:
            self._digest.update(hash_exclusions(options.exclude).encode())

    def update(self, chunk: Chunk) -> None:
        """Adds rows, with their images' sizes and versions as far as they have them.

        By columns, as everything that is done row by row counts when there are millions.
        """
        columns = chunk.columns
        parts = ["\0".join(columns[name]) for name in _TEXTS]  # NUL is refused on reading
        parts += [repr(columns[name]) for name in _OTHERS]
        parts += [repr(tuple(reject)) for reject in chunk.rejects]
        self._digest.update("\0\0".join(parts).encode(errors="backslashreplace"))

    def hexdigest(self) -> str:
        """Returns the fingerprint, 32 hexadecimal digits."""
        return self._digest.hexdigest()


def fingerprint_source(
    source: AnySource,
    options: ManifestOptions | None = None,
    check: Callable[[Chunk], None] | None = None,
) -> str:
    """Returns the fingerprint of a source and of all images that it names.

    Remote images are looked up one by one, 32 at a time.

    Args:
        source: Path, pattern, folder or DataFrame.
        options: How its rows are read.
        check: Looks at all rows with the state of their images, and raises what it likes.

    Raises:
        DataError: The source as a whole cannot be used.
        OSError: It cannot be read.
    """
    options = options or ManifestOptions()
    rows = parse_rows(open_sources(source, options.schema, options.encoding), options)
    fingerprint = Fingerprint(options)
    with ThreadPoolExecutor(_THREADS) as pool:
        for items in read_chunks(rows):
            chunk = make_chunk(items, pool)
            if check is not None:
                check(chunk)
            fingerprint.update(chunk)
    return fingerprint.hexdigest()
