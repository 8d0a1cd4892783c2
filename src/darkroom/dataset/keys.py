"""Identity of an example: a key that survives a moved folder, a new run and a shuffled source."""

from __future__ import annotations

import functools
import hashlib
import posixpath
import re
import unicodedata
from collections.abc import Callable, Iterable

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_KEY_BYTES = 16


def make_key(identity: str) -> str:
    """Returns the key of an example: BLAKE2b-128 of its identity text, 32 hexadecimal digits."""
    return hashlib.blake2b(identity.encode(), digest_size=_KEY_BYTES).hexdigest()


def hash_order(key: str, seed: int) -> int:
    """Returns the place of `key` in the seeded order of a split, an unsigned 63-bit number.

    63 bits, not 64, because Parquet readers differ in how they treat unsigned columns.
    """
    return make_order_hash(seed)(key)


def hash_split(key: str, seed: int) -> float:
    """Returns a number in [0, 1) that decides the split of a row which declares none.

    It depends on the key and the seed alone, so adding rows never moves a row. Its salt differs
    from `hash_order`'s: otherwise a split would be a contiguous piece of the order.
    """
    return _make_hash(seed, b"split")(key) / float(1 << 63)


def make_order_hash(seed: int) -> Callable[[str], int]:
    """Returns `hash_order` for one seed: faster where it is asked for many keys."""
    return _make_hash(seed, b"order")


@functools.lru_cache
def _make_hash(seed: int, salt: bytes) -> Callable[[str], int]:
    # To copy a state is cheaper than to set it up for every key.
    start = hashlib.blake2b(digest_size=8, key=str(seed).encode(), person=salt).copy

    def hash_key(key: str) -> int:
        digest = start()
        digest.update(key.encode())
        return int.from_bytes(digest.digest(), "big") >> 1

    return hash_key


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


def is_plain_path(cell: object) -> bool:
    """Tells whether a cell holds a local path that is its own normalised form.

    Of some such paths (not ASCII, or with `:`) it says no; that costs time, nothing else.
    """
    return (
        isinstance(cell, str)
        and cell.isascii()
        and "/." not in cell
        and "//" not in cell
        and "\0" not in cell
        and "\\" not in cell
        and ":" not in cell
        and not cell.startswith(".")
        and cell.strip() == cell != ""
    )


def is_remote(uri: str) -> bool:
    """Tells whether `uri` names a scheme, as in `gs://bucket/a.jpg`."""
    return _SCHEME.match(uri) is not None


def relative_identity(uri: str, base: str) -> str:
    """Returns the identity text of an image: its URI below `base`, else the whole URI.

    Args:
        uri: Absolute normalised URI of the image.
        base: Normalised folder of the manifest or source, without trailing slash; may be empty.
    """
    prefix = base + "/"
    return uri[len(prefix) :] if base and uri.startswith(prefix) else uri


def row_identity(cells: Iterable[str], occurrence: int) -> str:
    """Returns the identity text of a row without image: its cells and its occurrence number.

    The cells are separated by a character that no cell can hold (NUL is refused on reading), so
    `["ab", "c"]` and `["a", "bc"]` differ.
    """
    return "\0".join([*cells, str(occurrence)])
