"""Executor of Pusher: a push is done when every file of the model has been read back.

TFX's own executor copies the files that it finds with TensorFlow's file systems: none when the
model's files are gone, and never to s3://. So only its decision is used. In a cluster the artifact
may be the only place: without a destination, the model becomes a version inside the artifact, and a
server is given the artifact's URI.
"""

from __future__ import annotations

import json
import time
import uuid
from typing import Any

from absl import logging
from tfx.components.pusher import executor as tfx_executor
from tfx.types import artifact_utils

from darkroom import storage
from darkroom.components.pusher.saved_model import (
    GRAPH_FILE,
    check_saved_model,
    find_newest_version,
    has_all_files,
)
from darkroom.errors import OutputError
from darkroom.storage import copies

PUSH_DESTINATION_KEY = "push_destination"
PUSHED_MODEL_KEY = "pushed_model"


class Executor(tfx_executor.Executor):
    """TFX's executor, with copies that are checked, for any store that darkroom knows."""

    def Do(
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Pushes a blessed model; marks the artifact with whether it did.

        Args:
            input_dict: `model`, and `model_blessing`.
            output_dict: `pushed_model`: a PushedModel.
            exec_properties: `push_destination`: TFX's PushDestination as JSON. Without
                `base_directory` the model is pushed into the artifact, as its version.

        Raises:
            StorageError: The model is not complete, or the destination lost a file.
            OSError: The destination cannot be written.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        pushed = artifact_utils.get_single_instance(output_dict[PUSHED_MODEL_KEY])
        if not self.CheckBlessing(input_dict):
            self._MarkNotPushed(pushed)
            return
        model = self.GetModelPath(input_dict)
        check_saved_model(model)
        # The files of a failed attempt: TFX makes this folder for one execution.
        storage.delete(pushed.uri)
        base = read_destination(exec_properties[PUSH_DESTINATION_KEY])
        if base:
            base = storage.absolute(base)
            # The artifact gets its copy first: a server sees the model when nothing else can fail.
            copies.copy_folder(model, pushed.uri)
            version = _push_once(model, base)
            destination = storage.join(base, version)
        else:
            # Relative to the artifact, because a task of Kubeflow knows only its local copy.
            version = destination = push_version(model, pushed.uri)
        self._MarkPushed(pushed, pushed_destination=destination, pushed_version=version)


def _push_once(model: str, base: str) -> str:
    """Pushes a model that is not the newest version in `base`; returns its version there."""
    version = find_newest_version(base)
    if version is None or not has_all_files(model, storage.join(base, version)):
        return push_version(model, base)
    logging.info(
        "Not pushed to %s: the model is already the newest version there, %s.", base, version
    )
    return version


def read_destination(text: str) -> str:
    """Returns the base directory of a PushDestination in JSON; empty when it has none."""
    return str(json.loads(text).get("filesystem", {}).get("base_directory", ""))


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
