"""Which files outside of datasets may be replaced: the ledger of a folder, and one rule for a file.

A name proves nothing: the user's folder may have another `report.html` or `model`. So a
command asks the ledger before it replaces a file, and lists its files before it writes the first
one. A file that is not listed, or whose content changed since, is the user's. A file that the user
names needs no ledger: a file that exists is replaced only when asked for.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Mapping, Sequence
from typing import TypedDict

from darkroom import storage
from darkroom.errors import OutputError, StorageError
from darkroom.runtime.json_values import format_json, parse_json
from darkroom.runtime.text import list_first

LEDGER_FILE = ".darkroom-files.json"
# In place of a SHA-256: whatever is in the file, it is darkroom's.
ANY = "any"

_FORMAT_VERSION = 1
_MAX_BYTES = 1 << 24
_FOLDER, _NOT_REGULAR = "folder", "not regular"
# Consoles and systems put them into empty folders.
_IGNORED = ("lost+found",)

_Entries = Mapping[str, Sequence[str]]


class _Ledger(TypedDict):
    darkroom_files: int
    files: _Entries


def claim(folder: str, files: Mapping[str, str], hint: str = "") -> None:
    """Checks that darkroom may write files into a folder, and lists them in its ledger.

    After this, a file with one of these names is darkroom's, however the command ends.

    Args:
        folder: The folder; it is made if it does not exist.
        files: The SHA-256 of the files to write, by name relative to the folder, or `ANY`. A name
            that ends in `/` is that of a folder with all that is in it, which has `ANY`.
        hint: What to do when the files are not darkroom's.

    Raises:
        OutputError: Other files have these names. Nothing was changed.
    """
    ledger = _read(folder)
    entries = ledger or {}
    foreign = [LEDGER_FILE] if ledger is None else []
    coming: dict[str, list[str]] = {}
    for name, sha256 in files.items():
        found = _look(storage.join(folder, name))
        listed = entries.get(name, [])
        if not _is_ours(found, [*listed, sha256] if sha256 != ANY else listed):
            foreign.append(name)
        # A run that is killed leaves the old file or the new one.
        hashes = {sha256} if sha256 == ANY or found is None else {found, sha256}
        coming[name] = sorted(hashes)
    if foreign:
        raise build_foreign_error(folder, foreign, hint)
    if ledger != (entries := {**entries, **coming}):
        text = format_json({"darkroom_files": _FORMAT_VERSION, "files": entries})
        storage.make_folder(folder)
        storage.write_bytes(storage.join(folder, LEDGER_FILE), text)


def check_owned_files(folder: str, names: Collection[str]) -> None:
    """Checks that darkroom wrote the files that have these names in a folder, if there are any.

    Raises:
        OutputError: It did not, or they changed since.
    """
    ledger = _read(folder)
    entries = ledger or {}
    foreign = [LEDGER_FILE] if ledger is None else []
    foreign += [
        name
        for name in names
        if not _is_ours(_look(storage.join(folder, name)), entries.get(name, ()))
    ]
    if foreign:
        raise build_foreign_error(folder, foreign)


def write_files(folder: str, contents: Mapping[str, bytes]) -> list[str]:
    """Writes files into a folder, which is made if it does not exist.

    Args:
        folder: The folder.
        contents: The bytes of the files, by name.

    Returns:
        The paths of the files.

    Raises:
        OutputError: Other files have these names. Nothing was changed.
        OSError: The folder cannot be written.
    """
    claim(folder, {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()})
    for name, data in contents.items():
        storage.write_bytes(storage.join(folder, name), data)
    return [storage.join(folder, name) for name in contents]


def check_output_file(path: str, *, overwrite: bool) -> None:
    """Checks that a file may be written where a user wants it.

    Args:
        path: The file; absolute.
        overwrite: Whether a file that exists is replaced. A link is replaced itself, never the
            file that it leads to.

    Raises:
        OutputError: It exists and may not be replaced, or it is a folder.
        StorageError: Its folder does not exist.
    """
    folder = path.rpartition("/")[0]
    # Without this check, an error would come after the work.
    if not storage.is_remote(path) and not storage.is_folder(folder or "/"):
        raise StorageError(f"The folder {folder} does not exist.", "Make it, or name another file.")
    if storage.is_folder(path):
        raise OutputError(f"{path} is a folder.", "Give the name of a file.")
    if storage.exists(path) and not overwrite:
        raise OutputError(
            f"{path} exists already.",
            "Choose another file, or replace this one with overwrite (--overwrite).",
        )


def check_folder(folder: str) -> None:
    """Checks that a path for darkroom's files is a folder, or is free.

    Raises:
        OutputError: It is a file.
    """
    if storage.exists(folder) and not storage.is_folder(folder):
        raise OutputError(f"{folder} is a file.", "Choose a folder.")


def check_alone(folder: str, names: Collection[str], hint: str) -> None:
    """Checks that a folder has only the files that a command writes; hidden files do not count.

    Args:
        folder: The folder, which may not exist.
        names: Names of the files and folders that the command writes.
        hint: What to do when there are others.

    Raises:
        OutputError: It has others, or is a file itself.
    """
    check_folder(folder)
    own = {name.rstrip("/") for name in names}.union(_IGNORED)
    there = storage.list_folder(folder)
    foreign = [name for name in there if name not in own and not name.startswith(".")]
    if foreign:
        raise OutputError(f"{folder} contains unrelated files: {list_first(foreign)}.", hint)


def is_listed(folder: str, name: str) -> bool:
    """Tells whether the ledger of a folder lists a file."""
    return name in (_read(folder) or {})


def _read(folder: str) -> _Entries | None:
    """Returns the hashes of files by name; none without a ledger; None for another file."""
    path = storage.join(folder, LEDGER_FILE)
    if storage.is_link(path):
        return None
    try:
        data = storage.read_bytes(path, _MAX_BYTES)
        if not data:
            return {}  # there is nothing to lose
        ledger = parse_json(data, _Ledger)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (*storage.UNUSABLE, ValueError):
        return None
    return ledger["files"] if ledger["darkroom_files"] == _FORMAT_VERSION else None


def _look(path: str) -> str | None:
    """Returns the content of a path: the SHA-256 of a file, a folder, or something that is neither.

    None when there is nothing to lose: nothing at all, an empty file, or an empty folder.
    """
    path = path.rstrip("/")
    if storage.is_remote(path):
        there = storage.list_everything(path)
        if "" in there:
            return storage.hash_file(path) if there[""] else None
        return _FOLDER if there else None
    try:
        mode = os.lstat(storage.local_path(path)).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISDIR(mode):
        return _FOLDER if storage.list_folder(path) else None
    if not stat.S_ISREG(mode):
        return _NOT_REGULAR
    return storage.hash_file(path) if storage.stat_file(path).size_bytes else None


def _is_ours(found: str | None, accepted: Collection[str]) -> bool:
    if found is None:
        return True
    return found != _NOT_REGULAR and (found in accepted or ANY in accepted)


def build_foreign_error(
    folder: str, foreign: Sequence[str], hint: str = "", what: str = "folder"
) -> OutputError:
    """Returns the error for files that darkroom did not write.

    Args:
        folder: Their folder.
        foreign: Their names in it.
        hint: What to do; empty: move them, or choose another folder.
        what: What that folder is.
    """
    count = len(foreign)
    return OutputError(
        f"{folder} holds {count} file{'s' * (count > 1)} that darkroom did not write, or that "
        f"changed since: {list_first([name.rstrip('/') for name in foreign])}.",
        hint or f"Move {'them' if count > 1 else 'it'} elsewhere, or choose another {what}.",
    )
