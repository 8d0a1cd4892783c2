"""Reads many small files with annotations, in threads, with little memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from darkroom import storage
from darkroom.errors import NOT_THE_DATA, RejectError
from darkroom.images.access import describe_failure
from darkroom.manifest.sources.roots import check_inside
from darkroom.runtime.ordered_work import look_ahead
from darkroom.storage.uris import relative_identity

# A store takes as long for one file as for many at once.
_THREADS = 32
# An image with 100,000 objects has less.
MAX_FILE_BYTES = 8 << 20
_Parsed = TypeVar("_Parsed")


def read_files(
    paths: Iterable[str],
    base: str,
    parse: Callable[[bytes, str], _Parsed],
    roots: Collection[str] = (),
) -> Iterator[_Parsed | RejectError]:
    """Yields what each file says, in their order; a fault if it cannot be read.

    Args:
        paths: Their paths.
        base: Their names in messages are relative to it.
        parse: Returns what a file says, by its bytes and its name; raises ValueError if it cannot
            be used.
        roots: The folders in which they may be, as `list_roots` returns them.

    Raises:
        OSError: A store refuses or fails, which says nothing about a file.
    """

    def read(path: str) -> _Parsed | RejectError:
        name = relative_identity(path, base)
        try:
            check_inside(path, roots)
            return parse(storage.read_bytes(path, MAX_FILE_BYTES), name)
        except storage.FileTooLargeError:
            return RejectError("bad_annotation", f"{name} has more than {MAX_FILE_BYTES:,} bytes")
        except RejectError as error:
            return RejectError(error.reason, f"{name}: {error}")
        except NOT_THE_DATA:
            raise
        except OSError as error:
            why = describe_failure(error)
            return RejectError("bad_annotation", f"{name} cannot be read: {why}")
        except ValueError as error:
            return RejectError("bad_annotation", f"{name}: {error}")

    with ThreadPoolExecutor(_THREADS) as pool:
        try:
            for found in look_ahead((pool.submit(read, path) for path in paths), _THREADS):
                yield found.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
