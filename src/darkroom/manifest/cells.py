"""Parses cells, one at a time: text, inputs, places of images; or why they are unusable."""

from __future__ import annotations

import re
from typing import Any

from darkroom import storage
from darkroom.dataset.schema import Kind, parse_input_value
from darkroom.errors import RejectError
from darkroom.storage import uris

_WINDOWS_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


def check_unicode(text: str) -> None:
    """Checks that `text` can be stored: file names may hold any bytes, JSON any code units.

    Raises:
        RejectError: It cannot be encoded as UTF-8.
    """
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        raise RejectError("not_unicode", "the name is not UTF-8") from None


def parse_cell(name: str, value: Any, kind: Kind) -> int | float | str | None:
    """Returns the value of an input column.

    Raises:
        RejectError: The cell does not hold a value of `kind`.
    """
    if value is None:
        return None
    try:
        parsed = parse_input_value(value if isinstance(value, str) else str(value), kind)
        if isinstance(parsed, str):
            parsed.encode()
    except (ValueError, OverflowError) as error:
        problem = f"column {name!r}: expected {kind.value}, got {str(value)!r:.80}"
        more = f", which {error}" if isinstance(error, OverflowError) else ""
        raise RejectError("bad_value", problem + more) from None
    return parsed


def check_form(cell: str, uri: str) -> None:
    r"""Checks that a cell holds neither a Windows path nor an image instead of a path.

    Args:
        cell: The cell.
        uri: Its absolute form. A file with exactly that name is fine, even with a `\` in it.

    Raises:
        RejectError: It holds one of them.
    """
    if (":" not in cell and "\\" not in cell) or uris.has_scheme(cell):
        return
    if cell.startswith("data:"):
        raise RejectError("unsupported_scheme", "the cell holds data, not the path of a file")
    # Names in a store may have any character, and looking one up is a request.
    is_remote = storage.is_remote(uri)
    is_foreign = _WINDOWS_DRIVE.match(cell) or ("\\" in cell and not is_remote)
    if is_foreign and (is_remote or not storage.exists(uri)):
        raise RejectError("windows_path", "this is a Windows path, which does not work here")
