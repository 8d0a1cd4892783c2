"""The trained model as a file that Keras opens: `keras.models.load_model`."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import keras
import numpy as np
import numpy.typing as npt

from darkroom import storage
from darkroom.features.networks.keras_files import load_keras_model
from darkroom.runtime import progress
from darkroom.training.state.folder import KERAS_FILE

_TOLERANCE = 1e-5


def write_keras_file(model: Any, path: str) -> None:
    """Writes a model, without its optimizer, if Keras can open it again.

    The user's own model may have parts that Keras cannot write, as a function without a name.
    That is said, and any older file is deleted.

    Args:
        model: A Keras model, uint8 [N, height, width, 3] to probabilities [N, C].
        path: The file.
    """
    with tempfile.TemporaryDirectory() as folder:
        local = os.path.join(folder, KERAS_FILE)
        try:
            kept = model
            if model.inputs:  # not a subclass, whose layers are in its `call`
                # Without the optimizer, which is twice as large as the weights.
                kept = keras.Model(model.input, model.output, name=model.name)
            kept.save(local)
            _check_same(model, local)
        except Exception as error:  # noqa: BLE001  whatever a layer of the user's raises
            storage.delete_file(path)
            reason = str(error).strip().partition("\n")[0][:300] or type(error).__name__
            progress.note(f"{KERAS_FILE} is not written, because Keras cannot open it: {reason}")
            return
        with open(local, "rb") as file:
            storage.write_bytes(path, file.read())


def _check_same(model: Any, path: str) -> None:
    """Checks that the file opened by Keras answers like the model.

    Raises:
        ValueError: It does not.
    """
    opened = load_keras_model(path)
    pixels = np.random.default_rng(0).integers(0, 256, (2, *model.input_shape[1:]), np.uint8)
    difference = np.abs(_predict(opened, pixels) - _predict(model, pixels)).max()
    if not difference <= _TOLERANCE:
        raise ValueError(f"it then answers differently, by {difference:.1g}")


def _predict(model: Any, pixels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.asarray(model(pixels, training=False), np.float32)
