"""URIs and paths as users write them: the kind of each one, and the place it resolves to.

Nothing here reads a disk or a store.
"""

from __future__ import annotations

import os
import posixpath
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from darkroom.errors import UsageError

# Variables of AWS's clients with the address of a server of S3, each with precedence over the next.
ENDPOINT_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
# No system and no store has longer ones.
MAX_PATH_CHARACTERS = 4096
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_SERVICE = re.compile(
    r"https?://((?:[\w-]{1,63}\.)*[\w-]{1,63}\.?|\[[\da-f:.]+])(?::([1-9]\d{0,4}))?(?:[/?#][!-~]*)?",
    re.ASCII | re.IGNORECASE,
)
_WILDCARDS = frozenset("*?[")
_NOT_PLAIN = ("/.", "//", "\n.", "\0", "\\", ":")


def has_scheme(uri: str) -> bool:
    """Tells whether `uri` begins with a scheme, as in `gs://bucket/a.jpg` or `file:///a.jpg`."""
    return _SCHEME.match(uri) is not None


def find_host(url: str) -> str:
    """Returns the host of the URL of a service; "" for what is not http://HOST or https://HOST.

    One with a user or a password is none: people see URLs in pipelines and logs.
    """
    match = _SERVICE.fullmatch(url)
    return match[1] if match and int(match[2] or 1) < 1 << 16 else ""


def is_remote(path: str) -> bool:
    """Tells whether `path` names a remote store; `file://` is local."""
    # Most are paths from the root, of which the first character says enough.
    return path[:1] != "/" and has_scheme(path) and not path.startswith("file://")


def local_path(path: str) -> str:
    """Returns `path` without a `file://` scheme."""
    return path.removeprefix("file://")


def expand_home(path: str) -> str:
    """Returns `path` with the home folder instead of a leading `~`, as a shell gives it.

    `~user` is kept: it may be the name of a file.
    """
    return os.path.expanduser(path) if path == "~" or path.startswith("~/") else path


def absolute(path: str | os.PathLike[str]) -> str:
    """Returns `path` as an absolute local path, or unchanged when it is remote.

    A leading `~` is the home folder. A URI of Kubeflow, as a task's message names it, is that of
    our own clients.

    Raises:
        UsageError: It is not a path.
    """
    # An empty path would name the working folder, which nobody means.
    if not isinstance(path, str | os.PathLike) or not os.fspath(path) or "\0" in os.fspath(path):
        raise UsageError(f"{path!r} is not a path.", "Give the path of a file or folder.")
    text = expand_home(os.fspath(path))
    return find_remote(text.rstrip("/")) if is_remote(text) else os.path.abspath(local_path(text))


def join(base: str, *parts: str) -> str:
    """Joins parts of a path with `/`, which every store here understands."""
    return posixpath.join(base, *parts)


def is_below(path: str, folder: str) -> bool:
    """Tells whether a local path is a folder, or in it, by its text alone."""
    clean, folder = posixpath.normpath(path), folder.rstrip("/")
    return clean == folder or clean.startswith(f"{folder}/")


def find_remote(uri: str) -> str:
    """Returns the URI by which Beam's workers and our own clients know an artifact of Kubeflow."""
    return f"s3://{uri.removeprefix('minio://')}" if uri.startswith("minio://") else uri


def has_wildcard(path: str) -> bool:
    """Tells whether `path` has a wildcard (`*`, `?` or `[`), which a name may have, too."""
    return not _WILDCARDS.isdisjoint(path)


def find_ending(path: str) -> str:
    """Returns the ending of a path, in lower case; "" without one."""
    return posixpath.splitext(path)[1].lower()


def normalise_uri(uri: str) -> str:
    """Returns the form of `uri` that identifies it: resolved, and in Unicode NFC."""
    return resolve_uri(uri if uri.isascii() else unicodedata.normalize("NFC", uri))


def resolve_uri(uri: str) -> str:
    """Returns `uri` without `.` and `..`, and without `//` if it is local; never touches disk.

    Its characters stay as they are: a file is found under its own spelling only. A scheme and its
    bucket (`gs://bucket`) are kept, and `..` cannot climb above them.
    """
    if "/." not in uri and "//" not in uri and not uri.startswith("."):
        return uri
    match = _SCHEME.match(uri)
    if match is None:
        path = posixpath.normpath(uri)
        # POSIX leaves two leading slashes to the system; Linux takes them for one.
        return path[1:] if path.startswith("//") else path
    if "/." not in uri:
        return uri
    bucket, *parts = uri[match.end() :].split("/")
    kept: list[str] = []
    for part in parts:
        if part == "..":
            del kept[-1:]
        elif part != ".":
            kept.append(part)
    return match.group() + "/".join([bucket, *kept])


def are_plain_paths(cells: Sequence[Any]) -> bool:
    """Tells whether cells hold local paths that are their own normalised forms.

    Of some such paths (not ASCII, or with `:`) it says no; that costs time, nothing else.
    """
    if {*map(type, cells)} != {str}:
        return False
    # A search in all of them is faster than one in each.
    text = "\n" + "\n".join(cells)
    return (
        text.isascii()
        and not any(part in text for part in _NOT_PLAIN)
        and "" not in cells
        and [*map(str.rstrip, cells)] == [*cells]
        and max(map(len, cells)) <= MAX_PATH_CHARACTERS
    )


def relative_identity(uri: str, base: str) -> str:
    """Returns the identity text of an image: its URI below `base`, else the whole URI.

    Args:
        uri: Absolute normalised URI of the image.
        base: Normalised folder of the manifest or source, without trailing slash; may be empty.
    """
    prefix = base + "/"
    return uri[len(prefix) :] if base and uri.startswith(prefix) else uri
