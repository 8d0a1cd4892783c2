"""Reads source images again for pictures, which must not make a report wait for a store."""

from __future__ import annotations

import time
from collections.abc import Callable

from darkroom import storage
from darkroom.errors import MissingExtraError, StorageError, TransientStorageError
from darkroom.images.prepare import MAX_IMAGE_BYTES
from darkroom.storage.requests import load_store, split_path

# For all pictures of a report together.
STORE_SECONDS = 5.0


def read_source_image(uri: str) -> bytes:
    """Reads the image at `uri`, of at most 64 MiB, for a thumbnail."""
    return storage.read_bytes(uri, limit_bytes=MAX_IMAGE_BYTES)


class SourceImages:
    """Reads images: those on a disk all, those in stores once each, for five seconds together.

    Args:
        read_image_bytes: Reads the file at a URI.
        clock: Returns seconds.

    Attributes:
        ended: Why no more images of stores are read; empty while they are.
    """

    def __init__(
        self,
        read_image_bytes: Callable[[str], bytes] = read_source_image,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read_image_bytes = read_image_bytes
        self._clock = clock
        self._left_seconds = STORE_SECONDS
        self.ended = ""

    def read(self, uri: str) -> bytes:
        """Returns the file at a URI; nothing when it cannot be read, or not within the time."""
        if storage.is_remote(uri):
            return self._read_remote(uri)
        try:
            return self._read_image_bytes(uri)
        except Exception:  # noqa: BLE001  a report must not fail because of a picture
            return b""

    def _read_remote(self, uri: str) -> bytes:
        """Reads an image of a store, unless a store has failed before or the time is over."""
        if self.ended:
            return b""
        # Before the clock starts: to load its library takes seconds, which the store does not.
        try:
            load_store(split_path(uri)[0])
        except MissingExtraError as error:
            self.ended = error.message.rstrip(".")
            return b""
        start = self._clock()
        try:
            with storage.limit(attempts=1, seconds=self._left_seconds):
                return self._read_image_bytes(uri)
        except StorageError as error:
            self.ended = _explain(error)
        except Exception:  # noqa: BLE001  a report must not fail because of a picture
            pass
        finally:
            self._left_seconds -= self._clock() - start
            if self._left_seconds <= 0 and not self.ended:
                self.ended = f"the store took more than {STORE_SECONDS:g} seconds for the others"
        return b""


def _explain(error: StorageError) -> str:
    # Its own words may have a host or a time, which equal reports must not differ by.
    if isinstance(error, TransientStorageError):
        return f"the store did not answer within {STORE_SECONDS:g} seconds"
    return "the store refused them"
