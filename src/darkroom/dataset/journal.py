"""The journal of an attempt: all files that it will write, listed before it writes the first.

When the journal is written, no other file has one of these names. So a file with such a name later
is darkroom's, however the attempt ends. Names are relative to the folder that they are in, so that
a journal can move with its output, and an attempt's folder with its journal.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from darkroom import storage
from darkroom.dataset.commit import is_commit
from darkroom.dataset.layout import (
    DATA_FOLDER,
    DATAFLOW_FOLDER,
    DATASET_FILE,
    WORK_FOLDER,
    Folders,
    is_reserved,
    is_sidecar,
)

JOURNAL_FILE = "journal.json"

_FORMAT_VERSION = 1
_HEADER = f'{{\n "darkroom_journal": {_FORMAT_VERSION},\n'
_MAX_BYTES = 1 << 28
# The name of an attempt's folder.
TOKEN = re.compile(r"[0-9a-f]{8}")
_MARKS = (DATASET_FILE, WORK_FOLDER)


def journal_path(folders: Folders) -> str:
    """Returns the path of the journal of an attempt."""
    return storage.join(folders.work, JOURNAL_FILE)


def list_attempts(folders: Folders) -> list[Folders]:
    """Returns the folders of the attempts that have left some in an output."""
    tokens = filter(TOKEN.fullmatch, storage.list_folder(folders.attempts))
    return [replace(folders, token=token) for token in tokens]


def write_journal(
    folders: Folders,
    paths: Iterable[str],
    path: str = "",
    hashes: Mapping[str, str] | None = None,
) -> None:
    """Writes a journal atomically; after this it survives a crash.

    Args:
        folders: The folders of the output.
        paths: The files; a path that ends in `/` names everything below it.
        path: The journal; the attempt's journal when empty.
        hashes: The SHA-256 of files, by path; the journal names them only with this content.
    """
    path = path or journal_path(folders)
    folder = path.rpartition("/")[0]
    # The folder of an attempt exists, unless a later attempt has taken it.
    if folder != folders.work:
        storage.make_folder(folder)
    names: dict[str, list[str]] = {role: [] for role in _list_roles(folders)}
    for each in sorted(set(paths)):
        role, name = _split(folders, each)
        names[role].append(name)
    sums = {"/".join(_split(folders, each)): sha256 for each, sha256 in (hashes or {}).items()}
    journal = {"darkroom_journal": _FORMAT_VERSION, **names, "sha256": sums}
    text = json.dumps(journal, indent=1) + "\n"
    storage.write_bytes(path, text.encode(), folders.find_part(path))
    storage.sync_folder(folders.examples)


def find_journals(folders: Folders, found: Mapping[str, int]) -> set[str]:
    """Returns the journals of an output, and the files in it that they name.

    Args:
        folders: The folders of the output.
        found: The lengths of the files in the output, by path.
    """
    ours: set[str] = set()
    start = f"{folders.attempts}/"
    first = {path[len(start) :].partition("/")[0] for path in found if path.startswith(start)}
    owners = [replace(folders, token=token) for token in sorted(filter(TOKEN.fullmatch, first))]
    journals = [(owner, journal_path(owner)) for owner in owners]
    dataflow = storage.join(folders.examples, DATAFLOW_FOLDER)
    journals += [(folders, storage.join(dataflow, JOURNAL_FILE))]
    for owner, path in journals:
        if path in found and (named := _read(owner, path)) is not None:
            below = tuple(name for name in named if name.endswith("/"))
            ours |= {path, *(n for n in found if n.startswith(below) or _is_named(n, named))}
        for part in {storage.find_part(path), owner.find_part(path)}:
            if part in found and _is_part(part):
                ours.add(part)
    return ours


def is_output(folder: str) -> bool:
    """Tells whether darkroom wrote, or began to write, a dataset into a folder.

    Raises:
        OSError: The folder cannot be read.
    """
    if is_commit(storage.join(folder, DATASET_FILE)):
        return True
    folders = Folders.of_dataset(folder)
    names = filter(DATA_FOLDER.fullmatch, storage.list_folder(folder))
    if any(is_output(storage.join(folder, name)) for name in names):
        return True
    return any(_read(each, journal_path(each)) is not None for each in list_attempts(folders))


def find_outputs(folder: str, left_out: Counter[str] | None = None) -> tuple[list[str], list[str]]:
    """Returns the files below a folder without those of darkroom outputs, and these outputs.

    Only files that a conversion writes into an output are left out, not images beside them.

    Args:
        folder: The folder.
        left_out: As in `storage.walk_files`.

    Returns:
        Both as paths relative to `folder`.

    Raises:
        OSError: A folder cannot be read.
    """
    outputs: dict[str, bool] = {}

    def is_left_out(inside: str, name: str) -> bool:
        if inside not in outputs:
            outputs[inside] = is_output(storage.join(folder, inside))
        return outputs[inside] and (is_reserved(name) or is_sidecar(name))

    files = list(storage.walk_files(folder, _MARKS, is_left_out, left_out))
    return files, [inside for inside, found in outputs.items() if found]


def _list_roles(folders: Folders) -> dict[str, str]:
    # The folder of the examples may contain the others.
    return {
        **({"work": folders.work} if folders.token else {}),
        "index": folders.index,
        "examples": folders.examples,
        "rejects": folders.rejects,
    }


def _split(folders: Folders, path: str) -> tuple[str, str]:
    """Returns the role of the folder that a file is in, and its name there."""
    for role, folder in _list_roles(folders).items():
        if path.startswith(f"{folder}/"):
            return role, path[len(folder) + 1 :]
    raise ValueError(f"{path} is not in the output {folders.examples}")


def _is_named(path: str, named: Mapping[str, str]) -> bool:
    """Tells whether a journal names a file, and its content if it has a hash of it."""
    sha256 = named.get(path)
    return sha256 == "" or (sha256 is not None and storage.has_hash(path, sha256))


def _read(folders: Folders, path: str) -> dict[str, str] | None:
    """Returns the files that a journal names, with their SHA-256 or an empty text.

    None when the file is not a journal.
    """
    try:
        listed = storage.read_json(path, dict[str, Any], _MAX_BYTES)
        if listed["darkroom_journal"] != _FORMAT_VERSION:
            return None
        return {
            storage.join(folder, name): str(listed["sha256"].get(f"{role}/{name}", ""))
            for role, folder in _list_roles(folders).items()
            for name in (listed.get(role, ()) if role == "work" else listed[role])
        }
    except (*storage.UNUSABLE, ValueError, TypeError, KeyError, AttributeError):
        return None


def _is_part(path: str) -> bool:
    """Tells whether a file is an unfinished journal."""
    try:
        begun = storage.read_bytes(path, _MAX_BYTES)[: len(_HEADER)]
    except storage.UNUSABLE:
        return False
    return _HEADER.encode().startswith(begun)
