"""Weights to start from: which there may be, checked without TensorFlow."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from darkroom import storage
from darkroom.dataset.layout import LABELS_FILE
from darkroom.errors import DataError, UsageError
from darkroom.evaluation.scores.serving import MODEL_FOLDER, read_learned
from darkroom.features.networks.torch_file import TORCH_ENDINGS, check_torch_file
from darkroom.options.training import APPLICATIONS_PREFIX, EFFICIENTNET_LITE, IMAGENET
from darkroom.targets.learned import Learned
from darkroom.training.state.folder import RESULT_FILE

SAVE_HINT = "Save weights with model.save_weights('NAME.weights.h5')."
# The first bytes of such a file.
_HDF5 = b"\x89HDF\r\n\x1a\n"


class EarlierTraining(NamedTuple):
    """A finished training, to start from.

    Attributes:
        folder: Its folder.
        model: The model, as its option named it.
        learned: What it answers.
    """

    folder: str
    model: str
    learned: Learned


def check_weights(weights: str | None, model: str) -> None:
    """Checks that weights to start from exist, if any are given.

    Args:
        weights: A file, the folder of a training, or `imagenet`.
        model: The model that starts from them.

    Raises:
        DataError: The files of the training are damaged.
        UsageError: There are none, they are not for the model, a file of HDF5 by its name is of
            another kind, or one of torch is not that of the extra `pretrained`.
    """
    if weights is None:
        return
    if weights == IMAGENET:
        if model != EFFICIENTNET_LITE and not model.startswith(APPLICATIONS_PREFIX):
            raise UsageError(
                f"weights is {weights!r}, but {model} has none.",
                f"Use {EFFICIENTNET_LITE}, or {APPLICATIONS_PREFIX}NAME.",
            )
        return
    place = storage.expand_home(weights)
    if storage.is_folder(place):
        read_training(weights, model)
        return
    if storage.is_remote(place):
        is_file = storage.exists(place)
    else:
        is_file = os.path.isfile(storage.local_path(place))
    if not is_file:
        near = None if storage.exists(place) else storage.find_near(place)
        hint = f"Did you mean {near}?" if near else "Pass the path of a file."
        raise UsageError(f"weights is {weights!r}, which is not a file.", hint)
    if place.endswith(TORCH_ENDINGS):
        check_torch_file(place)
    if not place.endswith((".h5", ".hdf5")):
        return
    with storage.open_read(place) as file:
        if file.read(len(_HDF5)) != _HDF5:
            raise UsageError(f"weights is {weights!r}, which is not a file of HDF5.", SAVE_HINT)


def read_training(weights: str, model: str) -> EarlierTraining:
    """Reads the options of an earlier training, whose folder is the weights of another one.

    Args:
        weights: Its folder.
        model: The model that starts from it, which must be the same.

    Raises:
        DataError: Its files are damaged.
        UsageError: It is not the folder of a finished training, or one of another model.
    """
    folder = storage.absolute(storage.expand_home(weights))
    result = storage.join(folder, RESULT_FILE)
    labels = storage.join(folder, MODEL_FOLDER, "assets", LABELS_FILE)
    if not (storage.exists(result) and storage.exists(labels)):
        raise UsageError(
            f"weights is {weights!r}, a folder without a finished training.",
            "Give the --checkpoint-dir of one, or the path of a file.",
        )
    try:
        saved = storage.read_json(result, dict[str, Any])
        found = saved["plan"]["options"]["model"]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{result} is damaged, or of another version of darkroom: {error!r}.", "Train again."
        ) from error
    if found != model:
        raise UsageError(
            f"weights is {weights!r}, a training of {found}, but the model is {model}.",
            f"Use --model {found}.",
        )
    return EarlierTraining(folder, model, read_learned(storage.join(folder, MODEL_FOLDER)))


def find_state_file(weights: str) -> str:
    """Returns the file whose state says whether weights have changed."""
    place = storage.expand_home(weights)
    return storage.join(place, RESULT_FILE) if storage.is_folder(place) else weights
