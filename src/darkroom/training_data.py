"""The splits of a training: checked, opened once for all of its epochs, and their caches."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from darkroom.errors import DataError
from darkroom.image_source import ImageSource
from darkroom.options import MEMORY_CACHE, NO_CACHE, InputOptions
from darkroom.record_source import RecordSource, check_commits, list_files


def open_split(
    split: str, paths: str | Sequence[str] | ImageSource, *, verify: bool
) -> ImageSource:
    """Opens the images of a split.

    Args:
        split: Its name: train or eval.
        paths: Paths or patterns of TFRecords; or a source that is open already.
        verify: Read the files and check their SHA-256.

    Raises:
        DataError: No file matches, or they cannot be used.
    """
    if not isinstance(paths, Sequence):
        return paths
    try:
        files = list_files(paths)
        return RecordSource(files, check_commits(files, verify))
    except DataError as error:
        raise DataError(f"The {split} split cannot be used: {error.message}", error.hint) from error


@contextmanager
def use_cache_folder(options: InputOptions) -> Iterator[InputOptions]:
    """Makes a folder for the files of a cache below the one named, and removes it in the end.

    TensorFlow would take the files of other data for its own, and refuses those of a process that
    was killed.

    Yields:
        Options with that folder; as they are where the cache has no files.
    """
    if options.cache in (NO_CACHE, MEMORY_CACHE):
        yield options
        return
    os.makedirs(options.cache, exist_ok=True)
    with tempfile.TemporaryDirectory(
        prefix="darkroom-", dir=options.cache, ignore_cleanup_errors=True
    ) as folder:
        yield replace(options, cache=folder)


def name_cache(options: InputOptions, split: str) -> InputOptions:
    """Returns options with files of a split's own in the folder of the cache."""
    if options.cache in (NO_CACHE, MEMORY_CACHE):
        return options
    return replace(options, cache=os.path.join(options.cache, split))
