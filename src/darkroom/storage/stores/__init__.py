"""The operations of a remote store, in single attempts that `darkroom.storage.requests` repeats.

A client of a store turns off the retries of its library, says how to treat its errors, and bounds
every wait for a byte.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, Protocol

CONNECT_SECONDS = 10
# An attempt fails when no byte arrives for this long.
READ_SECONDS = 20
MAX_CONNECTIONS = 64
# The most names in one request to delete.
MAX_DELETED = 1000
_TRANSIENT_STATUS = frozenset({408, 429, 500, 502, 503, 504})


class Problem(Enum):
    """The meaning of an error of a store for the caller."""

    MISSING = "missing"
    DENIED = "denied"
    CREDENTIALS = "credentials"
    CHANGED = "changed"
    DAMAGED = "damaged"
    TRANSIENT = "transient"
    OTHER = "other"


CREDENTIALS_HINT = "Renew or correct the {} credentials, and check this machine's clock."


class Object(NamedTuple):
    """An object of a store.

    Attributes:
        name: Its name within the bucket.
        size_bytes: Its length.
        version: Text that changes with its content: an ETag or a generation.
        modified: When it was written, in seconds since 1970; 0 in a listing, where that takes time.
    """

    name: str
    size_bytes: int
    version: str
    modified: float = 0


class ListingPage(NamedTuple):
    """A part of a listing.

    Attributes:
        objects: The objects of this part.
        folders: Prefixes that end in `/`, in a listing that stops there.
        token: Where the next part starts; None after the last one.
    """

    objects: list[Object]
    folders: list[str]
    token: str | None


class Download:
    """The bytes of a download, up to a limit.

    Attributes:
        data: The bytes so far.
    """

    def __init__(self, limit_bytes: int | None = None) -> None:
        self.data = bytearray()
        self._limit_bytes = limit_bytes

    def expect(self, size_bytes: int) -> None:
        """Announces the length, before the bytes arrive.

        Raises:
            TooLongError: It is longer than the limit.
        """
        if self._limit_bytes is not None and size_bytes > self._limit_bytes:
            raise TooLongError

    def write(self, chunk: bytes) -> int:
        """Adds a chunk.

        Raises:
            TooLongError: The download becomes longer than the limit.
        """
        self.expect(len(self.data) + len(chunk))
        self.data += chunk
        return len(chunk)


class TooLongError(Exception):
    """The object has more bytes than the caller takes."""


class Store(Protocol):
    """A client of one kind of store; one attempt each, shared by threads."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The errors of the client."""

    def advise(self, problem: Problem) -> str:
        """Says what to do when an object is denied, or the credentials are not accepted."""

    def judge(self, error: Exception) -> Problem:
        """Tells the meaning of one of `errors`."""

    def list_page(
        self, bucket: str, prefix: str, delimiter: str, token: str | None, after: str = ""
    ) -> ListingPage:
        """Lists the objects that begin with a prefix, up to the delimiter, after a name.

        An empty delimiter or name does not count. A store may begin with that name itself, or with
        names before it.
        """

    def stat(self, bucket: str, name: str) -> Object:
        """Looks up an object."""

    def read(self, bucket: str, name: str, download: Download) -> int | None:
        """Reads an object; returns its length if the store announced it."""

    def read_range(
        self, bucket: str, found: Object, first: int, last: int, download: Download
    ) -> None:
        """Reads bytes `first` to `last` of an object that must not have changed."""

    def upload(self, bucket: str, name: str, file: str) -> None:
        """Writes an object from a local file."""

    def replace(self, bucket: str, name: str, data: bytes, version: str) -> None:
        """Writes a small object if the store has this version of it now; none when empty.

        A store that knows no conditions writes it anyway.
        """

    def copy(self, bucket: str, name: str, to_bucket: str, to_name: str) -> None:
        """Copies an object within the store."""

    def delete(self, bucket: str, names: list[str]) -> None:
        """Deletes up to `MAX_DELETED` objects, whether or not they exist."""


def judge_status(status: int | None) -> Problem:
    """Tells the meaning of an HTTP status."""
    if status == 404:
        return Problem.MISSING
    if status == 401:
        return Problem.CREDENTIALS
    if status == 403:
        return Problem.DENIED
    if status == 412:
        return Problem.CHANGED
    return Problem.TRANSIENT if status in _TRANSIENT_STATUS else Problem.OTHER
