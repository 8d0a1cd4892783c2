"""One writer at a time for a local output folder."""

from __future__ import annotations

import fcntl
import os
import socket

from darkroom import storage
from darkroom.errors import OutputError

LOCK_FILE = ".darkroom.lock"
_OWNER = "process "
_MAX_BYTES = 1 << 10


class FolderLock:
    """Locks a folder for this process, as a context manager; remote folders are not locked.

    The lock ends with the process, however that ends, so a killed run does not block others.

    Args:
        folder: The folder, which exists.

    Attributes:
        folder: Where the locked folder is now.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._descriptor: int | None = None

    def __enter__(self) -> FolderLock:
        """Takes the lock.

        Raises:
            OutputError: Another process has it, which the message names; or a file that is not a
                lock has its name.
        """
        if not storage.is_remote(self.folder):
            self._descriptor = _acquire(self._path, self.folder)
            os.ftruncate(self._descriptor, 0)
            owner = f"{_OWNER}{os.getpid()} on {socket.gethostname()}"
            os.write(self._descriptor, owner.encode())
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor is None:
            return
        # Removed before it is released: whoever waits for the old file sees that it is gone.
        if _is_current(self._descriptor, self._path):
            os.unlink(self._path)
        os.close(self._descriptor)
        self._descriptor = None

    @property
    def _path(self) -> str:
        return os.path.join(storage.local_path(self.folder), LOCK_FILE)


def is_lock(path: str) -> bool:
    """Tells whether a file is a lock, in use or left behind by a process that was killed."""
    try:
        if storage.is_remote(path):
            return False
        data = storage.read_bytes(path, _MAX_BYTES)
    except storage.UNUSABLE:
        return False
    return not data or data.startswith(_OWNER.encode())


def _acquire(path: str, folder: str) -> int:
    """Returns a descriptor of the lock file, which is then locked.

    The process that had the lock removes the file before it releases it. So the file that is locked
    here may be gone, and another process may lock the next one: then this begins again.
    """
    while True:
        # Opening a FIFO would wait for ever, and the target of a link would be emptied.
        if os.path.lexists(path) and (os.path.islink(path) or not is_lock(path)):
            raise OutputError(
                f"{folder} holds a file that darkroom did not write: {LOCK_FILE}.",
                "Move it elsewhere, or choose another output folder.",
            )
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(path, flags, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(descriptor, 200).decode(errors="replace") or "another process"
            os.close(descriptor)
            raise OutputError(
                f"{folder} is being written by {owner}.",
                "Wait for it, or choose another output folder.",
            ) from None
        if _is_current(descriptor, path):
            return descriptor
        os.close(descriptor)


def _is_current(descriptor: int, path: str) -> bool:
    """Tells whether the locked file is still the one at `path`, and was not just removed."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
