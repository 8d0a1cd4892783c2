"""Attempts at an output: the newest one owns it, whatever workers of others still do elsewhere.

A job may outlive its client. So a run begins by taking the output: on a disk it renames the folder
of the earlier attempt, which then can give no file its name; on a store it writes its own token,
which workers and the commit of the earlier attempt look at.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
from dataclasses import dataclass, field
from typing import Any

from darkroom import storage
from darkroom.dataset import journal
from darkroom.dataset.layout import Folders
from darkroom.errors import OutputError
from darkroom.runtime.json_values import build_value

RECORD_FILE = "attempt.json"
CURRENT_FILE = "current.json"
_MAX_BYTES = 1 << 16


@dataclass(frozen=True)
class Attempt:
    """A run that writes into an output, as others see it.

    Attributes:
        token: Its name.
        host: Where its client runs.
        process: The number of the client's process there.
        runner: Beam's name of the runner.
        job: The name of the job on an engine; empty when the client does the work itself.
        engine: The address of the engine, where it can be asked for the job.
        replaces: On a store, the version of the output's `dataset.json` when the attempt began.
    """

    token: str
    host: str = field(default_factory=socket.gethostname)
    process: int = field(default_factory=os.getpid)
    runner: str = ""
    job: str = ""
    engine: str = ""
    replaces: str = ""

    def to_bytes(self) -> bytes:
        """Returns the record as it is kept in the output."""
        return f"{json.dumps({'darkroom_attempt': 1, **vars(self)}, indent=1)}\n".encode()


def new_token() -> str:
    """Returns a name that no other attempt has."""
    return secrets.token_hex(4)


def take(folders: Folders) -> None:
    """Takes the folders of earlier attempts away from them, by renaming; on a disk only.

    The new attempt continues in one of them, with all that was finished there.
    """
    if storage.is_remote(folders.examples):
        return
    for token in journal.list_attempts(folders):
        if token == folders.token:
            continue
        old, own = storage.join(folders.attempts, token), folders.work
        # Several are left only when a run was killed just here.
        new = storage.join(folders.attempts, new_token()) if storage.exists(own) else own
        storage.rename(old, new)
    storage.make_folder(folders.work)
    storage.sync_folder(folders.attempts)


def write_record(folders: Folders, output: str, attempt: Attempt) -> None:
    """Writes the public facts about an attempt, and on a store that it is the newest one.

    Args:
        folders: The folders of the attempt.
        output: The output, which on a store may be the folder above.
        attempt: The attempt.
    """
    path = storage.join(folders.work, RECORD_FILE)
    storage.write_bytes(path, attempt.to_bytes(), folders.find_part(path))
    if storage.is_remote(output):
        storage.write_bytes(_current_path(output), attempt.to_bytes())


def read_record(path: str) -> Attempt | None:
    """Reads the facts about an attempt; None when there is no such file, or another one."""
    try:
        fields = storage.read_json(path, dict[str, Any], _MAX_BYTES)
        if fields.pop("darkroom_attempt", 0) != 1:
            return None
        found = build_value(fields, Attempt)
    except (*storage.UNUSABLE, ValueError):
        return None
    return found if journal.TOKEN.fullmatch(found.token) else None


def read_current(output: str) -> Attempt | None:
    """Returns the newest attempt at an output on a store; None before the first one."""
    return read_record(_current_path(output))


def check_current(folders: Folders, output: str) -> None:
    """Checks that no later attempt has taken the output.

    On a disk this is only for the message: the attempt could not do anything any more.

    Raises:
        OutputError: One has.
    """
    if not folders.token:
        return
    if storage.is_remote(output):
        current = read_current(output)
        is_current = current is not None and current.token == folders.token
    else:
        is_current = storage.exists(folders.work)
    if not is_current:
        raise OutputError(
            f"A later run has taken {output}, so attempt {folders.token} ends.",
            f"Its finished shards are kept if that run has the same source and options. "
            f"See: darkroom attempts {output}",
        )


def _current_path(output: str) -> str:
    return storage.join(Folders.of_dataset(output).attempts, CURRENT_FILE)
