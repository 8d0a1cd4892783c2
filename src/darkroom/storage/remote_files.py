"""Objects of remote stores as files: one version is read by ranges; written when closed."""

from __future__ import annotations

import io
import os
import tempfile
from types import TracebackType
from typing import Any

from darkroom.storage import remote
from darkroom.storage.files import NotAFileError
from darkroom.storage.requests import check_length, request, split_path
from darkroom.storage.stores import Download, Object, Store

BUFFER_BYTES = 4 << 20


def open_read(path: str) -> io.BufferedReader:
    """Opens an object for reading by ranges, all from the version that it has now.

    Raises:
        OSError: It is missing, access is denied, or the store fails.
    """
    found = remote.stat(path)
    # A small object needs no larger buffer than itself.
    buffer_bytes = max(1, min(found.size_bytes, BUFFER_BYTES))
    return io.BufferedReader(_Reader(path, found), buffer_bytes)


class _Reader(io.RawIOBase):
    def __init__(self, path: str, found: Object) -> None:
        self._path = path
        self._bucket = split_path(path)[1]
        self._found = found
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._found.size_bytes}
        self._position = max(0, start[whence] + offset)
        return self._position

    def readinto(self, buffer: Any) -> int:
        end = min(self._position + len(buffer), self._found.size_bytes)
        size_bytes = end - self._position
        if size_bytes <= 0:
            return 0
        first = self._position

        def attempt(store: Store) -> bytearray:
            download = Download()
            store.read_range(self._bucket, self._found, first, end - 1, download)
            check_length(len(download.data), size_bytes)
            return download.data

        buffer[:size_bytes] = request(self._path, "Reading", attempt, size_bytes)
        self._position = end
        return size_bytes


def open_write(path: str) -> io.BufferedIOBase:
    """Opens an object for writing; it appears, complete, when the file is closed without an error.

    Written bytes wait in a temporary file, so that a failed upload can be tried again.
    """
    if not split_path(path)[2]:
        raise NotAFileError(f"{path} is a bucket, not a file in one")
    return _Writer(path)


class _Writer(io.BufferedIOBase):
    def __init__(self, path: str) -> None:
        self._path = path
        self._file = tempfile.NamedTemporaryFile(prefix="darkroom-")  # noqa: SIM115

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self._file.write(data)

    def tell(self) -> int:
        return self._file.tell()

    def flush(self) -> None:
        if not self._file.closed:
            self._file.flush()

    def close(self) -> None:
        """Writes the object, which only appears now; closing again does nothing.

        After an error the temporary file is gone, too, so what was written cannot be sent again.
        """
        if self.closed:
            return
        try:
            self._file.flush()
            _, bucket, name = split_path(self._path)
            file, size_bytes = self._file.name, self._file.tell()
            request(
                self._path,
                "Writing",
                lambda store: store.upload(bucket, name, file),
                size_bytes,
            )
        finally:
            self.discard()

    def discard(self) -> None:
        """Closes the file without writing an object."""
        self._file.close()
        if not self.closed:
            super().close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def __del__(self) -> None:
        # Nobody closed the file, so something went wrong.
        self.discard()
