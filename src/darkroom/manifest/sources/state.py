"""Notices when a file changes while it is read: its rows would be of two versions."""

from __future__ import annotations

from darkroom import storage
from darkroom.errors import DataError


class SourceState:
    """Size and version of a file at the moment when this object is created.

    Raises:
        OSError: The file cannot be looked up.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._found = storage.stat_file(path)

    def check(self) -> None:
        """Checks that the file is the same.

        Raises:
            DataError: It was changed or deleted.
        """
        try:
            found = storage.stat_file(self._path)
        except FileNotFoundError:
            found = None
        if found != self._found:
            raise DataError(
                f"{self._path} was changed while it was read.",
                "Wait until it is complete, then start again.",
            )
