"""Reads the tensors of a file that `torch.save` wrote before version 1.6, without torch.

Such a file is a row of pickles and then the numbers. A pickle can call any function, so the reader
knows only the four names that tensors need, and none of them does more than describe a tensor.
"""

from __future__ import annotations

import io
import math
import pickle
import struct
import sys
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from darkroom import storage
from darkroom.errors import DataError

_MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL = 1001
# The first bytes of what torch writes since version 1.6.
_ZIP = b"PK\x03\x04"
_DTYPES = {"FloatStorage": "<f4", "LongStorage": "<i8"}
# What unpickling a file that was changed may raise, apart from our own error.
_DAMAGED = (
    pickle.UnpicklingError, EOFError, ValueError, TypeError, KeyError, IndexError, AttributeError,
    MemoryError, OverflowError, RecursionError, struct.error,
)  # fmt: skip


class _Storage(NamedTuple):
    """A run of numbers at the end of the file, which tensors share."""

    key: str
    dtype: str
    length: int


class _Tensor(NamedTuple):
    """A view of a storage; `strides` are in numbers."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _Names(dict[str, Any]):
    """Takes the place of OrderedDict: a pickle may give it attributes, which nobody reads."""


# The one in Python: for a number in the file, the one in C would take all memory.
class _Unpickler(pickle._Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Returns what stands for a name of torch; refuses every other name."""
        if (module, name) == ("collections", "OrderedDict"):
            return _Names
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _make_rebuild()
        if module == "torch" and name in _DTYPES:
            return name
        raise pickle.UnpicklingError(f"it calls {module}.{name}")

    def persistent_load(self, pid: Any) -> _Storage:
        """Returns the storage that a pickle refers to."""
        kind, storage_type, key, _, count, view = pid
        if kind != "storage" or view is not None:
            raise pickle.UnpicklingError("it refers to something that is not a storage")
        return _Storage(str(key), _DTYPES[storage_type], int(count))


def _make_rebuild() -> Callable[..., _Tensor]:
    # A new function each time: a pickle could change the attributes of one that is kept.
    return lambda store, offset, shape, strides, *_: _Tensor(store, offset, shape, strides)


def read_tensors(path: str) -> dict[str, np.ndarray[Any, Any]]:
    """Reads the tensors of a state dict.

    Args:
        path: A file of `torch.save` in its old form.

    Returns:
        Arrays of float32 or int64 by the names that they have in the file.

    Raises:
        DataError: The file is not one, is truncated, or has more than tensors in it.
        OSError: It cannot be read.
    """
    # In memory: of a file, a number in it may ask for any number of bytes.
    file = io.BytesIO(storage.read_bytes(path))
    try:
        return _read(file)
    except _DAMAGED as error:
        reason = str(error) or "it ends too early"
        raise DataError(
            f"{path} is not a file of weights that can be read: {reason.rstrip('.')}.",
            "It must be a state dict that torch.save wrote in its old form "
            "(_use_new_zipfile_serialization=False), with nothing but tensors in it.",
        ) from error


def _read(file: io.BytesIO) -> dict[str, np.ndarray[Any, Any]]:
    if file.getbuffer()[: len(_ZIP)] == _ZIP:
        raise ValueError("it is in the new form of torch.save, a zip archive")
    if (_load(file), _load(file)) != (_MAGIC, _PROTOCOL):
        raise ValueError("it does not begin as torch's files do")
    if not _load(file)["little_endian"] or sys.byteorder != "little":
        raise ValueError("its numbers are not in the order of this machine")
    tensors = _load(file)
    if not isinstance(tensors, Mapping) or not all(
        isinstance(tensor, _Tensor) for tensor in tensors.values()
    ):
        raise ValueError("it is not a table of tensors")
    needed = {tensor.storage.key: tensor.storage for tensor in tensors.values()}
    stored = {key: _read_numbers(file, needed[key]) for key in _load(file)}
    return {str(name): _view(stored, tensor) for name, tensor in tensors.items()}


def _load(file: BinaryIO) -> Any:
    return _Unpickler(file).load()


def _read_numbers(file: BinaryIO, store: _Storage) -> np.ndarray[Any, Any]:
    count = int.from_bytes(file.read(8), "little")
    if count != store.length:
        raise ValueError(f"a storage has {count} numbers, expected {store.length}")
    dtype = np.dtype(store.dtype)
    data = file.read(count * dtype.itemsize)
    if len(data) < count * dtype.itemsize:
        raise EOFError("it ends before its last number")
    return np.frombuffer(data, dtype)


def _view(stored: Mapping[str, np.ndarray[Any, Any]], tensor: _Tensor) -> np.ndarray[Any, Any]:
    """Returns a tensor as an array of its own, after a check that it is within its storage."""
    numbers = stored[tensor.storage.key]
    shape, strides = tuple(tensor.shape), tuple(tensor.strides)
    reach = sum((size - 1) * step for size, step in zip(shape, strides, strict=True))
    numbered = (tensor.offset, *shape, *strides)
    is_within = (
        all(isinstance(each, int) and each >= 0 for each in numbered)
        and math.prod(shape) <= len(numbers)
        and tensor.offset + reach < len(numbers)
    )
    if not is_within:
        raise ValueError("a tensor is larger than its storage")
    steps = [step * numbers.itemsize for step in strides]
    return np.lib.stride_tricks.as_strided(numbers[tensor.offset :], shape, steps).copy()
