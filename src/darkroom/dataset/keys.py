"""Identity of an example: a key that survives a moved folder, a new run and a shuffled source."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable

# To copy a state is cheaper than to set it up for every key.
_start_key = hashlib.blake2b(digest_size=16).copy


def make_key(identity: str) -> str:
    """Returns the key of an example: BLAKE2b-128 of its identity text, 32 hexadecimal digits."""
    digest = _start_key()
    digest.update(identity.encode())
    return digest.hexdigest()


def hash_split(key: str, seed: int) -> float:
    """Returns a number in [0, 1) that decides the split of a row which declares none.

    It depends on the key and the seed alone, so adding rows never moves a row. Its salt differs
    from that of `make_order_hash`: otherwise a split would be a contiguous piece of the order.
    """
    return _make_hash(seed, b"split")(key) / 2.0**63


def make_order_hash(seed: int) -> Callable[[str], int]:
    """Returns the function that gives a key its place in the order of a split.

    The place is an unsigned number of 63 bits, not 64, because Parquet readers differ in how they
    treat unsigned columns.
    """
    return _make_hash(seed, b"order")


@functools.lru_cache
def _make_hash(seed: int, salt: bytes) -> Callable[[str], int]:
    """Returns the function from a key to an unsigned number of 63 bits.

    All splits and orders come from it, so a dataset that is updated needs the same ones.
    """
    start = hashlib.blake2b(digest_size=8, key=str(seed).encode(), person=salt).copy

    def hash_key(key: str) -> int:
        digest = start()
        digest.update(key.encode())
        return int.from_bytes(digest.digest(), "big") >> 1

    return hash_key


def row_identity(cells: Iterable[str], occurrence: int) -> str:
    """Returns the identity text of a row without image: its cells and its occurrence number.

    The cells are separated by a character that no cell can hold (NUL is refused on reading), so
    `["ab", "c"]` and `["a", "bc"]` differ.
    """
    return "\0".join([*cells, str(occurrence)])
