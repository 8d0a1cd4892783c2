"""Gives a network the weights of a file of Keras."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import h5py
import numpy as np

from darkroom import storage
from darkroom.errors import DataError, UsageError, is_environment
from darkroom.storage import copies
from darkroom.training.networks.weights import SAVE_HINT

# In a `.keras` file.
_WEIGHTS = "model.weights.h5"
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
            is_complex = _inspect(path, _NUMBER_BYTES * model.count_params() + _OTHER_BYTES)
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
    if is_complex or not are_finite(model.get_weights()):
        kind = "complex numbers" if is_complex else "numbers that are not finite"
        raise DataError(f"{weights} has {kind}, expected weights of a network.", SAVE_HINT)


def are_finite(weights: list[Any]) -> bool:
    """Tells whether all numbers of weights are finite."""
    return all(bool(np.isfinite(each).all()) for each in weights)


def _inspect(path: str, most_bytes: int) -> bool:
    """Tells whether a file has complex numbers, of which Keras takes the real part.

    Raises:
        ValueError: It takes too much memory: a few bytes may become many gigabytes.
    """
    if not path.endswith(".keras"):
        return _inspect_weights(path, most_bytes)
    with zipfile.ZipFile(path) as archive:
        _check_bytes(sum(each.file_size for each in archive.infolist()), most_bytes)
        return _inspect_weights(io.BytesIO(archive.read(_WEIGHTS)), most_bytes)


def _inspect_weights(file: Any, most_bytes: int) -> bool:
    found: list[Any] = []
    with h5py.File(file, "r") as opened:
        opened.visititems(lambda _, each: found.append(each) if hasattr(each, "dtype") else None)
        _check_bytes(sum(each.size * each.dtype.itemsize for each in found), most_bytes)
        return any(each.dtype.kind == "c" for each in found)


def _check_bytes(found: int, most: int) -> None:
    if found > most:
        raise ValueError(f"they take {found:,} bytes when unpacked, expected {most:,} at most")


def _describe(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
