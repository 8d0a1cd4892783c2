from __future__ import annotations

import os
import resource

import numpy as np
import pytest

from darkroom.errors import StorageError
from darkroom.features.values import make_values


def test_values_are_zeros_that_can_be_written():
    values = make_values((3, 2, 4), np.float16)
    assert (values.shape, values.dtype, values.any()) == ((3, 2, 4), np.float16, False)
    values[1] = 2.5
    assert values.sum() == 20
    assert make_values((0, 5)).shape == (0, 5)


def test_a_folder_without_room_is_named(tmp_path, monkeypatch):
    """Nobody writes into memory without a place on the disk, which would end the process."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
    try:
        with pytest.raises(StorageError, match=f"{tmp_path} has no room for 4,000,000 bytes"):
            make_values((1000, 1000))
        assert make_values((10, 10)).shape == (10, 10)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert os.listdir(tmp_path) == []
