"""Gives a network the weights of a file of Keras."""

from __future__ import annotations

from typing import Any

import numpy as np

from darkroom import storage
from darkroom.errors import DataError, UsageError, is_environment
from darkroom.features.networks.keras_files import inspect_keras_file
from darkroom.storage import copies
from darkroom.training.networks.weights import SAVE_HINT

# The most that a file takes when it is unpacked, for each number of the network, and beside them.
# Optimizers keep two more numbers of four or eight bytes.
_NUMBER_BYTES, _OTHER_BYTES = 32, 16 << 20


def load_keras_weights(model: Any, weights: str) -> None:
    """Gives a network the weights of a file of Keras, `.h5` or `.keras`.

    Args:
        model: A Keras model.
        weights: The path of the file.

    Raises:
        DataError: The file is damaged, or has numbers that are complex or not finite.
        UsageError: It belongs to another network, or takes far more than this one when unpacked.
    """
    with copies.use_local_copy(storage.expand_home(weights)) as path:
        try:
            # First, because newer Keras takes a file with a wrong checksum for one without weights.
            most_bytes = _NUMBER_BYTES * model.count_params() + _OTHER_BYTES
            kinds = inspect_keras_file(path, most_bytes)
            model.load_weights(path)
        except ValueError as error:
            if is_environment(error):
                raise
            # After that, Keras lists every layer of the model.
            reason = _describe(error).partition(" Example error")[0][:300]
            raise UsageError(
                f"The weights {weights} do not fit {model.name}: {reason}",
                "They must be of the same network, without its head where darkroom makes one.",
            ) from error
        # h5py, zipfile and Keras raise whatever they meet.
        except Exception as error:
            if is_environment(error):
                raise
            raise DataError(
                f"{weights} is damaged: {_describe(error)[:300]}.", SAVE_HINT
            ) from error
    # Of complex numbers, Keras takes the real part.
    if "c" in kinds or not are_finite(model.get_weights()):
        kind = "complex numbers" if "c" in kinds else "numbers that are not finite"
        raise DataError(f"{weights} has {kind}, expected weights of a network.", SAVE_HINT)


def are_finite(weights: list[Any]) -> bool:
    """Tells whether all numbers of weights are finite."""
    return all(bool(np.isfinite(each).all()) for each in weights)


def _describe(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
