"""Remote stores, gs:// and s3://; for `darkroom.storage` alone.

Every request goes through `call`, which tells errors apart: what is missing or refused is said at
once, what may pass is tried again (`darkroom.storage.retries`).
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from darkroom.errors import AccessError, StorageError, UsageError, build_missing_extra_error
from darkroom.storage import retries
from darkroom.storage.stores import (
    MAX_DELETED,
    Object,
    Page,
    Problem,
    Sink,
    Store,
    TooLongError,
)

_EXTRAS = {"gs": ("gcp", "google.cloud.storage"), "s3": ("aws", "boto3")}
# What a client is made from: it is made anew when one of these changes.
_SETTINGS = ("AWS_", "CLOUDSDK_", "GCE_METADATA_", "GOOGLE_", "NO_GCE_CHECK", "STORAGE_EMULATOR_")
_Result = TypeVar("_Result")


def read_bytes(path: str, limit_bytes: int | None = None) -> bytes | None:
    """Reads a whole object with one request; None when it is longer than the limit.

    Raises:
        OSError: It is missing, refused, or the store fails.
    """
    _, bucket, name = split_path(path)

    def attempt(store: Store) -> bytes | None:
        sink = Sink(limit_bytes)
        try:
            size_bytes = store.read(bucket, name, sink)
        except TooLongError:
            return None
        check_length(len(sink.data), size_bytes)
        return bytes(sink.data)

    return call(path, "Reading", attempt)


def check_length(size_bytes: int, expected: int | None) -> None:
    """Checks that all bytes came which were announced, if any were.

    Raises:
        TransientError: Others came.
    """
    if expected is not None and size_bytes != expected:
        raise retries.TransientError(f"{size_bytes} bytes came, {expected} were announced")


def stat(path: str) -> Object:
    """Looks an object up.

    Raises:
        OSError: It is missing, refused, or the store fails.
    """
    _, bucket, name = split_path(path)
    if not name:
        raise FileNotFoundError(f"{path} is a bucket, not an object")
    return call(path, "Looking up", lambda store: store.stat(bucket, name))


def exists(path: str) -> bool:
    """Tells whether there is such an object, or one below it."""
    try:
        return bool(stat(path))
    except FileNotFoundError:
        return is_folder(path)


def is_folder(path: str) -> bool:
    """Tells whether an object lies below `path`."""
    page = _list_page(path, _below(path), "/", None)
    return bool(page.objects or page.folders)


def list_folder(path: str) -> list[str]:
    """Returns the sorted names directly below `path`."""
    start = len(_below(path))
    names: set[str] = set()
    for page in _list_pages(path, _below(path), "/"):
        names.update(found.name[start:] for found in page.objects)
        names.update(folder[start:].rstrip("/") for folder in page.folders)
    return sorted(names - {""})


def walk(path: str) -> Iterator[Object]:
    """Yields all objects below `path`, with names relative to it."""
    start = len(_below(path))
    for page in _list_pages(path, _below(path)):
        for found in page.objects:
            if not found.name.endswith("/"):
                yield found._replace(name=found.name[start:])


def list_files(path: str) -> dict[str, int]:
    """Returns the lengths of all objects below `path` by their relative names, sorted.

    An object of the very name `path` has the empty name. Empty objects that stand for folders, as
    some consoles make them, are left out.
    """
    start = len(_below(path))
    found = {
        each.name[start:]: each.size_bytes
        for page in _list_pages(path, _below(path))
        for each in page.objects
        if not _is_marker(each)
    }
    with contextlib.suppress(FileNotFoundError):
        found[""] = stat(path).size_bytes
    return dict(sorted(found.items()))


def _is_marker(found: Object) -> bool:
    return found.name.endswith("/") and not found.size_bytes


def match(pattern: str) -> list[str]:
    """Returns the paths that a pattern names; `*` ends at a `/`, `**` does not."""
    from darkroom.runtime.plain_beam import beam

    scheme, bucket, name = split_path(pattern)
    expression = beam.io.filesystem.FileSystem.translate_pattern(name)
    is_match = re.compile(expression).match
    prefix = re.split(r"[*?\[]", name, maxsplit=1)[0]
    return [
        f"{scheme}://{bucket}/{found.name}"
        for page in _list_pages(pattern, prefix)
        for found in page.objects
        if is_match(found.name)
    ]


def list_objects(folder: str, first: str) -> Iterator[list[Object]]:
    """Yields the objects directly below a folder, from one of that name on, in pages.

    Args:
        folder: Path without a `/` at its end.
        first: Name of the first one, without the folder.
    """
    prefix = _below(folder)
    # Stores start behind a name, and hardly a name is between one and itself without its end.
    for page in _list_pages(folder, prefix, "/", prefix + first[:-1]):
        yield [found._replace(name=found.name.removeprefix(prefix)) for found in page.objects]


def _list_pages(path: str, prefix: str, delimiter: str = "", after: str = "") -> Iterator[Page]:
    token: str | None = None
    while True:
        page = _list_page(path, prefix, delimiter, token, after)
        yield page
        token = page.token
        if token is None:
            return


def _list_page(path: str, prefix: str, delimiter: str, token: str | None, after: str = "") -> Page:
    scheme, bucket, _ = split_path(path)
    try:
        return call(
            path,
            "Listing",
            lambda store: store.list_page(bucket, prefix, delimiter, token, after),
        )
    except FileNotFoundError as error:
        raise StorageError(
            f"{path}: there is no bucket {scheme}://{bucket}.", "Make it, or mend its name."
        ) from error


def rename(source: str, destination: str) -> None:
    """Copies an object within a store, then deletes it."""
    _, bucket, name = split_path(source)
    _, to_bucket, to_name = split_path(destination)
    call(source, "Copying", lambda store: store.copy(bucket, name, to_bucket, to_name))
    call(source, "Deleting", lambda store: store.delete(bucket, [name]))


def delete(path: str) -> None:
    """Deletes an object and all below it; no error when there is none."""
    _, bucket, name = split_path(path)
    names = [name] if name else []
    for page in _list_pages(path, _below(path)):
        names += [found.name for found in page.objects]
    _delete_names(path, bucket, names)


def delete_files(paths: Sequence[str]) -> None:
    """Deletes objects of one bucket, and nothing below them; no error when one is not there."""
    if paths:
        bucket = split_path(paths[0])[1]
        _delete_names(paths[0], bucket, [split_path(path)[2] for path in paths])


def remove_empty_folders(path: str) -> None:
    """Deletes the empty objects that stand for folders, when nothing else is below `path`."""
    below = [found for page in _list_pages(path, _below(path)) for found in page.objects]
    if below and all(map(_is_marker, below)):
        _delete_names(path, split_path(path)[1], [found.name for found in below])


def _delete_names(path: str, bucket: str, names: Sequence[str]) -> None:
    for first in range(0, len(names), MAX_DELETED):
        part = list(names[first : first + MAX_DELETED])
        call(path, "Deleting", functools.partial(_delete_part, bucket, part))


def _delete_part(bucket: str, names: list[str], store: Store) -> None:
    store.delete(bucket, names)


def split_path(path: str) -> tuple[str, str, str]:
    """Returns scheme, bucket and name.

    Raises:
        UsageError: There is no such store, or no bucket is named.
    """
    scheme, _, rest = path.partition("://")
    bucket, _, name = rest.partition("/")
    if scheme not in _EXTRAS:
        raise UsageError(f"{path}: there is no store {scheme}://.", "Known: gs:// and s3://.")
    if not bucket:
        raise UsageError(f"{path} names no bucket.", f"Write {scheme}://bucket/name.")
    return scheme, bucket, name


def _below(path: str) -> str:
    name = split_path(path)[2].rstrip("/")
    return f"{name}/" if name else ""


def call(path: str, verb: str, action: Callable[[Store], _Result], size_bytes: int = 0) -> _Result:
    """Makes a request, again and again while its errors may pass.

    Args:
        path: What it is about.
        verb: What it does, for messages: "Reading".
        action: Makes it, once.
        size_bytes: How much it transfers, where that is known.

    Returns:
        What `action` returned.

    Raises:
        FileNotFoundError: There is no such object.
        AccessError: The store refuses.
        TransientStorageError: All attempts failed.
        StorageError: The store fails in a way that will not pass.
        MissingExtraError: The store needs an extra that is not installed.
    """
    store = _open_store(path)

    def attempt() -> _Result:
        try:
            return action(store)
        except store.errors as error:
            raise _translate(path, verb, store, error) from error

    return retries.call(f"{verb} {path}", attempt, size_bytes)


def _translate(path: str, verb: str, store: Store, error: Exception) -> Exception:
    problem = store.judge(error)
    # Some libraries' messages run over many lines, the first of which says what it is.
    text = (str(error).strip() or type(error).__name__).splitlines()[0]
    if problem is Problem.TRANSIENT:
        return retries.TransientError(text.rstrip("."))
    if problem is Problem.MISSING:
        return FileNotFoundError(f"{path} does not exist")
    if problem is Problem.DENIED:
        return AccessError(f"{path} may not be read or written: {text}", store.hint)
    if problem is Problem.CHANGED:
        return StorageError(f"{path} was replaced while it was read.", "Run again.")
    return StorageError(f"{verb} {path} failed: {text}")


_stores: dict[str, tuple[tuple[tuple[str, str], ...], Store]] = {}
_stores_lock = threading.Lock()


def _open_store(path: str) -> Store:
    """Returns the client for a path; one for each process and set of settings."""
    scheme = split_path(path)[0]
    settings = (("pid", str(os.getpid())), *sorted(_read_settings()))
    with _stores_lock:
        made_for, store = _stores.get(scheme, (None, None))
        if store is None or made_for != settings:
            store = _make_store(scheme)
            _stores[scheme] = (settings, store)
    return store


def _read_settings() -> Iterator[tuple[str, str]]:
    return ((name, value) for name, value in os.environ.items() if name.startswith(_SETTINGS))


def _make_store(scheme: str) -> Store:
    extra, module = _EXTRAS[scheme]
    if not _is_installed(module):
        raise build_missing_extra_error(f"Storage {scheme}://", extra)
    if scheme == "s3":
        from darkroom.storage.stores.s3 import S3Store

        return S3Store()
    from darkroom.storage.stores.gcs import GcsStore

    return GcsStore()


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
