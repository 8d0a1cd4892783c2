"""Objects of remote stores, gs:// and s3://; for `darkroom.storage` alone."""

from __future__ import annotations

import contextlib
import functools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence

from darkroom.errors import StorageError
from darkroom.storage.files import NotAFileError, find_skip_reason
from darkroom.storage.requests import check_length, request, split_path
from darkroom.storage.stores import MAX_DELETED, Download, ListingPage, Object, Store, TooLongError

# Of a pattern: `**`, a set as `[a-z]` or `[!a]`, or one character.
_PARTS = re.compile(r"\*\*|\[(?:!.|[^!])[^]]*\]|.", re.DOTALL)
_WILD = {"**": ".*", "*": r"[^/\\]*", "?": "."}


def read_bytes(path: str, limit_bytes: int | None = None) -> bytes | None:
    """Reads a whole object with one request; None when it is longer than the limit.

    Raises:
        OSError: It is missing, access is denied, or the store fails.
    """
    _, bucket, name = split_path(path)
    if not name:
        raise NotAFileError(f"{path} is a bucket, not a file in one")

    def attempt(store: Store) -> bytes | None:
        download = Download(limit_bytes)
        try:
            size_bytes = store.read(bucket, name, download)
        except TooLongError:
            return None
        check_length(len(download.data), size_bytes)
        return bytes(download.data)

    return request(path, "Reading", attempt)


def stat(path: str) -> Object:
    """Looks up an object.

    Raises:
        OSError: It is missing, access is denied, or the store fails.
    """
    _, bucket, name = split_path(path)
    if not name:
        raise FileNotFoundError(f"{path} is a bucket, not a file in one")
    return request(path, "Looking up", lambda store: store.stat(bucket, name))


def exists(path: str) -> bool:
    """Tells whether there is such an object, or one below it."""
    try:
        return bool(stat(path))
    except FileNotFoundError:
        return is_folder(path)


def is_folder(path: str) -> bool:
    """Tells whether there is an object below `path`."""
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


def walk_files(
    path: str,
    marks: Collection[str] = (),
    is_left_out: Callable[[str, str], bool] | None = None,
    left_out: Counter[str] | None = None,
) -> Iterator[str]:
    """Yields the relative names of all objects below `path`, as `darkroom.storage.walk_files`."""
    names = sorted(found.name for found in walk(path))
    marked: set[str] = set()
    for name in names if marks and is_left_out else ():
        parts = name.split("/")
        marked.update("/".join(parts[:at]) for at, part in enumerate(parts) if at and part in marks)
    below = tuple(f"{folder}/" for folder in sorted(marked))
    reasons: dict[str, str] = {}
    for name in names:
        outer = (start for start in below if name.startswith(start))
        if is_left_out and any(
            is_left_out(start[:-1], name[len(start) :].partition("/")[0]) for start in outer
        ):
            continue
        parts = name.split("/")
        for at, part in enumerate(parts, start=1):
            if reason := find_skip_reason(part, is_folder=at < len(parts)):
                reasons["/".join(parts[:at])] = reason
                break
        else:
            yield name
    if left_out is not None:
        left_out.update(reasons.values())


def list_everything(path: str) -> dict[str, int]:
    """Returns the lengths of all objects below `path` by their relative names, sorted.

    An object named exactly `path` has the empty name. Empty objects that some consoles make to
    represent folders are left out.
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


def match(literal: str, wild: str) -> list[str]:
    """Returns the paths that begin with a text and match a pattern after it.

    `*` ends at a `/`, `**` does not.
    """
    scheme, bucket, start = split_path(literal)
    expression = "".join(map(_translate, _PARTS.findall(wild)))
    is_match = re.compile(expression, re.DOTALL).fullmatch
    prefix = start + re.split(r"[*?\[]", wild, maxsplit=1)[0]
    return [
        f"{scheme}://{bucket}/{found.name}"
        for page in _list_pages(literal, prefix)
        for found in page.objects
        if found.name.startswith(start) and is_match(found.name[len(start) :])
    ]


def _translate(part: str) -> str:
    if len(part) > len("**"):
        inside = part[1:-1].replace("\\", r"\\").replace("^", r"\^")
        return f"[^{inside[1:]}]" if inside[0] == "!" else f"[{inside}]"
    return _WILD.get(part) or re.escape(part)


def list_objects(folder: str, first: str) -> Iterator[list[Object]]:
    """Yields the objects directly below a folder in pages, beginning with a name.

    Args:
        folder: Path without a `/` at its end.
        first: Name of the first one, without the folder.
    """
    prefix = _below(folder)
    # Stores start after a name; almost no name is between `first` and `first` without its end.
    for page in _list_pages(folder, prefix, "/", prefix + first[:-1]):
        yield [found._replace(name=found.name.removeprefix(prefix)) for found in page.objects]


def _list_pages(
    path: str, prefix: str, delimiter: str = "", after: str = ""
) -> Iterator[ListingPage]:
    token: str | None = None
    while True:
        page = _list_page(path, prefix, delimiter, token, after)
        yield page
        token = page.token
        if token is None:
            return


def _list_page(
    path: str, prefix: str, delimiter: str, token: str | None, after: str = ""
) -> ListingPage:
    """Requests one page. Only a bucket can be missing: a listing without objects is a result."""
    scheme, bucket, _ = split_path(path)
    try:
        return request(
            path,
            "Listing",
            lambda store: store.list_page(bucket, prefix, delimiter, token, after),
        )
    except FileNotFoundError as error:
        raise StorageError(
            f"{path}: there is no bucket {scheme}://{bucket}.", "Create it, or correct its name."
        ) from error


def replace(path: str, data: bytes, version: str) -> None:
    """Writes a small object if it has a version now, or, for an empty one, if it does not exist.

    Raises:
        ChangedError: It has another version, maybe because an answer to this request was lost.
        OSError: Access is denied, or the store fails.
    """
    _, bucket, name = split_path(path)
    request(path, "Writing", lambda store: store.replace(bucket, name, data, version))


def copy(source: str, destination: str) -> None:
    """Copies an object within a store, which does it by itself."""
    _, bucket, name = split_path(source)
    _, to_bucket, to_name = split_path(destination)
    request(source, "Copying", lambda store: store.copy(bucket, name, to_bucket, to_name))


def rename(source: str, destination: str) -> None:
    """Copies an object within a store, then deletes it."""
    _, bucket, name = split_path(source)
    copy(source, destination)
    request(source, "Deleting", lambda store: store.delete(bucket, [name]))


def delete(path: str) -> None:
    """Deletes an object and all below it; no error when it does not exist."""
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
    """Deletes the empty objects that represent folders, when nothing else is below `path`."""
    below = [found for page in _list_pages(path, _below(path)) for found in page.objects]
    if below and all(map(_is_marker, below)):
        _delete_names(path, split_path(path)[1], [found.name for found in below])


def _delete_names(path: str, bucket: str, names: Sequence[str]) -> None:
    def delete_part(part: list[str], store: Store) -> None:
        store.delete(bucket, part)

    for first in range(0, len(names), MAX_DELETED):
        part = list(names[first : first + MAX_DELETED])
        request(path, "Deleting", functools.partial(delete_part, part))


def _below(path: str) -> str:
    name = split_path(path)[2].rstrip("/")
    return f"{name}/" if name else ""
