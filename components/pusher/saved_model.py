"""The files of a SavedModel, and its versions in a folder from which a server takes the newest.

It needs TensorFlow's messages, and not TFX.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Collection, Iterator
from typing import Any

from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import saved_model_pb2

from darkroom import storage
from darkroom.errors import OutputError, StorageError
from darkroom.evaluation.scores.serving import GRAPH_FILE
from darkroom.storage import copies

_INDEX_FILE = "variables/variables.index"
_DATA_FILE = re.compile(r"variables/variables\.data-\d{5}-of-(\d{5})")
_HINT = (
    "Train again without the cache (--no-cache, or --set cache=false), or restore the files of the "
    "model."
)


def check_saved_model(folder: str) -> None:
    """Checks that a SavedModel has all its files.

    Raises:
        StorageError: A file is missing, or the graph is empty or damaged.
        OSError: A file cannot be read.
    """
    files = storage.look_up_files(folder)
    path = storage.join(folder, GRAPH_FILE)
    if GRAPH_FILE not in files or not files[GRAPH_FILE].size_bytes:
        raise StorageError(
            f"{path} does not exist or is empty, so there is no model to push.", _HINT
        )
    try:
        graph = saved_model_pb2.SavedModel.FromString(storage.read_bytes(path))
    except DecodeError as error:
        raise StorageError(f"{path} is damaged: {error}.", _HINT) from error
    missing = sorted({*_list_needed(graph, files)} - files.keys())
    if missing:
        raise StorageError(f"The model {folder} has no {', '.join(missing[:10])}.", _HINT)


def find_newest_version(base: str) -> str | None:
    """Returns the name of the newest whole version of a model in a folder; None without any."""
    # A push writes this file last, so a version without it is not complete.
    whole = [
        name
        for name in storage.list_folder(base)
        if name.isdecimal() and storage.exists(storage.join(base, name, GRAPH_FILE))
    ]
    return max(whole, key=int, default=None)


def push_once(model: str, base: str) -> tuple[str, bool]:
    """Pushes a model that is not the newest version in a folder.

    Returns:
        The version that the model has there, and whether it is new.

    Raises:
        StorageError: See `push_version`.
        OSError: The same.
    """
    version = find_newest_version(base)
    if version is None or not _has_all_files(model, storage.join(base, version)):
        return push_version(model, base), True
    return version, False


def push_version(model: str, base: str) -> str:
    """Copies a model into a new folder of `base`, named by the time as servers expect it.

    Nothing in `base` is changed: a version that is there is never written to.

    Where folders can be renamed, a server sees the whole version or nothing. On an object store,
    `saved_model.pb` is written last, after all other files were read back.

    Args:
        model: Folder of the SavedModel.
        base: Folder of its versions: local, s3:// or gs://.

    Returns:
        The name of the version.

    Raises:
        StorageError: The model changed while it was copied, or `base` lost a file.
        OSError: A file cannot be read or written.
    """
    if not storage.is_remote(base):
        part = storage.join(base, f"{storage.PART_PREFIX}{uuid.uuid4().hex}")
        try:
            copies.copy_folder(model, part)
            version = _find_version(base)
            try:
                storage.rename(part, storage.join(base, version))
            except OSError:
                pass  # a bucket that is mounted as a folder may not rename folders
            else:
                storage.sync_folder(base)
                return version
        finally:
            storage.delete(part)
    while True:
        version = _find_version(base)
        try:
            copies.copy_folder(model, storage.join(base, version), last=GRAPH_FILE)
            return version
        except OutputError:
            pass  # another process has just taken this version


def _find_version(base: str) -> str:
    """Returns the time in seconds, or the next number after it that no version has."""
    version = int(time.time())
    while storage.exists(storage.join(base, str(version))):
        version += 1
    return str(version)


def _has_all_files(one: str, other: str) -> bool:
    """Tells whether all files of one folder are in another, to which a server may give more."""
    files = storage.list_everything(one)
    return files.items() <= storage.list_everything(other).items() and all(
        storage.hash_file(storage.join(one, name)) == storage.hash_file(storage.join(other, name))
        for name in files
    )


def _list_needed(graph: Any, files: Collection[str]) -> Iterator[str]:
    """Yields the required files besides the graph."""
    for meta in graph.meta_graphs:
        yield from (f"assets/{asset.filename}" for asset in meta.asset_file_def)
    data = [found[1] for name in files if (found := _DATA_FILE.fullmatch(name))]
    # TensorFlow 2 writes them even without variables; TensorFlow 1 wrote none for a frozen graph.
    if (
        data
        or _INDEX_FILE in files
        or any(meta.HasField("object_graph_def") for meta in graph.meta_graphs)
    ):
        yield _INDEX_FILE
        num_shards = data[0] if data else "00001"
        for number in range(int(num_shards)):
            yield f"variables/variables.data-{number:05d}-of-{num_shards}"
