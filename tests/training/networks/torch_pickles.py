"""Files as `torch.save` wrote them before version 1.6, made without torch."""

from __future__ import annotations

import io
import pickle
import sys
import types
from collections import OrderedDict
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

_MAGIC, _PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
_SYSTEM = {"protocol_version": _PROTOCOL, "little_endian": True, "type_sizes": {"long": 4}}


def _define(module: str, name: str) -> Any:
    """Returns a function that pickles as `module.name`."""

    def function() -> None: ...

    function.__module__, function.__name__, function.__qualname__ = module, name, name
    return function


_REBUILD = _define("torch._utils", "_rebuild_tensor_v2")
_STORAGES = {"f": _define("torch", "FloatStorage"), "i": _define("torch", "LongStorage")}


class _Tensor:
    def __init__(self, key: str, array: np.ndarray) -> None:
        self.key, self.array = key, array

    def __reduce__(self) -> Any:
        strides = [step // self.array.itemsize for step in self.array.strides]
        store = _Storage(self)
        return _REBUILD, (store, 0, self.array.shape, tuple(strides), False, OrderedDict())


class _Storage:
    def __init__(self, tensor: _Tensor) -> None:
        self.tensor = tensor


class _Pickler(pickle.Pickler):
    def persistent_id(self, thing: object) -> Any:
        if not isinstance(thing, _Storage):
            return None
        array = thing.tensor.array
        kind = _STORAGES[array.dtype.kind]
        return ("storage", kind, thing.tensor.key, "cpu", array.size, None)


def write_tensors(path: Path, arrays: dict[str, np.ndarray]) -> Path:
    """Writes arrays as torch does."""
    tensors = OrderedDict((k, _Tensor(str(n), a)) for n, (k, a) in enumerate(arrays.items()))
    file = io.BytesIO()
    for thing in (_MAGIC, _PROTOCOL, _SYSTEM, tensors):
        _dump(thing, file)
    _dump([tensor.key for tensor in tensors.values()], file)
    for tensor in tensors.values():
        file.write(tensor.array.size.to_bytes(8, "little"))
        # In the order of memory, which the strides describe.
        in_order = np.argsort(tensor.array.strides, kind="stable")[::-1]
        file.write(tensor.array.transpose(in_order).tobytes())
    path.write_bytes(file.getvalue())
    return path


def _dump(thing: Any, file: io.BytesIO) -> None:
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    torch.FloatStorage, torch.LongStorage = _STORAGES.values()
    utils._rebuild_tensor_v2 = _REBUILD
    with mock.patch.dict(sys.modules, {"torch": torch, "torch._utils": utils}):
        _Pickler(file, 2).dump(thing)
