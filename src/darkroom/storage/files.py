"""The facts about a file, and the problem with a path that is not one; for every store."""

from __future__ import annotations

import re
from typing import NamedTuple

from darkroom.errors import DamagedFileError

# Begins the name of a file that is not complete; such files remain when a process is killed.
PART_PREFIX = ".part-"
# In a listing, the length of anything but a regular file: a link, a FIFO, a device.
NOT_REGULAR = -1
# Why a walk leaves out a name. What is in a folder is not listed, so that folders are counted.
HIDDEN_FILES, HIDDEN_FOLDERS = "hidden files", "hidden folders"
OF_SYSTEM, LINKED_TWICE = "folders of thumbnails or trash", "folders linked twice"
# Folders that systems make, in lower case: Synology, QNAP, NetApp, Windows, macOS, Linux.
_SYSTEM_FOLDERS = frozenset(
    (
        *("@eadir", "@tmp", "@sharebin", "#recycle", "#snapshot", "#thumbs"),
        *("@recycle", "@recently-snapshot", "@__thumb"),
        "~snapshot",
        *("$recycle.bin", "system volume information"),
        *("__macosx", "network trash folder", "temporary items"),
        "lost+found",
    )
)
# Trash of older Windows, and what its check of a disk finds, which have capitals: recycled is the
# name of an honest class.
_OF_WINDOWS = re.compile(r"RECYCLE[RD]|(?i:FOUND)\.\d{3}")


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


def find_skip_reason(name: str, *, is_folder: bool) -> str:
    """Returns why a walk leaves out a file or a folder; empty where it does not."""
    if name.startswith("."):
        return HIDDEN_FOLDERS if is_folder else HIDDEN_FILES
    if is_folder and (name.lower() in _SYSTEM_FOLDERS or _OF_WINDOWS.fullmatch(name)):
        return OF_SYSTEM
    return ""


# Raised for a path that does not name a usable file, or names a damaged one; all other errors come
# from the store.
UNUSABLE = (
    FileNotFoundError,
    NotADirectoryError,
    FileTooLargeError,
    NotAFileError,
    DamagedFileError,
)
