"""Finds files of an output that its list of hashes proves to be darkroom's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from darkroom import storage
from darkroom.dataset.checksums import FileSum, read_sums
from darkroom.dataset.commit import is_commit
from darkroom.dataset.layout import DATASET_FILE, SUMS_FILE, Folders, split_folder
from darkroom.errors import DataError

Lengths = Mapping[str, int]


def find_listed(folders: Folders, found: Lengths) -> Iterator[str]:
    """Yields the lists of hashes of an output, and the files that match them: shards by length.

    A `dataset.json` that is damaged matches when it still looks like a commit.

    Args:
        folders: The folders of the output.
        found: The lengths of the files in it, by path.
    """
    sums = _read_list(folders.examples, found)
    if not sums:
        return  # the copy of an index, with its own list, proves nothing
    yield storage.join(folders.examples, SUMS_FILE)
    lists = {folders.examples: sums}
    for root in {folders.index, folders.rejects} - {folders.examples}:
        if lists.setdefault(root, _read_list(root, found)):
            yield storage.join(root, SUMS_FILE)
    for root, listed in lists.items():
        for name, expected in listed.items():
            path = storage.join(root, name)
            if name == DATASET_FILE:
                is_ours = path in found and is_commit(path)
            else:
                is_ours = found.get(path) == expected.size_bytes and (
                    name.startswith(split_folder("")) or storage.hash_file(path) == expected.sha256
                )
            if is_ours:
                yield path


def _read_list(folder: str, found: Lengths) -> Mapping[str, FileSum]:
    """Returns the sums of a folder's files; none without a list."""
    if found.get(storage.join(folder, SUMS_FILE), storage.NOT_REGULAR) > 0:
        with suppress(DataError):
            return read_sums(folder)
    return {}
