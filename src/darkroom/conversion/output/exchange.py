"""Puts a new dataset in the place of an old one in a single step.

The new one is made in a folder beside the old one, and then the two change places. A reader finds
the old dataset or the new one, never a mix and never none.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Iterator

from darkroom import storage
from darkroom.conversion.output import ownership
from darkroom.dataset.layout import Folders
from darkroom.runtime import progress
from darkroom.storage.locks import LOCK_FILE, FolderLock

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def folder_beside(output_dir: str) -> str:
    """Returns where a dataset is made that is to replace the one in `output_dir`."""
    parent, name = os.path.split(os.path.realpath(storage.local_path(output_dir)))
    return os.path.join(parent, f".{name}.darkroom-new")


def can_replace(output_dir: str) -> bool:
    """Tells whether a folder can change places with one beside it.

    Not when it is remote, a mount point, or lies in a folder that may not be written.
    """
    if storage.is_remote(output_dir):
        return False
    path = os.path.realpath(storage.local_path(output_dir))
    return not os.path.ismount(path) and os.access(os.path.dirname(path), os.W_OK | os.X_OK)


def exchange(new: FolderLock, old: FolderLock) -> None:
    """Lets two held local folders change places; their locks go with them."""
    first, second = (os.path.realpath(storage.local_path(lock.folder)) for lock in (new, old))
    if not _exchange(first, second):
        # Without that system call there is a moment with no dataset, which a reader reports.
        aside = f"{first}.old"
        os.rename(second, aside)
        os.rename(first, second)
        os.rename(aside, first)
    storage.sync_folder(os.path.dirname(second))
    new.folder, old.folder = old.folder, new.folder


def check_beside(output_dir: str) -> None:
    """Checks that what a killed run may have left beside `output_dir` is all darkroom's.

    Raises:
        OutputError: It is not.
    """
    for folder in _list_beside(output_dir):
        _survey(folder).check(output_dir)


def remove_beside(output_dir: str) -> None:
    """Removes what a killed run has left beside `output_dir`.

    Raises:
        OutputError: Other files are there, too; nothing was removed.
    """
    check_beside(output_dir)
    for folder in _list_beside(output_dir):
        _remove(folder, _survey(folder).ours)


def replace_dataset(new: FolderLock, old: FolderLock) -> None:
    """Lets a complete dataset and the one that it replaces change places, and deletes the latter.

    Args:
        new: The folder beside the output.
        old: The output, both held.

    Raises:
        OutputError: Since the conversion began, other files came into one of the two. Nothing was
            changed; the next run begins here again.
    """
    _survey(new.folder).check(old.folder)
    found = _survey(old.folder)
    found.check()
    output_dir, beside = old.folder, new.folder
    exchange(new, old)
    # Only what was seen before: what has come since stays, whatever it is.
    _remove(beside, [f"{beside}{path[len(output_dir) :]}" for path in found.ours])
    if storage.exists(beside):
        progress.note(f"Warning: files that darkroom did not write came into {beside} and stay.")


def _list_beside(output_dir: str) -> Iterator[str]:
    if not storage.is_remote(output_dir):
        beside = folder_beside(output_dir)
        yield from filter(os.path.isdir, (beside, f"{beside}.old"))


def _survey(folder: str) -> ownership.Survey:
    return ownership.survey(Folders.of_dataset(folder), whole=True)


def _remove(folder: str, ours: Iterable[str]) -> None:
    storage.delete_files(ours)
    storage.delete_file(storage.join(folder, LOCK_FILE))
    storage.remove_empty_folders(folder)


def _exchange(first: str, second: str) -> bool:
    """Exchanges two paths by Linux's renameat2; tells whether that is possible here."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    paths = os.fsencode(first), os.fsencode(second)
    return bool(rename(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE) == 0)
