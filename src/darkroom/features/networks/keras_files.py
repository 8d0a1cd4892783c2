"""Looks into a file of Keras before it is opened: a few bytes may become many gigabytes."""

from __future__ import annotations

import io
import os
import zipfile
from typing import Any

import h5py

from darkroom.runtime.machine import count_memory_bytes

# In a `.keras` file. A text takes up to 30 times its bytes when it is parsed.
_WEIGHTS, _PARSED = "model.weights.h5", ("config.json", "metadata.json")
_MAX_PARSED_BYTES = 16 << 20
# Keras does not compress, and zip takes hardly a tenth off weights.
_MAX_GROWTH = 10
_CHUNK_BYTES = 1 << 20
# What a member may say that it takes.
_ENDLESS_BYTES = 1 << 62


def load_keras_model(path: str) -> Any:
    """Opens a model that `model.save` wrote to a `.keras` file.

    Raises:
        ValueError: Unpacked, it takes more than ten times its bytes, or than half of the memory.
        Exception: Whatever h5py, zipfile and Keras raise, also if it is damaged.
    """
    import keras

    grown = _MAX_GROWTH * os.path.getsize(path) + _MAX_PARSED_BYTES
    inspect_keras_file(path, min(grown, count_memory_bytes() // 2))
    return keras.models.load_model(path, compile=False)


def inspect_keras_file(path: str, most_bytes: int) -> set[str]:
    """Returns the kinds of the numbers in a file of Keras, `.h5` or `.keras`, as NumPy names them.

    Args:
        path: The file, on this machine.
        most_bytes: The most that it may take when it is unpacked.

    Raises:
        ValueError: It takes more.
        Exception: Whatever h5py and zipfile raise, also if it is damaged.
    """
    if not path.endswith(".keras"):
        return _inspect_weights(path, most_bytes)
    with zipfile.ZipFile(path) as archive:
        _check_members(archive, most_bytes)
        return _inspect_weights(io.BytesIO(archive.read(_WEIGHTS)), most_bytes)


def _check_members(archive: zipfile.ZipFile, most_bytes: int) -> None:
    """Checks how many bytes all members take, by unpacking them piece by piece.

    Raises:
        ValueError: They take more than `most_bytes`, or a text more than is parsed.
    """
    total = 0
    for member in archive.infolist():
        # The size that it says may be wrong, and zipfile unpacks all before it cuts.
        member.file_size = _ENDLESS_BYTES
        num_bytes = 0
        with archive.open(member) as file:
            while chunk := file.read(_CHUNK_BYTES):
                total, num_bytes = total + len(chunk), num_bytes + len(chunk)
                _check_bytes(total, most_bytes)
                if member.filename in _PARSED:
                    _check_bytes(num_bytes, _MAX_PARSED_BYTES, member.filename)


def _inspect_weights(file: Any, most_bytes: int) -> set[str]:
    found: list[Any] = []
    with h5py.File(file, "r") as opened:
        opened.visititems(lambda _, each: found.append(each) if hasattr(each, "dtype") else None)
        _check_bytes(sum(each.size * each.dtype.itemsize for each in found), most_bytes)
        return {each.dtype.kind for each in found}


def _check_bytes(found: int, most: int, name: str = "it") -> None:
    if found > most:
        raise ValueError(f"{name} takes more than {most:,} bytes when unpacked")
