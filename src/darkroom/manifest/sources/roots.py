"""Where images, and the files that say something about them, may be: in the allowed folders."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Collection

from darkroom import storage
from darkroom.errors import DataError, RejectError
from darkroom.options.manifest import ManifestOptions, resolve_roots
from darkroom.storage import uris


def list_roots(path: str, options: ManifestOptions) -> tuple[str, ...]:
    """Returns the folders in which files may be that a source names, or that are found below it.

    The folder of the source is one of them, because the user named it.

    Args:
        path: The source.
        options: How it is read.

    Returns:
        The folders, absolute and without links; none if all places are allowed.

    Raises:
        UsageError: One is not a folder.
    """
    if not options.allowed_roots:
        return ()
    folder = path if storage.is_folder(path) else posixpath.dirname(path)
    return resolve_roots((*options.allowed_roots, folder))


def check_inside(uri: str, roots: Collection[str]) -> None:
    """Checks that a file is below one of the allowed folders; links are followed.

    Args:
        uri: Its absolute URI.
        roots: The folders from `resolve_roots`; all places are allowed when there are none.

    Raises:
        RejectError: It is not.
    """
    if not roots:
        return
    real = uris.resolve_uri(uri) if storage.is_remote(uri) else os.path.realpath(uri)
    if not any(real.startswith(f"{root.rstrip('/')}/") for root in roots):
        where = "" if real == uri else f" (it leads to {real})"
        raise RejectError("outside_root", f"it is outside the allowed folders{where}")


def check_found(path: str, roots: Collection[str]) -> str:
    """Returns the path of a file without which the source cannot be read.

    Raises:
        DataError: It is not in an allowed folder.
    """
    try:
        check_inside(path, roots)
    except RejectError as error:
        raise DataError(
            f"{path}: {error.detail}.",
            "Move it below an allowed folder, or allow its folder with --allowed-root "
            "(allowed_roots= in Python).",
        ) from None
    return path
