"""The bytes of the files that decisions are about."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from darkroom import storage
from darkroom.errors import NOT_THE_DATA

_THREADS = 32
# Size in bytes and version; both None where they are not known.
_State = tuple[int | None, str | None]


def hash_files(files: Sequence[tuple[str, _State | None]]) -> list[str]:
    """Returns the SHA-256 of files, hexadecimal, which are read in threads.

    Args:
        files: The URI of each, and the state that it must have; None for any.

    Returns:
        The hashes; an empty text where a file cannot be read, or has another state.

    Raises:
        StorageError: A store failed repeatedly, or does not accept the credentials.
    """

    def hash_one(file: tuple[str, _State | None]) -> str:
        uri, state = file
        try:
            is_right = state is None or storage.stat_file(uri) == state
            return storage.hash_file(uri) if is_right else ""
        except NOT_THE_DATA:
            raise
        except (OSError, ValueError):
            return ""

    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(hash_one, files))
