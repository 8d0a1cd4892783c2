from __future__ import annotations

import hashlib
import pickle

import numpy as np
import pytest

from darkroom.errors import UsageError
from darkroom.training.networks import torch_file
from darkroom.training.networks.torch_file import read_tensors
from darkroom.training.networks.weights import check_weights

from .torch_pickles import write_tensors

ARRAYS = {
    "conv.weight": np.asfortranarray(np.arange(24, dtype=np.float32).reshape(2, 3, 4)),
    "conv.bias": np.array([0.5, -1.0], np.float32),
    "steps": np.array(7, np.int64),
}


def test_tensors_have_their_names_shapes_and_numbers(tmp_path, monkeypatch):
    path = write_tensors(tmp_path / "w.pth", ARRAYS)
    monkeypatch.setattr(torch_file, "SHA256", hashlib.sha256(path.read_bytes()).hexdigest())
    found = read_tensors(str(path))
    assert list(found) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def _nest():
    """Returns a pickle whose key takes 2^60 steps to hash."""
    nested = b")" + b"2\x86" * 60
    heads = (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True})
    return b"".join(pickle.dumps(each, 2) for each in heads) + b"\x80\x02}" + nested + b"Ns."


@pytest.mark.parametrize("name", ["w.pth", "w.pt"])
@pytest.mark.parametrize(
    "data",
    [b"", b"PK\3\4 a new file of torch", pickle.dumps([1, 2]), b"\x89HDF\r\n\x1a\n", _nest()],
)
def test_any_other_file_is_refused_unread(tmp_path, monkeypatch, name, data):
    monkeypatch.setattr(torch_file, "_Unpickler", None)
    path = tmp_path / name
    path.write_bytes(data)
    for read in (lambda: read_tensors(str(path)), lambda: check_weights(str(path), "small_cnn")):
        with pytest.raises(UsageError, match=r"w\.pth? is not the file of torch") as caught:
            read()
        assert "save_weights" in caught.value.hint


def test_a_large_file_is_not_read_into_memory(tmp_path):
    path = tmp_path / "w.pth"
    with open(path, "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(UsageError, match=r"w\.pth is not the file of torch"):
        read_tensors(str(path))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_tensors(str(tmp_path / "missing.pth"))
