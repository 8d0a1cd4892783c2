from __future__ import annotations

import os
import pickle
import zipfile

import numpy as np
import pytest

from darkroom.errors import DataError
from darkroom.training.networks.torch_file import read_tensors

from .torch_pickles import write_tensors

ARRAYS = {
    "conv.weight": np.asfortranarray(np.arange(24, dtype=np.float32).reshape(2, 3, 4)),
    "conv.bias": np.array([0.5, -1.0], np.float32),
    "steps": np.array(7, np.int64),
}


def test_tensors_have_their_names_shapes_and_numbers(tmp_path):
    found = read_tensors(str(write_tensors(tmp_path / "w.pth", ARRAYS)))
    assert list(found) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("cut", [0, 1, 10, 60, 200, -1, -9, -60])
def test_a_truncated_file_is_an_error(tmp_path, cut):
    path = write_tensors(tmp_path / "w.pth", ARRAYS)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(DataError, match=r"w\.pth is not a file of weights that can be read: "):
        read_tensors(str(path))


class _Call:
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(
    ("function", "arguments", "name"),
    [
        (os.system, ("touch {folder}/called",), "posix.system"),
        (eval, ("open('{folder}/called', 'w')",), "__builtin__.eval"),
        (getattr, ("a", "join"), "__builtin__.getattr"),
    ],
)
def test_a_pickle_that_calls_a_function_is_refused(tmp_path, function, arguments, name):
    arguments = [each.format(folder=tmp_path) for each in arguments]
    path = write_tensors(tmp_path / "w.pth", ARRAYS, _Call(function, *arguments))
    with pytest.raises(DataError, match=f"it calls {name}"):
        read_tensors(str(path))
    assert not (tmp_path / "called").exists()


def test_a_pickle_without_tensors_is_refused(tmp_path):
    path = write_tensors(tmp_path / "w.pth", ARRAYS, {"epoch": 3})
    with pytest.raises(DataError, match="it is not a table of tensors"):
        read_tensors(str(path))


def test_a_file_of_another_kind_is_refused(tmp_path):
    for data in (b"", b"PK\3\4 a new file of torch", pickle.dumps([1, 2]), b"\x89HDF\r\n\x1a\n"):
        (tmp_path / "w.pth").write_bytes(data)
        with pytest.raises(DataError, match="It must be a state dict"):
            read_tensors(str(tmp_path / "w.pth"))
    with pytest.raises(FileNotFoundError):
        read_tensors(str(tmp_path / "missing.pth"))


@pytest.mark.parametrize(
    ("was", "now"),
    [
        # Shape (2,) becomes (9,): more numbers than there are.
        (b"K\x02\x85", b"K\x09\x85"),
        # Stride (1,) becomes (200,), which is beyond the end.
        (b"K\x01\x85", b"K\xc8\x85"),
    ],
)
def test_a_tensor_cannot_reach_beyond_its_numbers(tmp_path, was, now):
    path = write_tensors(tmp_path / "w.pth", {"bias": np.array([1.0, 2.0], np.float32)})
    data = path.read_bytes()
    assert was in data
    head, _, tail = data.rpartition(was)
    path.write_bytes(head + now + tail)
    with pytest.raises(DataError, match=r"w\.pth is not a file of weights"):
        read_tensors(str(path))


def test_a_large_number_in_the_pickle_takes_no_memory(tmp_path):
    path = write_tensors(tmp_path / "w.pth", ARRAYS)
    # A place in the memo of the pickle. The reader in C takes memory for all places before it.
    changed = path.read_bytes().replace(b"q\x00(X", b"r\xff\xff\xff\x7f(X")
    assert len(changed) > path.stat().st_size
    path.write_bytes(changed)
    assert read_tensors(str(path)).keys() == ARRAYS.keys()


def test_the_new_form_of_torch_is_named(tmp_path):
    path = tmp_path / "w.pth"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", pickle.dumps({}))
    with pytest.raises(DataError, match=r"new form of torch\.save, a zip archive") as caught:
        read_tensors(str(path))
    assert "_use_new_zipfile_serialization=False" in caught.value.hint
