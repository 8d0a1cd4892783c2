"""Where images may lie: paths of another system, and folders that must not be left."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from darkroom import storage
from darkroom.errors import RejectError
from darkroom.storage import uris

_WINDOWS_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


def check_form(cell: str, uri: str) -> None:
    r"""Checks that a cell does not hold a path of Windows, or an image instead of a path.

    Args:
        cell: The cell.
        uri: What it was resolved to. A file of that very name is right, even with a `\` in it.

    Raises:
        RejectError: It does.
    """
    if (":" not in cell and "\\" not in cell) or uris.has_scheme(cell):
        return
    if cell.startswith("data:"):
        raise RejectError("unsupported_scheme", "the cell holds data, not the path of a file")
    # In a store a name may hold any character, and looking it up is a request.
    is_remote = storage.is_remote(uri)
    is_foreign = _WINDOWS_DRIVE.match(cell) or ("\\" in cell and not is_remote)
    if is_foreign and (is_remote or not storage.exists(uri)):
        raise RejectError("windows_path", "this is a path of Windows, which means nothing here")


def check_inside(uri: str, roots: Iterable[str]) -> None:
    """Checks that an image lies below one of the allowed folders, wherever links lead.

    Args:
        uri: Absolute URI of the image.
        roots: What `resolve_roots` returned; none allows everything.

    Raises:
        RejectError: It does not.
    """
    roots = tuple(roots)
    if not roots:
        return
    real = uris.resolve_uri(uri) if storage.is_remote(uri) else os.path.realpath(uri)
    if not any(real.startswith(f"{root.rstrip('/')}/") for root in roots):
        where = "" if real == uri else f" (it leads to {real})"
        raise RejectError("outside_root", f"it lies outside the allowed folders{where}")
