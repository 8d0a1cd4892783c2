"""Attempts at an output: the newest one owns it, whatever workers of others still do elsewhere.

A job may outlive its client. So a run begins by taking the output: on a disk it renames the folder
of the earlier attempt, which then can give no file its name; on a store it writes its own token,
which workers and the commit of the earlier attempt look at.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from darkroom import storage
from darkroom.dataset import journal
from darkroom.dataset.layout import DATASET_FILE, Folders
from darkroom.errors import OutputError, StorageError
from darkroom.runtime.json_values import build_value, format_json

RECORD_FILE = "attempt.json"
_MAX_BYTES = 1 << 16


@dataclass(frozen=True)
class Record:
    """The public facts about an attempt.

    Attributes:
        token: Its name.
        host: Where its client runs.
        process: The number of the client's process there.
        runner: Beam's name of the runner.
        job: The name of the job, where a runner of Beam does the work elsewhere; else empty.
        replaces: On a store, the version of the output's `dataset.json` when the attempt began.
    """

    token: str
    host: str = field(default_factory=socket.gethostname)
    process: int = field(default_factory=os.getpid)
    runner: str = ""
    job: str = ""
    replaces: str = ""

    def __str__(self) -> str:
        job = f", job {self.job} of {self.runner}" if self.job else ""
        return f"attempt {self.token} (process {self.process} on {self.host}{job})"

    @property
    def may_run(self) -> bool:
        """Whether it may still write, as far as that can be seen from this process."""
        # A job may outlive its client, and this process its run, as that of a notebook does.
        is_here = self.host == socket.gethostname()
        has_ended = is_here and (self.process == os.getpid() or not _is_alive(self.process))
        return bool(self.job) or not has_ended

    def to_bytes(self) -> bytes:
        """Returns the record as it is kept in the output."""
        return format_json({"darkroom_attempt": 1, **vars(self)})


@dataclass(frozen=True)
class Attempt:
    """A run that writes into an output, as its workers need it.

    Attributes:
        folders: Where it writes; on a store mostly a folder in the output. The manifest is where
            workers read it.
        output: The output.
        record: The public facts about it.
        earlier: The folders of earlier attempts and datasets at an output on a store.
        describe: The readers whose sidecars it writes.
    """

    folders: Folders
    output: str
    record: Record
    earlier: tuple[Folders, ...] = ()
    describe: tuple[str, ...] = ()

    def write_record(self) -> None:
        """Writes the public facts, and on a store that this attempt is the newest one."""
        path = storage.join(self.folders.work, RECORD_FILE)
        storage.write_bytes(path, self.record.to_bytes(), self.folders.find_part(path))
        if storage.is_remote(self.output):
            storage.write_bytes(current_path(self.output), self.record.to_bytes())

    def check_current(self) -> None:
        """Checks that no later attempt has taken the output.

        On a disk this is only for the message: the attempt could not do anything any more.

        Raises:
            OutputError: One has.
            StorageError: The store has lost which one it is.
        """
        if storage.is_remote(self.output):
            current = read_record(current_path(self.output))
            if current is None and storage.exists(current_path(self.output)):
                raise StorageError(
                    f"{current_path(self.output)} is damaged, so nobody knows which run has "
                    f"{self.output}.",
                    "Run this again: finished shards are kept.",
                )
            is_current = current is not None and current.token == self.folders.token
            found = [current] if current else []
        else:
            is_current = storage.exists(self.folders.work)
            # Not read for each shard of an attempt that is current.
            found = [] if is_current else read_attempt_records(journal.list_attempts(self.folders))
        if not is_current:
            later = ", ".join(map(str, found)) or "a later run"
            raise OutputError(
                f"Attempt {self.folders.token} ends, because {later} has taken {self.output}.",
                "Its finished shards are kept if that run has the same source and options.",
            )


def new_token() -> str:
    """Returns a name that no other attempt has."""
    return secrets.token_hex(4)


def take(folders: Folders) -> None:
    """Takes the folders of earlier attempts away from them, by renaming; on a disk only.

    The attempt of `folders` continues in one of them, with all that was finished there.
    """
    if storage.is_remote(folders.examples):
        return
    for earlier in journal.list_attempts(folders):
        if earlier.token == folders.token:
            continue
        # Several are left only when a run was killed just here.
        free = replace(folders, token=new_token()) if storage.exists(folders.work) else folders
        storage.rename(earlier.work, free.work)
    storage.make_folder(folders.work)
    storage.sync_folder(folders.attempts)


def read_attempt_records(attempts: Iterable[Folders]) -> list[Record]:
    """Reads the facts about attempts, as far as they have left some."""
    found = (read_record(storage.join(each.work, RECORD_FILE)) for each in attempts)
    return [each for each in found if each]


def read_record(path: str) -> Record | None:
    """Reads the facts about an attempt; None when there is no such file, or another one."""
    try:
        fields = storage.read_json(path, dict[str, Any], _MAX_BYTES)
        if fields.pop("darkroom_attempt", 0) != 1:
            return None
        fields.pop("engine", None)  # of 0.2
        found = build_value(fields, Record)
    except (*storage.UNUSABLE, ValueError):
        return None
    return found if journal.TOKEN.fullmatch(found.token) else None


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass  # It is there, and somebody else's.
    return True


def current_path(output: str) -> str:
    """Returns the path of the record of the newest attempt at an output on a store."""
    return storage.join(Folders.of_dataset(output).attempts, "current.json")


def read_version(output: str) -> str:
    """Returns the version of an output's `dataset.json`; empty if it does not exist."""
    try:
        return storage.stat_file(storage.join(output, DATASET_FILE)).version
    except FileNotFoundError:
        return ""
