"""The hashes of a node's outputs, kept outside the artifact, so that damage to it is noticed.

A cached run reads no file of the nodes that it reuses. So a file that was truncated or changed
since would come back as a good result, in each run.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from absl import logging
from tfx.types import standard_artifacts

from darkroom import storage
from darkroom.dataset.checksums import find_changed, read_sums, sum_file, write_sums
from darkroom.dataset.layout import SUMS_FILE, split_folder

# Beside TFX's own files about the executions of a node.
_FOLDER = (".system", "darkroom_outputs")


def keep_sums(uri: str, kind: str) -> None:
    """Keeps the hashes of an artifact that a node has just made.

    None are kept of a remote one: each later run would read all its files.

    Args:
        uri: URI of the artifact: its folder, or its only file.
        kind: Name of its type.
    """
    if not uri or storage.is_remote(uri):
        return
    try:
        _keep_sums(uri, kind)
    except OSError as error:
        # The node has done its work: a user's component may have left a pipe.
        logging.warning("The hashes of %s cannot be kept: %s.", uri, error)


def _keep_sums(uri: str, kind: str) -> None:
    # The list of hashes is text, with a line for each file.
    names = [name for name in storage.look_up_files(uri) if name.isprintable()]
    if not names and os.path.isfile(storage.local_path(uri)):
        uri, name = os.path.split(uri)
        names = [name]
    if kind == standard_artifacts.Examples.TYPE_NAME:
        # Records have separate hashes, which reading checks; they may take hours to read.
        names = [name for name in names if not name.startswith(split_folder(""))]
    if names:
        folder = _find_folder(uri)
        storage.make_folder(folder)
        write_sums(folder, {name: sum_file(storage.join(uri, name)) for name in names})


def find_damage(uri: str, copies: Iterable[str] = ()) -> str:
    """Returns the change of an artifact since it was made; empty without one.

    Args:
        uri: URI of the artifact.
        copies: Folders that have its files under the same names.

    Raises:
        DataError: The hashes are damaged themselves.
        OSError: A file cannot be read.
    """
    if storage.is_remote(uri):
        return ""
    # The URI of an artifact may be that of its only file.
    for folder in (uri, os.path.dirname(uri)):
        kept = _find_folder(folder)
        if not storage.exists(storage.join(kept, SUMS_FILE)):
            continue  # none were kept, as of an artifact without files
        sums = read_sums(kept)
        for place in (folder, *copies):
            for name, what in find_changed(place, sums, sorted(sums)):
                return f"{storage.join(place, name)} {what}"
    return ""


def _find_folder(uri: str) -> str:
    """Returns the folder with the hashes of an artifact, whose path is ROOT/NODE/KEY/EXECUTION."""
    parent, execution = os.path.split(uri.rstrip("/"))
    node, key = os.path.split(parent)
    return storage.join(node, *_FOLDER, key, execution)
