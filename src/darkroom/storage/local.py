"""Files and folders of this machine; for `darkroom.storage` alone."""

from __future__ import annotations

import os
import posixpath
import shutil
import stat
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import BinaryIO

from darkroom.errors import MissingPathError
from darkroom.storage.files import (
    LINKED_TWICE,
    NOT_REGULAR,
    PART_PREFIX,
    FileInfo,
    NotAFileError,
    find_skip_reason,
)


def open_read(path: str) -> BinaryIO:
    """Opens a regular file for reading.

    Raises:
        OSError: It is missing, not a regular file, or not readable.
    """
    file = open(path, "rb", opener=_open_at_once)  # noqa: SIM115  the caller closes it
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise NotAFileError(f"{path} is not a regular file")
    return file


def open_write(path: str) -> BinaryIO:
    """Opens a file for writing, and truncates it; devices such as /dev/null may be written.

    Raises:
        OSError: It is a FIFO or a link, which may lead to a file of the user, or it cannot be
            written.
    """
    file = open(path, "wb", opener=_open_no_link)  # noqa: SIM115  the caller closes it
    if stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
        file.close()
        raise NotAFileError(f"{path} is not a regular file")
    return file


def _open_at_once(path: str, flags: int) -> int:
    # Without O_NONBLOCK, opening a FIFO without a writer waits for ever.
    return os.open(path, flags | os.O_NONBLOCK, 0o666)


def _open_no_link(path: str, flags: int) -> int:
    return _open_at_once(path, flags | os.O_NOFOLLOW)


def make_folder(path: str) -> None:
    """Makes a folder and its parents.

    Raises:
        OSError: It cannot be made.
    """
    try:
        os.makedirs(path, exist_ok=True)
    except FileNotFoundError as error:
        # The system says of a folder in /proc that it does not exist.
        raise MissingPathError(
            f"The folder {path} cannot be made: its file system takes no new folders.",
            "Choose another place.",
        ) from error


def read_bytes(path: str, limit_bytes: int | None = None) -> bytes | None:
    """Reads a whole regular file; None when it is longer than the limit.

    Raises:
        OSError: It is missing, not a regular file, or not readable.
    """
    descriptor = _open_at_once(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NotAFileError(f"{path} is not a regular file")
        if limit_bytes is not None and status.st_size > limit_bytes:
            return None
        # As few calls as possible: after each one this thread waits for the interpreter again.
        data = os.read(descriptor, status.st_size + 1)
        if len(data) == status.st_size:
            return data
        # The file grows while it is read, or is in /proc and has no length.
        with open(descriptor, "rb", buffering=0, closefd=False) as raw:
            return data + raw.read()
    finally:
        os.close(descriptor)


def write_blocks(path: str, blocks: Iterable[bytes], part: str | None = None) -> None:
    """Writes a whole file, which appears complete or not at all, and survives a crash.

    Args:
        path: The file.
        blocks: Its bytes.
        part: Path of the unfinished file; a new name in the same folder when None.

    Raises:
        OSError: It cannot be written; the error names this file, or its folder if that is missing.
    """
    folder = os.path.dirname(path) or "."
    try:
        if part is None:
            descriptor, part = tempfile.mkstemp(prefix=PART_PREFIX, dir=folder)
        else:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(part, flags, 0o666)
    except OSError as error:
        # The caller does not know the part.
        error.filename = path if os.path.isdir(folder) else folder
        raise
    try:
        with open(descriptor, "wb") as file:
            for block in blocks:
                file.write(block)
            file.flush()
            os.fsync(descriptor)
        # The mask can be read only by setting it; mkstemp's 0600 would hide the file from others.
        mask = os.umask(0o022)
        os.umask(mask)
        os.chmod(part, 0o666 & ~mask)
        os.replace(part, path)
    except BaseException as error:
        os.unlink(part)
        if isinstance(error, OSError):
            error.filename = path
        raise
    sync_folder(folder)


def sync_folder(path: str) -> None:
    """Forces the names in a folder to disk."""
    descriptor = os.open(path or ".", os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def stat_file(path: str) -> FileInfo:
    """Returns the size and version of a file.

    Raises:
        OSError: It is missing or not readable.
    """
    status = os.stat(path)
    return FileInfo(status.st_size, str(status.st_mtime_ns))


def walk_files(
    root: str,
    marks: Collection[str] = (),
    is_left_out: Callable[[str, str], bool] | None = None,
    left_out: Counter[str] | None = None,
    *,
    with_hidden: bool = False,
) -> Iterator[str]:
    """Yields the relative paths of all files below a folder, as `darkroom.storage.walk_files`.

    Args:
        root: The folder.
        marks: As there.
        is_left_out: As there.
        left_out: As there.
        with_hidden: Whether those that it leaves out by their names are among them.

    Raises:
        OSError: A folder cannot be read.
    """

    def fail(error: OSError) -> None:
        raise error

    counts: Counter[str] = Counter() if left_out is None else left_out

    def select(names: Iterable[str], *, are_folders: bool) -> list[str]:
        if with_hidden:
            return sorted(names)
        reasons = {name: find_skip_reason(name, is_folder=are_folders) for name in names}
        counts.update(filter(None, reasons.values()))
        return sorted(name for name, reason in reasons.items() if not reason)

    wanted_marks = frozenset(marks)
    seen: set[tuple[int, int]] = set()
    for folder, folders, files in os.walk(root, onerror=fail, followlinks=True):
        status = os.stat(folder)
        if (status.st_dev, status.st_ino) in seen:
            counts[LINKED_TWICE] += 1
            folders.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        inside = os.path.relpath(folder, root)
        is_marked = not (wanted_marks.isdisjoint(files) and wanted_marks.isdisjoint(folders))
        if is_left_out and is_marked and inside != ".":
            folders[:], files = (
                [name for name in names if not is_left_out(inside, name)]
                for names in (folders, files)
            )
        folders[:] = select(folders, are_folders=True)
        for name in select(files, are_folders=False):
            yield name if inside == "." else posixpath.join(inside, name)


def list_everything(root: str) -> dict[str, int]:
    """Returns the length of everything that deleting a folder would delete, by relative path.

    Returns:
        As `darkroom.storage.list_everything`.

    Raises:
        OSError: A folder cannot be read.
    """
    try:
        status = os.lstat(root)
    except FileNotFoundError:
        return {}
    if not stat.S_ISDIR(status.st_mode):
        return {"": status.st_size if stat.S_ISREG(status.st_mode) else NOT_REGULAR}
    found: dict[str, int] = {}
    pending = [""]
    while pending:
        folder = pending.pop()
        with os.scandir(os.path.join(root, folder)) as entries:
            for entry in entries:
                name = posixpath.join(folder, entry.name)
                if entry.is_dir(follow_symlinks=False):
                    pending.append(name)
                elif entry.is_file(follow_symlinks=False):
                    found[name] = entry.stat(follow_symlinks=False).st_size
                else:
                    found[name] = NOT_REGULAR
    return dict(sorted(found.items()))


def delete(path: str) -> None:
    """Deletes a file, a link, or a folder with its content; no error when it does not exist."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        delete_file(path)


def delete_file(path: str) -> None:
    """Deletes a file or a link, never a folder; no error when it does not exist."""
    if os.path.lexists(path):
        os.unlink(path)


def remove_empty_folders(root: str) -> None:
    """Removes a folder and those below it as far as they have no file; follows no link."""
    if os.path.islink(root):
        return
    for folder, _, _ in os.walk(root, topdown=False):
        if not os.listdir(folder):
            os.rmdir(folder)
