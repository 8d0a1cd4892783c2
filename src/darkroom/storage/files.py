"""The facts about a file, and the problem with a path that is not one; for every store."""

from __future__ import annotations

from typing import NamedTuple

from darkroom.errors import DamagedFileError

# Begins the name of a file that is not complete; such files remain when a process is killed.
PART_PREFIX = ".part-"
# In a listing, the length of anything but a regular file: a link, a FIFO, a device.
NOT_REGULAR = -1
# Why a walk leaves out a name.
HIDDEN, OF_SYSTEM, LINKED_TWICE = "hidden", "thumbnails or trash of a system", "linked twice"
# Folders of Synology, QNAP, Windows, macOS and Linux, in lower case.
_SYSTEM_FOLDERS = frozenset(
    (
        "@eadir",
        "#recycle",
        "#snapshot",
        "@tmp",
        "@recycle",
        "@recently-snapshot",
        "$recycle.bin",
        "system volume information",
        "__macosx",
        "network trash folder",
        "temporary items",
        "lost+found",
    )
)


class FileInfo(NamedTuple):
    """The facts about a file without reading it.

    Attributes:
        size_bytes: Its length.
        version: Text that changes when the file does: modification time in nanoseconds, an ETag, or
            a generation.
    """

    size_bytes: int
    version: str


class FileTooLargeError(OSError):
    """The file is longer than the caller allows."""


class NotAFileError(OSError):
    """The path names a folder, a device, a FIFO or a socket."""


def find_reason(name: str, *, is_folder: bool) -> str:
    """Returns why a walk leaves out a file or a folder; empty where it does not."""
    if name.startswith("."):
        return HIDDEN
    return OF_SYSTEM if is_folder and name.lower() in _SYSTEM_FOLDERS else ""


# Raised for a path that does not name a usable file, or names a damaged one; all other errors come
# from the store.
UNUSABLE = (
    FileNotFoundError,
    NotADirectoryError,
    FileTooLargeError,
    NotAFileError,
    DamagedFileError,
)
