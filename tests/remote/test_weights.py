"""Weights to start from that are in a store."""

from __future__ import annotations

import json

import numpy as np
import pytest

from darkroom import storage
from darkroom.errors import DataError, UsageError
from darkroom.storage import copies
from darkroom.targets.label.head import LabelHead
from darkroom.training.export import export_model
from darkroom.training.models import build_model
from darkroom.training.networks.weights import check_weights, find_state_file

pytestmark = [pytest.mark.tensorflow, pytest.mark.usefixtures("simple_decoder")]

SIZE = (8, 8)


@pytest.fixture
def model():
    return build_model("small_cnn", LabelHead(2), SIZE)


def _assert_same(one, two):
    for left, right in zip(one.get_weights(), two.get_weights(), strict=True):
        np.testing.assert_array_equal(left, right)


def test_a_file_in_a_store_is_loaded(store, model, tmp_path):
    _, root = store
    path = f"{root}/kept/small.weights.h5"
    with pytest.raises(UsageError, match="which is not a file"):
        check_weights(path, "small_cnn")
    model.save_weights(tmp_path / "small.weights.h5")
    storage.copy_file(str(tmp_path / "small.weights.h5"), path)
    check_weights(path, "small_cnn")
    assert find_state_file(path) == path
    _assert_same(build_model("small_cnn", LabelHead(2), SIZE, path), model)
    storage.write_bytes(path, b"no HDF5")
    with pytest.raises(UsageError, match="which is not a file of HDF5"):
        check_weights(path, "small_cnn")


@pytest.mark.parametrize("store", ["s3", pytest.param("gs", marks=pytest.mark.long)], indirect=True)
def test_a_training_in_a_store_is_loaded(store, model, tmp_path):
    _, root = store
    export_model(model, ["a", "b"], SIZE, str(tmp_path / "run" / "model"))
    plan = {"options": {"model": "small_cnn"}, "data": []}
    (tmp_path / "run" / "training.json").write_text(json.dumps({"plan": plan, "result": {}}))
    copies.copy_folder(str(tmp_path / "run"), f"{root}/run")
    check_weights(f"{root}/run", "small_cnn")
    assert find_state_file(f"{root}/run") == f"{root}/run/training.json"
    _assert_same(build_model("small_cnn", LabelHead(2), SIZE, f"{root}/run", ["a", "b"]), model)
    storage.write_bytes(f"{root}/run/model/variables/variables.index", b"no index")
    with pytest.raises(DataError, match=f"{root}/run/model/variables is damaged"):
        build_model("small_cnn", LabelHead(2), SIZE, f"{root}/run", ["a", "b"])
