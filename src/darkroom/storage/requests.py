"""Requests to remote stores: one client for each store, and its errors told apart.

A missing or denied object is reported at once; a failure that may pass is tried again
(`darkroom.storage.stores.retries`).
"""

from __future__ import annotations

import os
import socket
import threading
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from darkroom.errors import (
    AccessError,
    ChangedError,
    CredentialsError,
    DamagedFileError,
    DarkroomError,
    StorageError,
    UsageError,
    build_missing_extra_error,
)
from darkroom.runtime import by_name
from darkroom.runtime.lazy_names import is_installed
from darkroom.storage.stores import Problem, Store, retries

# The name of each store's client, and the extra and the module that it needs.
_STORES = {
    "gs": ("GcsStore", "gcp", "google.cloud.storage"),
    "s3": ("S3Store", "aws", "boto3"),
}
# The variables that a client is made from: a new one is made when one of them changes.
_SETTINGS = ("AWS_", "CLOUDSDK_", "GCE_METADATA_", "GOOGLE_", "NO_GCE_CHECK", "STORAGE_EMULATOR_")
# Parsers raise them for an answer that was damaged on its way, and clients for one that lacks
# something.
_UNREADABLE = (AttributeError, LookupError, TypeError, ValueError)
# A wrong checksum is damage on the way, which is different each time; or, if it is the same so many
# times, damage in the store, which does not pass.
_MAX_DAMAGED = 3
_Result = TypeVar("_Result")


def split_path(path: str) -> tuple[str, str, str]:
    """Returns scheme, bucket and name.

    Raises:
        UsageError: There is no such store, or the path names no bucket.
    """
    scheme, _, rest = path.partition("://")
    bucket, _, name = rest.partition("/")
    if scheme not in _STORES:
        raise UsageError(f"{path}: there is no store {scheme}://.", "Known: gs:// and s3://.")
    if not bucket:
        raise UsageError(f"{path} names no bucket.", f"Write {scheme}://bucket/name.")
    if "@" in bucket or (scheme == "gs" and not (bucket[0] + bucket[-1]).isalnum()):
        raise UsageError(
            f"{path} does not begin with the name of a bucket.",
            "It begins and ends with a letter or a digit, and has no user or password.",
        )
    return scheme, bucket, name


def request(
    path: str, verb: str, action: Callable[[Store], _Result], size_bytes: int = 0
) -> _Result:
    """Makes a request, again and again while its errors may pass.

    Args:
        path: The path that it is for.
        verb: Its action, for messages: "Reading".
        action: Makes it, once.
        size_bytes: How much it transfers, where that is known.

    Returns:
        The result of `action`.

    Raises:
        FileNotFoundError: There is no such object.
        AccessError: The store denies access to the object.
        CredentialsError: The store does not accept the credentials, or there are none.
        ChangedError: The object has another version than the one that was asked for.
        DamagedFileError: Its bytes do not have its checksum, and are the same each time.
        TransientStorageError: All attempts failed.
        StorageError: The store fails in a way that will not pass.
        MissingExtraError: The store needs an extra that is not installed.
    """
    damage: Counter[str] = Counter()

    def attempt() -> _Result:
        # Within the limits of an attempt, too: a client may look for credentials in the network.
        store = open_store(path)
        try:
            return action(store)
        except store.errors as error:
            raise _translate(path, verb, store, error, damage) from error
        except DarkroomError:
            raise
        except _UNREADABLE as error:
            text = f"an answer that cannot be read ({type(error).__name__}: {error})"
            raise retries.TransientError(text) from error

    return retries.retry(f"{verb} {path}", attempt, size_bytes)


def _translate(
    path: str, verb: str, store: Store, error: Exception, damage: Counter[str]
) -> Exception:
    """Returns the error to raise for one of a client; a `TransientError` if it may pass.

    `damage` counts equal messages about damage, of all attempts of the request.
    """
    problem = store.judge(error)
    # Some libraries' messages have many lines; the first one names the problem.
    text = (str(error).strip() or type(error).__name__).splitlines()[0]
    if problem is Problem.DAMAGED:
        text = " ".join(str(error).split()).rstrip(".")
        damage[text] += 1
        if damage[text] == _MAX_DAMAGED:
            return DamagedFileError(
                f"{path} is damaged in its store. {_MAX_DAMAGED} times: {text}.",
                "Restore it from a copy, or make it again.",
            )
        return retries.TransientError(text)
    if problem is Problem.TRANSIENT:
        kind = retries.UnknownHostError if _lacks_address(error) else retries.TransientError
        return kind(text.rstrip("."))
    if problem is Problem.MISSING:
        return FileNotFoundError(f"{path} does not exist")
    if problem is Problem.DENIED:
        return AccessError(f"{path} may not be read or written: {text}", store.advise(problem))
    if problem is Problem.CREDENTIALS:
        return CredentialsError(
            f"{verb} {path} failed, because of the credentials: {text}", store.advise(problem)
        )
    if problem is Problem.CHANGED:
        return ChangedError(f"{path} was replaced while it was read.", "Run again.")
    return StorageError(f"{verb} {path} failed: {text}")


def _lacks_address(error: BaseException | None) -> bool:
    """Tells whether the name of the host has no address; not if nobody could be asked for it."""
    while error is not None and not isinstance(error, socket.gaierror):
        error = error.__cause__ or error.__context__
    return error is not None and error.errno == socket.EAI_NONAME


_stores: dict[str, tuple[tuple[tuple[str, str], ...], Store]] = {}
_stores_lock = threading.Lock()


def open_store(path: str) -> Store:
    """Returns the client for a path; one for each scheme, process and set of settings."""
    scheme = split_path(path)[0]
    variables = (item for item in os.environ.items() if item[0].startswith(_SETTINGS))
    settings = (("pid", str(os.getpid())), *sorted(variables))
    with _stores_lock:
        made_for, store = _stores.get(scheme, (None, None))
        if store is None or made_for != settings:
            store = load_store(scheme)()
            _stores[scheme] = (settings, store)
    return store


def load_store(scheme: str) -> Callable[[], Store]:
    """Imports the client of a store, which takes seconds on a busy machine, and returns its class.

    Raises:
        MissingExtraError: The store needs an extra that is not installed.
    """
    name, extra, module = _STORES[scheme]
    if not is_installed(module):
        raise build_missing_extra_error(f"Storage {scheme}://", extra)
    store: Callable[[], Store] = by_name.find(name)
    return store


def check_length(size_bytes: int, expected: int | None) -> None:
    """Checks that all announced bytes came, where the store announced a length.

    Raises:
        TransientError: There are more or fewer.
    """
    if expected is not None and size_bytes != expected:
        raise retries.TransientError(f"{size_bytes} bytes came, {expected} were announced")
