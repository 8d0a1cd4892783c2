"""One writer at a time for a local output folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator

from darkroom import storage
from darkroom.errors import OutputError

LOCK_FILE = ".darkroom.lock"


@contextlib.contextmanager
def hold_folder(folder: str) -> Iterator[None]:
    """Holds a folder for this process; remote folders cannot be held.

    The lock ends with the process however that ends, so a killed run blocks nobody.

    Raises:
        OutputError: Another process holds it; the message says which.
    """
    if storage.is_remote(folder):
        yield
        return
    path = os.path.join(storage.local_path(folder), LOCK_FILE)
    descriptor = _acquire(path, folder)
    try:
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode())
        yield
    finally:
        # Removed while still held: whoever waits on the old file sees that it is gone.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        os.close(descriptor)


def _acquire(path: str, folder: str) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
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
    """Tells whether the held file is still the one at `path`, not one just removed."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
