"""Copies of folders, which are done only when every file has been read back."""

from __future__ import annotations

import contextlib
import hashlib
import os
import posixpath
import re
import tempfile
from collections.abc import Callable, Iterator
from typing import NamedTuple

from darkroom import storage
from darkroom.errors import OutputError, StorageError
from darkroom.runtime.text import list_first

_BLOCK_BYTES = 4 << 20


class Content(NamedTuple):
    """What a file holds.

    Attributes:
        size_bytes: Its length.
        sha256: SHA-256 of its bytes, hexadecimal.
    """

    size_bytes: int
    sha256: str


def copy_folder(
    source: str,
    destination: str,
    last: str = "",
    leave_out: Callable[[str], bool] = lambda name: False,
) -> None:
    """Copies every file of a folder between any two stores, and reads each copy back.

    When this fails, it deletes the copies that it made, and nothing else.

    Args:
        source: The folder.
        destination: Gets the files; may exist, but has none of them.
        last: Path below the folder of the file to copy after all others have been read back; for
            readers that take it as a sign that the folder is complete.
        leave_out: Tells by its path below the folder whether a file is not copied.

    Raises:
        OutputError: The destination has one of the files already.
        StorageError: The source has no files or changed while it was copied, or a copy differs from
            what was written.
        OSError: A file cannot be read or written.
    """
    files = _look_up(source, leave_out)
    if not files:
        raise StorageError(f"{source} has no files to copy.", "Check that it is complete.")
    if taken := sorted(files.keys() & storage.list_everything(destination).keys()):
        raise OutputError(
            f"{destination} holds files that would be replaced: {list_first(taken)}.",
            "Move them elsewhere, or choose another folder.",
        )
    written: list[str] = []
    try:
        for names in (sorted(files.keys() - {last}), sorted(files.keys() & {last})):
            contents: dict[str, Content] = {}
            for name in names:
                target = storage.join(destination, name)
                storage.make_folder(posixpath.dirname(target))
                written.append(target)
                contents[target] = copy_hashed(storage.join(source, name), target)
            for target, content in contents.items():
                _check_copy(target, content)
            if _look_up(source, leave_out) != files:
                raise StorageError(f"{source} changed while it was copied.", "Run again.")
    except BaseException:
        for path in written:
            with contextlib.suppress(OSError):
                storage.delete_file(path)
        if not storage.is_remote(destination):
            storage.remove_empty_folders(destination)
        raise


def move_folder(source: str, destination: str) -> None:
    """Copies a folder as `copy_folder` does, then deletes the files that it copied.

    Raises:
        OSError: As `copy_folder`; then the source is still complete.
    """
    there = storage.list_everything(source)
    copy_folder(source, destination)
    storage.delete_files(storage.join(source, name) for name in there)
    storage.remove_empty_folders(source)


@contextlib.contextmanager
def use_local_copy(path: str) -> Iterator[str]:
    """Gives a file or a folder to libraries that open no stores, and take names for patterns.

    Yields:
        The path on this machine. Files in a store are copied, and one whose name is a
        pattern gets a link; both are deleted at the end of the block, and have the same endings.

    Raises:
        OSError: A file cannot be read.
    """
    local = None if storage.is_remote(path) else os.path.abspath(storage.local_path(path))
    if local is not None and not storage.has_wildcard(local):
        yield storage.local_path(path)
        return
    with tempfile.TemporaryDirectory(prefix="darkroom-") as folder:
        # The endings tell the kind of the file.
        copy = storage.join(folder, re.sub(r"[*?[]", "_", posixpath.basename(path)))
        if local is not None:
            os.symlink(local, copy)
            yield copy
            return
        for name in storage.list_everything(path) if storage.is_folder(path) else [""]:
            target = storage.join(copy, name) if name else copy
            storage.make_folder(posixpath.dirname(target))
            storage.copy_file(storage.join(path, name) if name else path, target)
        yield copy


def _look_up(folder: str, leave_out: Callable[[str], bool]) -> dict[str, object]:
    found = storage.look_up_files(folder)
    return {name: state for name, state in found.items() if not leave_out(name)}


def copy_hashed(source: str, destination: str) -> Content:
    """Copies a file between any two stores, and returns what was read.

    Raises:
        OSError: It cannot be read or written.
    """
    digest = hashlib.sha256()
    size_bytes = 0
    with storage.open_read(source) as reader, storage.open_write(destination) as writer:
        while block := reader.read(_BLOCK_BYTES):
            writer.write(block)
            digest.update(block)
            size_bytes += len(block)
        storage.sync_file(writer)
    return Content(size_bytes, digest.hexdigest())


def _check_copy(path: str, content: Content) -> None:
    hint = "The disk or the store loses written data: check it, and run again."
    try:
        found = Content(storage.stat_file(path).size_bytes, storage.hash_file(path))
    except FileNotFoundError as error:
        raise StorageError(f"{path} does not exist after it was written.", hint) from error
    if found != content:
        raise StorageError(
            f"{path} differs from the written bytes: it has {found.size_bytes} bytes with SHA-256 "
            f"{found.sha256}, expected {content.size_bytes} bytes with {content.sha256}.",
            hint,
        )
