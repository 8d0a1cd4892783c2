"""Executor of Pusher: pushes models where TFX's own executor cannot.

TFX copies a model by TensorFlow's file systems, to a folder with the time as its name, and once
more into its artifact. In a cluster there may be no other place than the artifact, and TensorFlow
knows no s3://. So here a model without destination becomes a version inside the artifact, whose URI
is then what a server takes, and one for s3:// goes there by our own client.
"""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any

from tfx.components.pusher import executor as tfx_executor
from tfx.types import artifact_utils

from darkroom import storage

PUSH_DESTINATION_KEY = "push_destination"
PUSHED_MODEL_KEY = "pushed_model"
_DESTINATION_PROPERTY = "pushed_destination"
_VERSION_PROPERTY = "pushed_version"
_COMMIT_FILE = "saved_model.pb"


class Executor(tfx_executor.Executor):
    """TFX's executor, for two more kinds of destination."""

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
            OSError: The destination cannot be written.
        """
        base = read_destination(exec_properties[PUSH_DESTINATION_KEY])
        if base and not base.startswith("s3://"):
            super().Do(input_dict, output_dict, exec_properties)
            return
        pushed = artifact_utils.get_single_instance(output_dict[PUSHED_MODEL_KEY])
        with tempfile.TemporaryDirectory(prefix="darkroom-") as scratch:
            local = json.dumps({"filesystem": {"base_directory": scratch}})
            super().Do(input_dict, output_dict, {**exec_properties, PUSH_DESTINATION_KEY: local})
            version = pushed.get_string_custom_property(_VERSION_PROPERTY)
            if not version:
                return  # it was not blessed
            source = os.path.join(scratch, version)
            if base:
                copy_model(source, storage.join(base, version))
            else:
                storage.delete(pushed.uri)
                copy_model(source, storage.join(pushed.uri, version))
        # The folder that TFX noted was the scratch one. In the artifact it is relative: a task of
        # Kubeflow knows only the local copy of it.
        destination = storage.join(base, version) if base else version
        pushed.set_string_custom_property(_DESTINATION_PROPERTY, destination)


def read_destination(text: str) -> str:
    """Returns the base directory of a PushDestination in JSON; empty when it has none."""
    return str(json.loads(text).get("filesystem", {}).get("base_directory", ""))


def copy_model(source: str, destination: str) -> None:
    """Copies a SavedModel; `saved_model.pb` last, which tells servers that it is complete.

    Raises:
        OSError: A file cannot be read or written.
    """
    files = sorted(storage.walk_files(source), key=lambda name: (name == _COMMIT_FILE, name))
    for name in files:
        target = storage.join(destination, name)
        storage.make_folder(target.rpartition("/")[0])
        storage.copy_file(storage.join(source, name), target)
