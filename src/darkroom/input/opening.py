"""Makes sources of input from the splits of opened data."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from darkroom import storage
from darkroom.data.commits import group_by_folder
from darkroom.data.open import list_examples
from darkroom.data.splits import ImageSplit, RecordSplit, Split, fetch_records
from darkroom.dataset.opening import read_unchanged
from darkroom.input.files import FileSource
from darkroom.input.records import RecordSource
from darkroom.input.source import ImageSource


def open_splits(
    splits: Mapping[str, Split],
    *,
    verify: bool = False,
    stage: bool = True,
    cache_dir: str | os.PathLike[str] | None = None,
) -> dict[str, ImageSource]:
    """Returns the images of splits. The arguments are those of `fetch_records`.

    Raises:
        DataError: A file is missing or damaged, or records have no image or no label.
        UsageError: Images are in a store that TensorFlow cannot read.
        StorageError: The cache cannot be written, or the store fails.
    """
    records = [each for each in splits.values() if isinstance(each, RecordSplit)]
    copies = fetch_records(records, verify=verify, stage=stage, cache_dir=cache_dir)

    def open_split(split: Split) -> ImageSource:
        if isinstance(split, ImageSplit):
            return FileSource(split)
        return RecordSource(
            [
                storage.join(copies[root], file)
                for root in split.files
                for file in split.files[root]
            ],
            {copies[root]: each for root, each in split.commits.items()},
        )

    return {name: open_split(each) for name, each in splits.items()}


def open_files(file_patterns: str | Sequence[str], verify: bool = False) -> ImageSource:
    """Opens the TFRecord files that paths or patterns name, where they are.

    Raises:
        DataError: No file matches, a dataset was never finished or is damaged, there is nothing to
            verify by, or the records have no image or no label.
    """
    given = [file_patterns] if isinstance(file_patterns, str) else file_patterns
    folders = [*group_by_folder(list(map(storage.expand_home, given)))]

    def open_now() -> ImageSource:
        [source] = open_splits(list_examples({"": given}), verify=verify, stage=False).values()
        return source

    return read_unchanged(folders, open_now)
