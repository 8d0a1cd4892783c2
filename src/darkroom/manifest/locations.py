"""Checks where images are: not at paths of Windows, and only below the allowed folders."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from darkroom import storage
from darkroom.errors import RejectError
from darkroom.storage import uris

_WINDOWS_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


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


def check_inside(uri: str, roots: Iterable[str]) -> None:
    """Checks that an image is below one of the allowed folders; links are followed.

    Args:
        uri: Absolute URI of the image.
        roots: The folders from `resolve_roots`; all places are allowed when there are none.

    Raises:
        RejectError: It is not.
    """
    roots = tuple(roots)
    if not roots:
        return
    real = uris.resolve_uri(uri) if storage.is_remote(uri) else os.path.realpath(uri)
    if not any(real.startswith(f"{root.rstrip('/')}/") for root in roots):
        where = "" if real == uri else f" (it leads to {real})"
        raise RejectError("outside_root", f"it is outside the allowed folders{where}")
