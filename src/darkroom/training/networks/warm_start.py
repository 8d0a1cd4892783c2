"""Gives a model the weights that an earlier training exported."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from darkroom import storage
from darkroom.errors import DataError, UsageError, is_environment
from darkroom.evaluation.scores.serving import MODEL_FOLDER
from darkroom.runtime import progress
from darkroom.storage import copies
from darkroom.targets.learned import Learned
from darkroom.targets.scoring import find_scoring
from darkroom.training.networks.keras_weights import are_finite
from darkroom.training.networks.weights import EarlierTraining

# Where `export_model` puts the variables of the model, in their order.
_KEY = "model_variables/{}/.ATTRIBUTES/VARIABLE_VALUE"


def load_training(model: Any, earlier: EarlierTraining, learned: Learned) -> None:
    """Gives a model the weights of an earlier training of the same model.

    Its last layer keeps the weights that it has if the kind or the names are others, and progress
    says so.

    Args:
        model: A Keras model that ends in the layer for the labels.
        earlier: The training.
        learned: What the model is to learn.

    Raises:
        DataError: The files of its weights are damaged, or a weight is not a finite number.
        UsageError: They do not fit.
    """
    variables = storage.join(earlier.folder, MODEL_FOLDER, "variables")
    with copies.use_local_copy(variables) as place:
        values = _read_variables(place, variables)
    if not are_finite(values):
        raise DataError(f"{variables} has numbers that are not finite.", "Train again.")
    if len(values) != len(model.variables):
        raise _build_misfit(earlier, model)
    kept = {id(weight) for weight in model.weights}
    before = earlier.learned
    if is_new := (learned.kind, learned.names) != (before.kind, before.names):
        last = next(layer for layer in reversed(model.layers) if layer.weights)
        kept -= {id(weight) for weight in last.weights}
    for variable, value in zip(model.variables, values, strict=True):
        if id(variable) in kept:
            if tuple(variable.shape) != np.shape(value):
                raise _build_misfit(earlier, model)
            variable.assign(value)
    what = find_scoring(before.kind).names_are
    progress.note(
        f"Starts from the weights of {earlier.folder}"
        + (f", with a new head, because its {what} are others." if is_new else ".")
    )


def _read_variables(place: str, path: str) -> list[Any]:
    """Returns the arrays in a local folder, in the order of the model; `path` is for the error."""
    values: list[Any] = []
    try:
        reader = tf.train.load_checkpoint(storage.join(place, "variables"))
        while reader.has_tensor(key := _KEY.format(len(values))):
            values.append(reader.get_tensor(key))
    # Of a file that is too short, TensorFlow says that an index is out of range.
    except (tf.errors.OpError, ValueError, RuntimeError, IndexError) as error:
        if is_environment(error):
            raise
        raise DataError(f"{path} is damaged: {type(error).__name__}.", "Train again.") from error
    return values


def _build_misfit(earlier: EarlierTraining, model: Any) -> UsageError:
    return UsageError(
        f"The weights of {earlier.folder} do not fit {model.name}: it has other layers.",
        "Train it again with this version of Keras, or start without --weights.",
    )
