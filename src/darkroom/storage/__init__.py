"""The one module that touches user paths: local files by `os`, others by `remote`.

Functions raise the built-in `OSError` family (`FileNotFoundError`, `PermissionError`, ...) whatever
the store, so that callers tell a missing file from a broken environment in one way. What a remote
store fails at for a while is tried again, and ends as a `TransientStorageError`.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import shutil
import stat
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import BinaryIO, NamedTuple, cast

from darkroom.errors import UsageError
from darkroom.storage import remote, remote_files, uris

# Of a file that is not complete; what is left of them when a process is killed.
PART_PREFIX = ".part-"
# In a listing, the length of what is not a regular file: a link, a FIFO, a device.
NOT_REGULAR = -1

_WILDCARDS = frozenset("*?[")


class FileInfo(NamedTuple):
    """What is known of a file without reading it.

    Attributes:
        size_bytes: Its length.
        version: Text that changes when the file does: modification time in nanoseconds, an ETag, or
            a generation.
    """

    size_bytes: int
    version: str


def is_remote(path: str) -> bool:
    """Tells whether `path` names a remote store; `file://` is local."""
    return uris.is_remote(path) and not path.startswith("file://")


def local_path(path: str) -> str:
    """Returns `path` without a `file://` scheme."""
    return path.removeprefix("file://")


def absolute(path: str | os.PathLike[str]) -> str:
    """Returns `path` as an absolute local path, or unchanged when it is remote.

    Raises:
        UsageError: It is no path.
    """
    # An empty path would name the working folder, which nobody means.
    if not isinstance(path, str | os.PathLike) or not os.fspath(path) or "\0" in os.fspath(path):
        raise UsageError(f"{path!r} is no path.", "Give the path of a file or folder.")
    text = os.fspath(path)
    return text.rstrip("/") if is_remote(text) else os.path.abspath(local_path(text))


def join(base: str, *parts: str) -> str:
    """Joins path parts with `/`, which every store here understands."""
    return posixpath.join(base, *parts)


def is_pattern(path: str) -> bool:
    """Tells whether `path` holds a wildcard (`*`, `?` or `[`)."""
    return not _WILDCARDS.isdisjoint(path)


def read_bytes(path: str, limit_bytes: int | None = None) -> bytes:
    """Reads a whole regular file.

    Raises:
        FileTooLargeError: The file is longer than `limit_bytes`.
        OSError: It is missing, not a regular file, or not readable.
    """
    if is_remote(path):
        data = remote.read_bytes(path, limit_bytes)
        if data is None:
            raise _too_large(path, limit_bytes)
        return data
    # O_NONBLOCK: opening a FIFO without a writer would otherwise wait for ever.
    descriptor = os.open(local_path(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NotAFileError(f"{path} is not a regular file")
        if limit_bytes is not None and status.st_size > limit_bytes:
            raise _too_large(path, limit_bytes)
        # One call each: every one lets go of the interpreter and has to wait for it again.
        data = os.read(descriptor, status.st_size + 1)
        if len(data) == status.st_size:
            return data
        with open(descriptor, "rb", buffering=0, closefd=False) as raw:  # it grows, or is in /proc
            return data + raw.read()
    finally:
        os.close(descriptor)


class FileTooLargeError(OSError):
    """The file is longer than the caller allows."""


class NotAFileError(OSError):
    """The path names a folder, a device, a FIFO or a socket."""


# What a path raises that names no file that can be used; other errors are those of the store.
UNUSABLE = (FileNotFoundError, NotADirectoryError, FileTooLargeError, NotAFileError)


def _too_large(path: str, limit_bytes: int | None) -> FileTooLargeError:
    return FileTooLargeError(f"{path} has more than {limit_bytes} bytes")


def open_read(path: str) -> BinaryIO:
    """Opens a file for reading; a remote one is read in the version that it has now."""
    if is_remote(path):
        return cast(BinaryIO, remote_files.open_read(path))
    return open(local_path(path), "rb")


def open_write(path: str) -> BinaryIO:
    """Opens a file for writing; a local one is truncated, a remote one appears when closed.

    A `with` block that ends with an error leaves no remote file.
    """
    if is_remote(path):
        return cast(BinaryIO, remote_files.open_write(path))
    return open(local_path(path), "wb")


def find_part(path: str) -> str:
    """Returns the path that `write_bytes` gives a file with a known part while it writes it."""
    return join(posixpath.dirname(path), f"{PART_PREFIX}{posixpath.basename(path)}")


def write_bytes(path: str, data: bytes, *, known_part: bool = False) -> None:
    """Writes a whole file; a local one appears complete or not at all, and survives a crash.

    Args:
        path: The file.
        data: Its bytes.
        known_part: Whether the unfinished file is called `find_part(path)`, so that it is known
            beforehand. Only one process may write it at a time then.

    Raises:
        OSError: It cannot be written; the error names this file, or its folder if there is none.
    """
    if is_remote(path):
        with open_write(path) as file:
            file.write(data)
        return
    path = local_path(path)
    folder = os.path.dirname(path) or "."
    try:
        if known_part:
            part = find_part(path)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(part, flags, 0o666)
        else:
            descriptor, part = tempfile.mkstemp(prefix=PART_PREFIX, dir=folder)
    except OSError as error:
        # Nobody asked for the part.
        error.filename = path if os.path.isdir(folder) else folder
        raise
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            sync_file(file)
        os.chmod(part, 0o666 & ~_umask())
        os.replace(part, path)
    except BaseException as error:
        os.unlink(part)
        if isinstance(error, OSError):
            error.filename = path
        raise
    sync_folder(folder)


def sync_file(file: BinaryIO) -> None:
    """Forces the written bytes of a local file to disk; remote files have no such step."""
    file.flush()
    try:
        os.fsync(file.fileno())
    except (AttributeError, NotImplementedError, ValueError):
        return


def sync_folder(path: str) -> None:
    """Forces the names in a local folder to disk, so that a rename survives a crash."""
    if is_remote(path):
        return
    descriptor = os.open(local_path(path) or ".", os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def stat_file(path: str) -> FileInfo:
    """Returns the size and version of a file.

    Raises:
        OSError: It is missing or not readable.
    """
    if is_remote(path):
        found = remote.stat(path)
        return FileInfo(found.size_bytes, found.version)
    status = os.stat(local_path(path))
    return FileInfo(status.st_size, str(status.st_mtime_ns))


def list_remote_states(folder: str, first: str) -> Iterator[dict[str, FileInfo]]:
    """Yields size and version of the files directly in a remote folder by name, in pages.

    Args:
        folder: Its path.
        first: Name of the file with which to begin; some before it may come, too.

    Raises:
        OSError: The store refuses, or fails.
    """
    for page in remote.list_objects(folder, first):
        yield {found.name: FileInfo(found.size_bytes, found.version) for found in page}


def exists(path: str) -> bool:
    """Tells whether a file or folder exists."""
    if is_remote(path):
        return remote.exists(path)
    return os.path.lexists(local_path(path))


def is_folder(path: str) -> bool:
    """Tells whether `path` is a folder, or the prefix of remote files."""
    if is_remote(path):
        return remote.is_folder(path)
    return os.path.isdir(local_path(path))


def list_folder(path: str) -> list[str]:
    """Returns the sorted names directly in a folder; none when there is no such folder."""
    if is_remote(path):
        return remote.list_folder(path)
    return sorted(os.listdir(local_path(path))) if os.path.isdir(local_path(path)) else []


def _leave_out_none(folder: str, name: str) -> bool:
    return False


def walk_files(
    path: str,
    marks: Collection[str] = (),
    is_left_out: Callable[[str, str], bool] = _leave_out_none,
) -> Iterator[str]:
    """Yields the paths of all files below a folder, relative to it, in sorted order.

    Names that begin with a dot are left out: editors and desktops put them everywhere. Links to
    folders are followed, each folder once.

    Args:
        path: The folder.
        marks: Names; folders below `path` that directly contain one of them are asked about.
        is_left_out: Called with the relative path of such a folder and a name in it; tells whether
            to leave out what is there.

    Raises:
        OSError: A folder cannot be read.
    """
    if is_remote(path):
        yield from _walk_remote(path, marks, is_left_out)
    else:
        yield from _walk_local(local_path(path), marks, is_left_out, with_hidden=False)


def look_up_files(path: str) -> dict[str, FileInfo]:
    """Returns what is known of all files below a folder, by their path relative to it.

    Those whose names begin with a dot are among them. A folder that does not exist has none.

    Raises:
        OSError: A folder or a file cannot be read.
    """
    if is_remote(path):
        return {f.name: FileInfo(f.size_bytes, f.version) for f in remote.walk(path)}
    root = local_path(path)
    names = _walk_local(root, with_hidden=True) if os.path.isdir(root) else ()
    return {name: stat_file(join(root, name)) for name in names}


def has_files(path: str) -> bool:
    """Tells whether `path` is a file, or a folder with a file in it or further below.

    Raises:
        OSError: A folder cannot be read.
    """
    if not is_remote(path):
        root = local_path(path)
        return os.path.isfile(root) or (os.path.isdir(root) and any(walk_files(root)))
    if next(remote.walk(path), None):
        return True
    try:
        return bool(remote.stat(path))
    except FileNotFoundError:
        return False


def _walk_local(
    root: str,
    marks: Collection[str] = (),
    is_left_out: Callable[[str, str], bool] = _leave_out_none,
    *,
    with_hidden: bool,
) -> Iterator[str]:
    seen_marks = frozenset(marks)
    seen: set[tuple[int, int]] = set()
    for folder, folders, files in os.walk(root, onerror=_raise, followlinks=True):
        status = os.stat(folder)
        if (status.st_dev, status.st_ino) in seen:
            folders.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        inside = os.path.relpath(folder, root)
        is_marked = not (seen_marks.isdisjoint(files) and seen_marks.isdisjoint(folders))
        if is_marked and inside != ".":
            folders[:], files = (
                [name for name in names if not is_left_out(inside, name)]
                for names in (folders, files)
            )
        folders[:] = sorted(name for name in folders if with_hidden or not name.startswith("."))
        for name in sorted(files):
            if with_hidden or not name.startswith("."):
                yield name if inside == "." else posixpath.join(inside, name)


def _raise(error: OSError) -> None:
    raise error


def _walk_remote(
    path: str, marks: Collection[str], is_left_out: Callable[[str, str], bool]
) -> Iterator[str]:
    names = sorted(found.name for found in remote.walk(path))
    marked: set[str] = set()
    for name in names if marks else ():
        parts = name.split("/")
        marked.update("/".join(parts[:at]) for at, part in enumerate(parts) if at and part in marks)
    below = tuple(f"{folder}/" for folder in sorted(marked))

    def is_wanted(name: str) -> bool:
        if "/." in f"/{name}":
            return False
        outer = (start for start in below if name.startswith(start)) if marked else ()
        return not any(is_left_out(f[:-1], name[len(f) :].partition("/")[0]) for f in outer)

    yield from filter(is_wanted, names)


def list_files(path: str) -> dict[str, int]:
    """Returns the lengths in bytes of all files below a folder, by their relative paths, sorted.

    Unlike `walk_files` it shows everything that deleting the folder would delete: hidden files,
    and links themselves, which are not followed.

    Returns:
        The lengths; `NOT_REGULAR` for what is not a regular file. Of a file its own length, by the
        empty path. Nothing when nothing is there.

    Raises:
        OSError: A folder cannot be read.
    """
    if is_remote(path):
        return remote.list_files(path)
    root = local_path(path)
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


def match_pattern(pattern: str) -> list[str]:
    """Returns the sorted paths that a wildcard pattern names."""
    if is_remote(pattern):
        return sorted(remote.match(pattern))
    import glob

    return sorted(glob.glob(local_path(pattern), recursive=True))


def make_folder(path: str) -> None:
    """Makes a folder and its parents; on object stores there is nothing to make."""
    if not is_remote(path):
        os.makedirs(local_path(path), exist_ok=True)


def rename(source: str, destination: str) -> None:
    """Renames a file, replacing what stands at `destination`."""
    if is_remote(source):
        remote.rename(source, destination)
    else:
        os.replace(local_path(source), local_path(destination))


def hash_file(path: str) -> str:
    """Returns the SHA-256 of a file, hexadecimal."""
    digest = hashlib.sha256()
    with open_read(path) as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def copy_file(source: str, destination: str) -> None:
    """Copies a file between any two stores."""
    with open_read(source) as reader, open_write(destination) as writer:
        shutil.copyfileobj(reader, writer, 1 << 20)


def delete(path: str) -> None:
    """Deletes a file, or a folder with all that it holds; no error when there is none."""
    if is_remote(path):
        remote.delete(path)
    elif os.path.isdir(local_path(path)) and not os.path.islink(local_path(path)):
        shutil.rmtree(local_path(path))
    elif os.path.lexists(local_path(path)):
        os.unlink(local_path(path))


def delete_files(paths: Iterable[str]) -> None:
    """Deletes files in the order in which they are given; no error when one is not there."""
    paths = list(paths)
    if paths and is_remote(paths[0]):
        remote.delete_files(paths)
        return
    for path in paths:
        delete_file(path)


def delete_file(path: str) -> None:
    """Deletes one file, never a folder; no error when there is none."""
    if is_remote(path):
        remote.delete_files([path])
    elif os.path.lexists(local_path(path)):
        os.unlink(local_path(path))


def remove_empty_folders(path: str) -> None:
    """Removes a folder and those below it as far as they hold no file; follows no link."""
    if is_remote(path):
        remote.remove_empty_folders(path)
        return
    root = local_path(path)
    if os.path.islink(root):
        return
    for folder, _, _ in os.walk(root, topdown=False):
        if not os.listdir(folder):
            os.rmdir(folder)


def _umask() -> int:
    # The mask can be read only by setting it; mkstemp's 0600 would hide the file from others.
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
