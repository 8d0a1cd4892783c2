"""The files of a folder, to be compared with those of another one, or of later."""

from __future__ import annotations

import os
from fnmatch import fnmatch
from pathlib import Path


def read_files(folder: str | os.PathLike[str], *without: str) -> dict[str, bytes]:
    """Returns all files below a folder by their names in it, without those of some patterns."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file() and not any(fnmatch(path.name, each) for each in without)
    }


def write_files(folder: Path, *names: str) -> dict[str, bytes]:
    """Writes files of a user's, and returns all files below the folder."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"mine")
    return read_files(folder)
