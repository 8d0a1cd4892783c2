"""Executor of Pusher: a push is done when every file of the model has been read back.

TFX's own executor copies the files that it finds with TensorFlow's file systems: none when the
model's files are gone, and never to s3://. So only its decision is used. In a cluster the artifact
may be the only place: without a destination, the model becomes a version inside the artifact, and a
server is given the artifact's URI.
"""

from __future__ import annotations

import json
from typing import Any

from absl import logging
from tfx.components.pusher import executor as tfx_executor
from tfx.types import artifact_utils

from darkroom import storage
from darkroom.components.pusher.saved_model import check_saved_model, push_once, push_version
from darkroom.storage import copies

PUSH_DESTINATION_KEY = "push_destination"
PUSHED_MODEL_KEY = "pushed_model"
# TFX's `pushed` says that the model is at its destination; this, that an earlier run put it there.
WAS_THERE_PROPERTY = "was_there"


class Executor(tfx_executor.Executor):
    """TFX's executor, with copies that are checked, for any store that darkroom knows."""

    def Do(
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Pushes a blessed model; marks the artifact with whether it did, or had been before.

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
            version, is_new = push_once(model, base)
            destination = storage.join(base, version)
            if not is_new:
                logging.info("Not pushed to %s: the model is there already.", destination)
                pushed.set_int_custom_property(WAS_THERE_PROPERTY, 1)
        else:
            # Relative to the artifact, because a task of Kubeflow knows only its local copy.
            version = destination = push_version(model, pushed.uri)
        self._MarkPushed(pushed, pushed_destination=destination, pushed_version=version)


def read_destination(text: str) -> str:
    """Returns the base directory of a PushDestination in JSON; empty when it has none."""
    return str(json.loads(text).get("filesystem", {}).get("base_directory", ""))
