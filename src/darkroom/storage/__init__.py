"""The one package that touches user paths (part: core).

`local` is for this machine, `remote` for stores.

Functions raise the built-in `OSError` family (`FileNotFoundError`, `PermissionError`, ...) whatever
the store, so that callers tell a missing file from a broken environment in one way. When a remote
store fails for a while, the call is tried again, and ends with a `TransientStorageError`. How long
is said by `be_patient` for a process, and by `limit` for a thread.

Callers use these functions as `storage.read_bytes(...)`, so that a test replaces one in one place.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import posixpath
import re
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import BinaryIO, TypeVar, cast

from darkroom.errors import DamagedFileError
from darkroom.runtime.json_values import parse_json
from darkroom.storage import local, remote, remote_files
from darkroom.storage.failures import build_missing_error as build_missing_error
from darkroom.storage.failures import convert_os_error as convert_os_error
from darkroom.storage.failures import find_near as find_near
from darkroom.storage.failures import report_failures as report_failures
from darkroom.storage.failures import suggest_near as suggest_near
from darkroom.storage.files import LINKED_TWICE as LINKED_TWICE
from darkroom.storage.files import NOT_REGULAR as NOT_REGULAR
from darkroom.storage.files import PART_PREFIX as PART_PREFIX
from darkroom.storage.files import UNUSABLE as UNUSABLE
from darkroom.storage.files import FileInfo as FileInfo
from darkroom.storage.files import FileTooLargeError as FileTooLargeError
from darkroom.storage.files import NotAFileError as NotAFileError
from darkroom.storage.stores.retries import be_patient as be_patient
from darkroom.storage.stores.retries import limit as limit
from darkroom.storage.stores.retries import set_patience as set_patience
from darkroom.storage.uris import absolute as absolute
from darkroom.storage.uris import expand_home as expand_home
from darkroom.storage.uris import has_wildcard as has_wildcard
from darkroom.storage.uris import is_remote as is_remote
from darkroom.storage.uris import join as join
from darkroom.storage.uris import local_path as local_path

_BLOCK_BYTES = 1 << 20
_RANGE_BYTES = 4 << 20

# A path as a user gives it to a public function.
UserPath = str | os.PathLike[str]

_Kind = TypeVar("_Kind")


def read_bytes(path: str, limit_bytes: int | None = None) -> bytes:
    """Reads a whole regular file.

    Raises:
        FileTooLargeError: The file is longer than `limit_bytes`.
        OSError: It is missing, not a regular file, or not readable.
    """
    if is_remote(path):
        data = remote.read_bytes(path, limit_bytes)
    else:
        data = local.read_bytes(local_path(path), limit_bytes)
    if data is None:
        raise FileTooLargeError(f"{path} has more than {limit_bytes} bytes")
    return data


def read_json(path: str, kind: type[_Kind], limit_bytes: int = 1 << 28) -> _Kind:
    """Reads a file of JSON by the type of its content; see `build_value`.

    Raises:
        ValueError: It is not JSON, is nested too deeply, or does not fit the type.
        FileTooLargeError: The file is longer than `limit_bytes`.
        OSError: It is missing, not a regular file, or not readable.
    """
    return parse_json(read_bytes(path, limit_bytes), kind)


def open_read(path: str) -> BinaryIO:
    """Opens a file for reading; a remote one is read in the version that it has now.

    Raises:
        OSError: It is missing, not a regular file, or not readable.
    """
    if is_remote(path):
        return cast(BinaryIO, remote_files.open_read(path))
    return local.open_read(local_path(path))


def open_write(path: str) -> BinaryIO:
    """Opens a file for writing; a local one is truncated, a remote one appears when closed.

    A `with` block that ends with an error leaves no remote file. A local link is an error: its
    target is another file.
    """
    if is_remote(path):
        return cast(BinaryIO, remote_files.open_write(path))
    return local.open_write(local_path(path))


def find_part(path: str) -> str:
    """Returns the path for a file that is not finished, beside the finished one."""
    return join(posixpath.dirname(path), f"{PART_PREFIX}{posixpath.basename(path)}")


def write_bytes(path: str, data: bytes, part: str | None = None) -> None:
    """Writes a whole file; a local one appears complete or not at all, and survives a crash.

    Args:
        path: The file.
        data: Its bytes.
        part: Path of the unfinished file on the same disk, so that it is known beforehand; then
            only one process may write it at a time. None for a new name. A store needs none.

    Raises:
        OSError: It cannot be written; the error names this file, or its folder if that is missing.
    """
    if is_remote(path):
        with open_write(path) as file:
            file.write(data)
    else:
        path = local_path(path)
        local.write_blocks(path, [data], part)


def sync_file(file: BinaryIO) -> None:
    """Forces the written bytes of a local file to disk; remote files do not need it."""
    file.flush()
    try:
        os.fsync(file.fileno())
    except (AttributeError, NotImplementedError, ValueError):
        return


def sync_folder(path: str) -> None:
    """Forces the names in a local folder to disk, so that a rename survives a crash."""
    if not is_remote(path):
        local.sync_folder(local_path(path))


def stat_file(path: str) -> FileInfo:
    """Returns the size and version of a file.

    Raises:
        OSError: It is missing or not readable.
    """
    if is_remote(path):
        found = remote.stat(path)
        return FileInfo(found.size_bytes, found.version)
    return local.stat_file(local_path(path))


def find_modified(path: str) -> float:
    """Returns when a file was last written, in seconds since 1970, by the clock of its store.

    Raises:
        OSError: It is missing or not readable.
    """
    return remote.stat(path).modified if is_remote(path) else os.stat(local_path(path)).st_mtime


def list_remote_states(folder: str, first: str) -> Iterator[dict[str, FileInfo]]:
    """Yields size and version of the files directly in a remote folder by name, in pages.

    Args:
        folder: Its path.
        first: Name of the file to begin with; some files before it may come, too.

    Raises:
        OSError: The store denies access, or fails.
    """
    for page in remote.list_objects(folder, first):
        yield {found.name: FileInfo(found.size_bytes, found.version) for found in page}


def is_link(path: str) -> bool:
    """Tells whether `path` itself is a link; a store has none."""
    return not is_remote(path) and os.path.islink(local_path(path))


def resolve_links(path: str) -> str:
    """Returns an absolute path with the links in it followed; a store has none."""
    return path if is_remote(path) else os.path.realpath(local_path(path))


def touch(path: str) -> None:
    """Gives a file that exists the time of now, unless it is in a store.

    Raises:
        OSError: It is missing, or this user may not.
    """
    if not is_remote(path):
        os.utime(local_path(path))


def exists(path: str) -> bool:
    """Tells whether a file or folder exists."""
    return remote.exists(path) if is_remote(path) else os.path.lexists(local_path(path))


def is_folder(path: str) -> bool:
    """Tells whether `path` is a folder, or the prefix of remote files."""
    return remote.is_folder(path) if is_remote(path) else os.path.isdir(local_path(path))


def list_folder(path: str) -> list[str]:
    """Returns the sorted names directly in a folder; none if the folder does not exist."""
    if is_remote(path):
        return remote.list_folder(path)
    return sorted(os.listdir(local_path(path))) if os.path.isdir(local_path(path)) else []


def walk_files(
    path: str,
    marks: Collection[str] = (),
    is_left_out: Callable[[str, str], bool] | None = None,
    left_out: Counter[str] | None = None,
) -> Iterator[str]:
    """Yields the paths of all files below a folder, relative to it.

    The order is that of names: on a disk the files of a folder come before its folders, in a store
    whole paths are sorted.

    Names that begin with a dot are left out: editors and desktops put them everywhere. So are
    folders in which systems keep thumbnails and trash. Links to folders are followed, each folder
    once.

    Args:
        path: The folder.
        marks: Names of files or folders. A folder below `path` is marked when one of them is
            directly in it.
        is_left_out: Called with the relative path of a marked folder and a name in it; tells
            whether to leave out the entry of that name.
        left_out: Counts the other files and folders that are left out, by reason; what is in such
            a folder does not count.

    Raises:
        OSError: A folder cannot be read.
    """
    if is_remote(path):
        return remote.walk_files(path, marks, is_left_out, left_out)
    return local.walk_files(local_path(path), marks, is_left_out, left_out)


def look_up_files(path: str) -> dict[str, FileInfo]:
    """Returns the facts about all files below a folder, by their path relative to it.

    Hidden files are included, and links are followed: a copy of the folder has these files. There
    are none when the folder does not exist.

    Raises:
        OSError: A folder or a file cannot be read.
    """
    if is_remote(path):
        return {f.name: FileInfo(f.size_bytes, f.version) for f in remote.walk(path)}
    root = local_path(path)
    names = local.walk_files(root, with_hidden=True) if os.path.isdir(root) else ()
    return {name: stat_file(join(root, name)) for name in names}


def list_everything(path: str) -> dict[str, int]:
    """Returns the lengths in bytes of everything in a folder, by relative path, sorted.

    This is everything that deleting the folder would delete: hidden files, and links themselves,
    which are not followed.

    Returns:
        The lengths; `NOT_REGULAR` for anything but a regular file. For a file, its own length under
        the empty path. Empty when nothing exists.

    Raises:
        OSError: A folder cannot be read.
    """
    return (
        remote.list_everything(path) if is_remote(path) else local.list_everything(local_path(path))
    )


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


def is_pattern(path: str) -> bool:
    """Tells whether `path` is a wildcard pattern: a name that exists is that file or folder.

    Raises:
        OSError: A store cannot be asked.
    """
    return has_wildcard(path) and not exists(path)


def match_pattern(pattern: str) -> list[str]:
    """Returns the sorted paths that match a wildcard pattern.

    A beginning that exists is taken literally: in `data[1]/*`, the folder `data[1]`, if it exists.

    Raises:
        OSError: A store cannot be asked.
    """
    ends = [found.end() for found in re.finditer("/|$", pattern)]
    literal = next((pattern[:end] for end in reversed(ends) if not is_pattern(pattern[:end])), "")
    wild = pattern[len(literal) :]
    if is_remote(pattern):
        return sorted(remote.match(literal, wild))
    return sorted(glob.glob(glob.escape(local_path(literal)) + wild, recursive=True))


def make_folder(path: str) -> None:
    """Makes a folder and its parents; on object stores there is nothing to make.

    Raises:
        OSError: It cannot be made.
    """
    if not is_remote(path):
        local.make_folder(local_path(path))


def rename(source: str, destination: str) -> None:
    """Renames a file, and replaces the file at `destination` if there is one."""
    if is_remote(source):
        remote.rename(source, destination)
    else:
        os.replace(local_path(source), local_path(destination))


def hash_file(path: str) -> str:
    """Returns the SHA-256 of a file, hexadecimal."""
    digest = hashlib.sha256()
    with open_read(path) as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def hash_folder(path: str, starts: tuple[str, ...] = ("",)) -> str:
    """Returns a SHA-256 of the names and the bytes of files below a folder, or that of a file.

    Args:
        path: The folder, or the file.
        starts: With what the names of the files begin.
    """
    if not is_folder(path):
        return hash_file(path)
    sums = {
        name: hash_file(join(path, name))
        for name, size in list_everything(path).items()
        if size != NOT_REGULAR and name.startswith(starts)
    }
    return hashlib.sha256(json.dumps(sorted(sums.items())).encode()).hexdigest()


def has_hash(path: str, sha256: str) -> bool:
    """Tells whether a file has a SHA-256; not if its store says that it is damaged.

    Raises:
        OSError: It cannot be read.
    """
    try:
        return hash_file(path) == sha256
    except DamagedFileError:
        return False


def write_if_unchanged(path: str, data: bytes, version: str) -> None:
    """Writes a small remote file in one step, if nobody else has written it meanwhile.

    Args:
        path: The file.
        data: Its bytes.
        version: The version that it had, from `stat_file`; empty when there was none.

    Raises:
        ChangedError: It has another version now. Also after a lost answer to this very request.
        OSError: It cannot be written.
    """
    remote.replace(path, data, version)


def copy_in_store(source: str, destination: str) -> None:
    """Copies a remote file to another place in the same store, which does it by itself."""
    remote.copy(source, destination)


def link_file(source: str, destination: str) -> None:
    """Gives a file a second name in its store without reading it, or copies it into another one."""
    if is_remote(source) and source.partition("://")[0] == destination.partition("://")[0]:
        copy_in_store(source, destination)
        return
    delete_file(destination)
    try:
        os.link(local_path(source), local_path(destination))
    except OSError:  # The file system has no links, or it is on another one, as in a store.
        replace_file(source, destination)


def copy_file(source: str, destination: str) -> None:
    """Copies a file between any two stores."""
    with open_read(source) as reader, open_write(destination) as writer:
        shutil.copyfileobj(reader, writer, _BLOCK_BYTES)


def copy_range(source: str, destination: str, first: int, stop: int) -> None:
    """Copies the bytes of a remote file from `first` to before `stop` to a local one, in place."""
    descriptor = os.open(destination, os.O_WRONLY | os.O_CREAT, 0o600)
    with remote_files.open_read(source) as reader, open(descriptor, "wb") as writer:
        raw = reader.raw  # the buffer would read more
        raw.seek(first, os.SEEK_SET)
        writer.seek(first)
        while first < stop and (block := raw.read(min(stop - first, _RANGE_BYTES))):
            first += writer.write(block)


def replace_file(source: str, destination: str) -> None:
    """Copies a file between any two stores; the copy appears complete or not at all."""
    if is_remote(destination):
        copy_file(source, destination)
        return
    with open_read(source) as reader:
        local.write_blocks(local_path(destination), iter(partial(reader.read, _BLOCK_BYTES), b""))


def delete(path: str) -> None:
    """Deletes a file, or a folder with all that is in it; no error when it does not exist."""
    (remote if is_remote(path) else local).delete(local_path(path))


def delete_files(paths: Iterable[str]) -> None:
    """Deletes files in the order in which they are given; no error when one is not there."""
    paths = list(paths)
    if paths and is_remote(paths[0]):
        remote.delete_files(paths)
        return
    for path in paths:
        delete_file(path)


def delete_file(path: str) -> None:
    """Deletes one file, never a folder; no error when it does not exist."""
    if is_remote(path):
        remote.delete_files([path])
    else:
        local.delete_file(local_path(path))


def remove_folder(path: str) -> None:
    """Removes a local folder if nothing is in it."""
    if not is_remote(path):
        with suppress(OSError):
            os.rmdir(local_path(path))


def remove_empty_folders(path: str) -> None:
    """Removes a folder and those below it as far as they have no file; follows no link."""
    (remote if is_remote(path) else local).remove_empty_folders(local_path(path))
