"""Finds the files that darkroom can prove to have written: it deletes and replaces no others.

Until the commit, the journal of an attempt names its files. After it, `SHA256SUMS` does.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain

from darkroom import storage
from darkroom.conversion.output import attempts
from darkroom.dataset import journal, layout
from darkroom.dataset.checksums import FileSum, list_summed_sidecars, read_sums
from darkroom.dataset.commit import is_commit
from darkroom.dataset.layout import Folders, is_reserved, is_reserved_for_rejects
from darkroom.errors import DataError
from darkroom.storage import ledger
from darkroom.storage.locks import LOCK_FILE, is_lock

# Files that prove others are deleted after them, so that a run that is killed can be resumed.
_LAST = (layout.SUMS_FILE, layout.DATASET_FILE, journal.JOURNAL_FILE)


@dataclass(frozen=True)
class Survey:
    """The files in an output under the names that a conversion uses.

    Attributes:
        folders: The folders of the output.
        ours: Paths of the files that darkroom can prove it wrote, in the order in which they may be
            deleted: if that ends early, the rest can still be proven.
        foreign: Paths of all others, sorted.
    """

    folders: Folders
    ours: tuple[str, ...]
    foreign: tuple[str, ...]

    def check(self, output_dir: str = "") -> None:
        """Checks that all files are darkroom's.

        Args:
            output_dir: Names in the message are relative to it; to the dataset when empty.

        Raises:
            OutputError: Some are not.
        """
        if self.foreign:
            root = output_dir or self.folders.examples
            names = [_shorten(path, root) for path in self.foreign]
            raise ledger.build_foreign_error(root, names, what="output folder")


def survey(
    folders: Folders, *, whole: bool = False, coming: Collection[str] = (), without: str = ""
) -> Survey:
    """Lists the files that a conversion into these folders would replace, by who wrote them.

    Args:
        folders: The folders of an output.
        whole: Whether all files in the dataset's folder count, under any name, because the folder
            is replaced or removed as a whole. The lock does not count.
        coming: The paths of the sidecars that are to be written, below the dataset. A file of
            another one's name counts only when it is ours.
        without: Name of the folder of an attempt that does not count.

    Raises:
        OSError: Something cannot be read.
    """
    names = storage.list_folder(folders.examples)
    found = _list_files(folders, names, whole)
    ours = journal.find_journals(folders, found)
    ours.update(_find_committed(folders, found))
    if not whole:
        known = {*coming, *list_summed_sidecars(folders.examples)}
        for name in set(layout.SIDECAR_FILES) - known:
            if (path := storage.join(folders.examples, name)) not in ours:
                found.pop(path, None)
    lock = storage.join(folders.examples, LOCK_FILE)
    # Each of these folders is a dataset, or was to be one.
    data = (storage.join(folders.examples, name) for name in names if _is_data(name))
    own = storage.join(folders.examples, without)
    inside = [survey(Folders.of_dataset(folder), whole=True) for folder in data if folder != own]
    current = attempts.current_path(folders.examples)
    # Each attempt writes one, so that those of an output prove one that is damaged.
    if current in found and (any(each.ours for each in inside) or attempts.read_record(current)):
        ours.add(current)
    foreign = found.keys() - ours - ({lock} if is_lock(lock) else set())
    return Survey(
        folders,
        (*chain.from_iterable(each.ours for each in inside), *sorted(ours, key=_rank)),
        (*sorted(foreign), *chain.from_iterable(each.foreign for each in inside)),
    )


def _is_data(name: str) -> bool:
    return layout.DATA_FOLDER.fullmatch(name) is not None


def _find_committed(folders: Folders, found: Mapping[str, int]) -> Iterator[str]:
    """Yields the commit, the lists of hashes, and the files that match them.

    A shard matches by its length: to read all shards takes as long as to write them. A commit that
    is damaged still counts.
    """
    path = storage.join(folders.examples, layout.DATASET_FILE)
    if found.get(path, storage.NOT_REGULAR) >= 0 and is_commit(path):
        yield path
    roots = dict.fromkeys((folders.examples, folders.index, folders.rejects))
    lists: dict[str, Mapping[str, FileSum]] = {}
    for root in roots:
        if found.get(storage.join(root, layout.SUMS_FILE), storage.NOT_REGULAR) > 0:
            with suppress(DataError):
                lists[root] = read_sums(root)
    if folders.examples not in lists:
        return  # the copy of an index, with its own list, proves nothing
    for root, sums in lists.items():
        yield storage.join(root, layout.SUMS_FILE)
        for name, expected in sums.items():
            path = storage.join(root, name)
            if found.get(path) == expected.size_bytes and name != layout.DATASET_FILE:
                is_shard = name.startswith(layout.split_folder(""))
                if is_shard or storage.has_hash(path, expected.sha256):
                    yield path


def delete_ours(found: Survey, kept: Collection[str] = ()) -> None:
    """Deletes the files that are proven to be darkroom's, then the empty folders of its names."""
    storage.delete_files(path for path in found.ours if path not in kept)
    remove_own_folders(found.folders.examples)


def remove_own_folders(folder: str) -> None:
    """Removes the empty folders with names of darkroom's in a folder."""
    for name in filter(is_reserved, storage.list_folder(folder)):
        storage.remove_empty_folders(storage.join(folder, name))


def end_attempt(folders: Folders, *, committed: bool) -> None:
    """Deletes the files in an attempt's work folder.

    The journal is deleted last. It stays when nothing was committed, because it is the only proof
    then; it also has the hashes of the files that people read then, and may edit.
    """
    path = journal.journal_path(folders)
    delete_named(folders, folders.work, () if committed else (path,))
    storage.remove_folder(folders.attempts)
    if not committed:
        found = _list_files(folders, storage.list_folder(folders.examples), whole=False)
        named = journal.find_journals(folders, found) - {path}
        for_people = [
            storage.join(folders.examples, layout.LABELS_FILE),
            storage.join(folders.rejects, layout.REJECTS_FILE),
            storage.join(folders.rejects, layout.REJECTS_LIST_FILE),
        ]
        hashes = {each: storage.hash_file(each) for each in for_people if each in named}
        journal.write_journal(folders, named, hashes=hashes)


def delete_named(folders: Folders, folder: str, kept: Collection[str] = ()) -> None:
    """Deletes the files in a folder of an output that its journal names, and the journal."""
    named = journal.find_journals(folders, _list_below(folder))
    storage.delete_files(sorted(named.difference(kept), key=_rank))
    storage.remove_empty_folders(folder)


def _list_files(folders: Folders, names: Iterable[str], whole: bool) -> dict[str, int]:
    """Returns the lengths of all files that count, by path."""
    found: dict[str, int] = {}
    for name in names:
        if (whole or is_reserved(name) or name in layout.SIDECAR_FILES) and not _is_data(name):
            found |= _list_below(storage.join(folders.examples, name))
    if not folders.index.startswith(f"{folders.examples}/"):
        found |= _list_below(folders.index)
    if folders.rejects != folders.examples:
        for name in storage.list_folder(folders.rejects):
            if is_reserved_for_rejects(name):
                found |= _list_below(storage.join(folders.rejects, name))
    return found


def _list_below(path: str) -> dict[str, int]:
    """Returns the lengths of the files in a folder by path; of a file, its own."""
    files = storage.list_everything(path).items()
    return {storage.join(path, name) if name else path: length for name, length in files}


def _rank(path: str) -> tuple[int, str]:
    name = path.rpartition("/")[2]
    return _LAST.index(name) + 1 if name in _LAST else 0, path


def _shorten(path: str, root: str) -> str:
    if path.startswith(f"{root}/"):
        path = path[len(root) + 1 :]
    elif not storage.is_remote(root) and os.path.dirname(root) != "/":
        path = os.path.relpath(path, root)
    return path
