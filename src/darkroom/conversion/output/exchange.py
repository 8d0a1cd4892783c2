"""Replaces an old dataset by a new one in a single step.

The new one is written to a folder beside the old one, then the two folders are exchanged. A reader
finds the old dataset or the new one, never a mix and never none.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable

from darkroom import storage
from darkroom.conversion.output import ownership
from darkroom.dataset.layout import Folders
from darkroom.runtime import progress
from darkroom.storage.locks import LOCK_FILE, FolderLock

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def folder_beside(output_dir: str) -> str:
    """Returns the folder for a dataset that will replace the one in `output_dir`."""
    parent, name = os.path.split(os.path.realpath(storage.local_path(output_dir)))
    return os.path.join(parent, f".{name}.darkroom-new")


def can_replace(output_dir: str) -> bool:
    """Tells whether a folder can be exchanged for one beside it.

    It cannot when it is remote, a mount point, or in a folder that is not writable.
    """
    if storage.is_remote(output_dir):
        return False
    path = os.path.realpath(storage.local_path(output_dir))
    return not os.path.ismount(path) and os.access(os.path.dirname(path), os.W_OK | os.X_OK)


def exchange(new: FolderLock, old: FolderLock) -> None:
    """Exchanges two local folders, and the locks that are held on them."""
    first, second = (os.path.realpath(storage.local_path(lock.folder)) for lock in (new, old))
    if not _exchange(first, second):
        # Without that system call there is a moment with no dataset, which a reader reports.
        aside = f"{first}.old"
        os.rename(second, aside)
        os.rename(first, second)
        os.rename(aside, first)
    storage.sync_folder(os.path.dirname(second))
    new.folder, old.folder = old.folder, new.folder


def check_beside(output_dir: str) -> list[ownership.Survey]:
    """Checks that darkroom wrote all files that are left of a killed run beside `output_dir`.

    Raises:
        OutputError: It did not.
    """
    if storage.is_remote(output_dir):
        return []
    beside = folder_beside(output_dir)
    found = [_survey(folder) for folder in (beside, f"{beside}.old") if os.path.isdir(folder)]
    for each in found:
        each.check(output_dir)
    return found


def remove_beside(output_dir: str) -> None:
    """Removes the files of a killed run beside `output_dir`.

    Raises:
        OutputError: The folder has other files, too; nothing was removed.
    """
    for each in check_beside(output_dir):
        _remove(each.folders.examples, each.ours)


def replace_dataset(new: FolderLock, old: FolderLock) -> None:
    """Exchanges a complete dataset for the one that it replaces, and deletes the old one.

    Args:
        new: The folder beside the output.
        old: The output, both held.

    Raises:
        OutputError: Other files were put into one of the two during the conversion. Nothing was
            changed; the next run starts from here.
    """
    _survey(new.folder).check(old.folder)
    found = _survey(old.folder)
    found.check()
    output_dir, beside = old.folder, new.folder
    exchange(new, old)
    # Only the files that existed before: newer ones stay.
    _remove(beside, [f"{beside}{path[len(output_dir) :]}" for path in found.ours])
    if storage.exists(beside):
        progress.note(f"Warning: {beside} stays: it holds files that darkroom did not write.")


def _survey(folder: str) -> ownership.Survey:
    return ownership.survey(Folders.of_dataset(folder), whole=True)


def _remove(folder: str, ours: Iterable[str]) -> None:
    storage.delete_files(ours)
    storage.delete_file(storage.join(folder, LOCK_FILE))
    storage.remove_empty_folders(folder)


def _exchange(first: str, second: str) -> bool:
    """Exchanges two paths by Linux's renameat2; returns False where that is not possible."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    paths = os.fsencode(first), os.fsencode(second)
    return bool(rename(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE) == 0)
