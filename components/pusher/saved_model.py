"""Checks the files of a SavedModel against its graph and its variables."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import saved_model_pb2

from darkroom import storage
from darkroom.errors import StorageError

GRAPH_FILE = "saved_model.pb"
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


def has_all_files(one: str, other: str) -> bool:
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
