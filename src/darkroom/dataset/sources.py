"""What a user names as a list of images: a path, a pattern of paths, or a DataFrame."""

from __future__ import annotations

import os
import sys
from typing import Any, Protocol, TypeGuard

from darkroom import storage
from darkroom.errors import DataError


class DataFrame(Protocol):
    """The used part of a pandas DataFrame; the name for it where pandas is not installed."""

    @property
    def columns(self) -> Any:
        """The names of the columns."""

    @property
    def dtypes(self) -> Any:
        """The type of each column by name."""

    @property
    def index(self) -> Any:
        """The names of the rows."""

    @property
    def iloc(self) -> Any:
        """The cells by their places."""

    def __len__(self) -> int: ...


def is_dataframe(source: object) -> TypeGuard[DataFrame]:
    """Tells whether `source` is a pandas DataFrame."""
    # Another thread may be loading pandas at this moment.
    frame = getattr(sys.modules.get("pandas"), "DataFrame", None)
    return frame is not None and isinstance(source, frame)


AnySource = str | os.PathLike[str] | DataFrame

# In the name of a pattern of lists: the number there is the span of the rows.
SPAN_MARK = "{SPAN}"


def find_sources(source: str | os.PathLike[str]) -> list[str]:
    """Returns the absolute path of a source, or those of all files that match a pattern.

    Raises:
        DataError: No file matches the pattern.
        UsageError: The source is not a path.
        OSError: It does not exist, or cannot be seen.
    """
    path = storage.absolute(source).replace(SPAN_MARK, "*")
    if storage.exists(path):
        return [path]
    if not storage.is_pattern(path):
        raise storage.build_missing_error(path, "The source")
    if paths := storage.match_pattern(path):
        return paths
    raise DataError(f"No file matches {path}.", "Check the pattern, and quote it.")
