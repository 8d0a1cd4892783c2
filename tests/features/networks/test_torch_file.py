"""The only file of torch that is read: that of the weights of ImageNet."""

from __future__ import annotations

import pickle

import pytest

from darkroom.errors import UsageError
from darkroom.features.networks import torch_file
from darkroom.features.networks.torch_file import read_tensors
from darkroom.training.networks.weights import check_weights

pytestmark = pytest.mark.crosses


@pytest.mark.parametrize("name", ["w.pth", "w.pt"])
def test_any_other_file_is_refused_unread(tmp_path, monkeypatch, name):
    monkeypatch.setattr(torch_file, "_Unpickler", None)
    path = tmp_path / name
    for data in (b"", b"PK\3\4 a new file of torch", pickle.dumps([1, 2])):
        path.write_bytes(data)
        for read in (read_tensors, lambda given: check_weights(given, "small_cnn")):
            with pytest.raises(UsageError, match=r"w\.pth? is not the file of torch") as caught:
                read(str(path))
            assert "save_weights" in caught.value.hint


def test_a_large_file_is_not_read_into_memory(tmp_path):
    path = tmp_path / "w.pth"
    with open(path, "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(UsageError, match=r"w\.pth is not the file of torch"):
        read_tensors(str(path))
