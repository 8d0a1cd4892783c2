"""A source's fingerprint: it changes when a row does, or an image that a row names.

A changed image at the same path would otherwise be served from a cache: pipelines see properties
and artifacts, not the files behind a path.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import msgspec

from darkroom import storage
from darkroom.dataset.layout import Folders
from darkroom.dataset.sources import AnySource
from darkroom.errors import StorageError, describe_os_error
from darkroom.manifest.chunks import LOOKUP_THREADS, look_up, read_chunks
from darkroom.manifest.classes import join_classes
from darkroom.manifest.exclusions import hash_exclusions
from darkroom.manifest.label_map import resolve
from darkroom.manifest.opening import open_sources
from darkroom.manifest.rows import Chunk, parse_blocks
from darkroom.manifest.sources.base import Source
from darkroom.options.manifest import ManifestOptions
from darkroom.runtime import by_name
from darkroom.version import hash_code

__all__ = ["Fingerprint", "fingerprint_source"]

# The id is in the key; the order follows from the key and the seed.
_TEXTS = ("key", "uri", "split", "declared")
_OTHERS = ("size", "mtime", "extra")


class Fingerprint:
    """BLAKE2b-128 over the rows of a source and the state of their images, in order.

    Args:
        options: How rows become entries; of a list of exclusions, a file of decisions and a file
            with the labels the content counts.
        sources: The files of the source, whose order of classes counts.
    """

    def __init__(self, options: ManifestOptions, sources: Sequence[Source] = ()) -> None:
        self._digest = hashlib.blake2b(digest_size=16, key=str(options.seed).encode())
        if options.exclude is not None:
            self._digest.update(hash_exclusions(options.exclude).encode())
        if options.decisions is not None:
            self._digest.update(f"decisions {hash_exclusions(options.decisions)}".encode())
        if options.places_rows:
            groups = None if options.groups is None else hash_exclusions(options.groups)
            how = options.group_column, groups, options.stratify, options.folds
            self._digest.update(repr((*how, options.ratios)).encode())
        if options.label_map is not None:
            self._digest.update(repr(resolve(options).labels).encode())
        # Classes without an object are in no row.
        elif options.labels is None and (order := join_classes(sources)[0]):
            self._digest.update(repr(order).encode())

    def update(self, chunk: Chunk) -> None:
        """Adds rows, with their images' sizes and versions as far as they have them.

        By columns, because work that is done row by row adds up for millions of rows.
        """
        columns = chunk.columns
        # A NUL is rejected on reading.
        self.update_text("\0\0".join("\0".join(columns[name]) for name in _TEXTS) + "\0\0")
        self._digest.update(_spell_labels(columns["label"]))
        parts = ["", *(repr(columns[name]) for name in _OTHERS)]
        # A column of spans is in `extra`, too; numbers in the names of lists are not.
        parts += [repr(columns["span"])] * any(columns["span"])
        parts += [repr(tuple(reject)) for reject in chunk.rejects]
        self.update_text("\0\0".join(parts))

    def update_text(self, text: str) -> None:
        """Adds what else the rows depend on."""
        self._digest.update(text.encode(errors="backslashreplace"))

    def hexdigest(self) -> str:
        """Returns the fingerprint, 32 hexadecimal digits."""
        return self._digest.hexdigest()


def _spell_labels(values: Sequence[Any]) -> bytes:
    """Returns a text of labels: of objects JSON, as that of Python takes longer than all else."""
    has_objects = any(isinstance(value, dict) and "objects" in value for value in values)
    return msgspec.json.encode(values) if has_objects else repr(values).encode()


def fingerprint_source(
    source: AnySource,
    options: ManifestOptions | None = None,
    check: Callable[[Chunk], None] | None = None,
    shown: Sequence[Folders] = (),
) -> str:
    """Returns the fingerprint of a source and of all images that it names.

    Remote images are looked up one by one, 32 at a time.

    Args:
        source: Path, pattern, folder or DataFrame.
        options: How its rows are read.
        check: Called with all rows and the state of their images; may raise any error.
        shown: Datasets that the gallery may have shown, where it saved the decisions.

    Raises:
        DataError: The source as a whole cannot be used.
        OSError: It cannot be read.
    """
    options = options or ManifestOptions()
    sources = open_sources(source, options)
    if options.decisions is not None:
        with tempfile.TemporaryDirectory(prefix="darkroom-") as scratch:
            lasting = by_name.find("make_lasting")(options.decisions, scratch, shown)
            fingerprint = Fingerprint(replace(options, decisions=lasting), sources)
    else:
        fingerprint = Fingerprint(options, sources)
    with ThreadPoolExecutor(LOOKUP_THREADS) as pool:
        for chunk in read_chunks(parse_blocks(sources, resolve(options))):
            look_up(chunk, pool)
            if check is not None:
                check(chunk)
            fingerprint.update(chunk)
    return fingerprint.hexdigest()


def read_source_state(
    source: AnySource,
    options: ManifestOptions | None = None,
    check: Callable[[Chunk], None] | None = None,
    shown: Sequence[Folders] = (),
) -> str:
    """Returns a text that changes whenever the result of ManifestGen would.

    It is the fingerprint of the source with a hash of darkroom's code, because other code may work
    differently. Unlike `fingerprint_source` it fails when the state of an image is unknown. A
    missing image has a known state, an image that may not be looked at does not.

    Args:
        source: Path, pattern, folder or DataFrame.
        options: How its rows are read.
        check: Called with all rows and the state of their images; may raise any error.
        shown: Datasets that the gallery may have shown, where it saved the decisions.

    Raises:
        DataError: The source as a whole cannot be used.
        OSError: It, or the state of one of its images, cannot be read.
    """

    def check_all(chunk: Chunk) -> None:
        if check is not None:
            check(chunk)
        columns = zip(chunk.columns["uri"], chunk.columns["size"], strict=True)
        # Images without a state must be missing, not merely hidden from us.
        unknown = [uri for uri, size in columns if uri and size is None]
        if unknown:
            with ThreadPoolExecutor(LOOKUP_THREADS) as pool:
                list(pool.map(_check_missing, unknown))

    return f"{hash_code()}-{fingerprint_source(source, options, check_all, shown)}"


def _check_missing(uri: str) -> None:
    try:
        storage.stat_file(uri)
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        said = describe_os_error(error) if isinstance(error, OSError) else f"{error}."
        raise StorageError(f"The state of {uri} is unknown: {said}") from error
