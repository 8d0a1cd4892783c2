"""Sidecars in a store: the list is replaced only while the dataset is that of the output."""

from __future__ import annotations

import json

import numpy as np
import pytest

import darkroom
from darkroom import storage
from darkroom.conversion.output import additions
from darkroom.dataset.index import read_index
from darkroom.errors import OutputError, UsageError
from darkroom.features.networks.network import Network
from darkroom.features.networks.opening import open_network
from darkroom.features.table import find_features_file, read_features
from darkroom.options.conversion import ConversionOptions

from ..pictures import write_label_folders
from .test_flows import write_source

pytestmark = pytest.mark.heavy


def list_files(root: str) -> set[str]:
    """Returns the files of the dataset of an output, and whatever else is in it."""
    data = json.loads(storage.read_bytes(f"{root}/dataset.json"))["dataset"]
    return {name.removeprefix(f"{data}/") for name in storage.look_up_files(root)}


@pytest.mark.parametrize("store", [pytest.param("s3", marks=pytest.mark.long), "gs"], indirect=True)
def test_sidecars_come_and_go_with_the_dataset(store, monkeypatch, tmp_path):
    source, root = write_source(store[1]), f"{store[1]}/data"
    darkroom.convert(source, root, num_shards=1, options=ConversionOptions(describe=("dali",)))
    before = list_files(root)
    assert "dali-index/train/data_tfrecord-00000-of-00001.idx" in before
    found = darkroom.describe(root, ["tfds", "huggingface"])
    assert found.directory.startswith(f"{root}/data-")
    assert list_files(root) == {*before, *found.files}
    assert darkroom.verify(root).findings == ()
    with pytest.raises(UsageError, match="croissant and tfds cannot find"):
        darkroom.describe(root, ["tfds", "croissant"], tmp_path)

    write = additions.write_sidecars

    def write_while_it_is_replaced(*arguments):
        sums = write(*arguments)
        darkroom.convert(source, root, num_shards=1, seed=3, overwrite=True)
        return sums

    monkeypatch.setattr(additions, "write_sidecars", write_while_it_is_replaced)
    with pytest.raises(OutputError, match="Another run has taken"):
        darkroom.describe(root, ["croissant"])
    plain = {name for name in before if not name.startswith("dali-index/")}
    assert list_files(root) == plain
    assert darkroom.verify(root).findings == ()


@pytest.mark.parametrize("store", [pytest.param("s3", marks=pytest.mark.long), "gs"], indirect=True)
def test_a_dataset_on_a_store_gets_features(store, monkeypatch, tmp_path):
    network = Network("means", "1f", (4, 4), 3, lambda images: images.mean((1, 2), np.float32))
    monkeypatch.setattr("darkroom.conversion.embed.open_network", lambda model: network)
    root = f"{store[1]}/photos"
    write_label_folders(tmp_path / "in", 3)
    darkroom.convert(tmp_path / "in", root, num_shards=1)
    before = list_files(root)
    found = darkroom.embed(root)
    assert list_files(root) == {*before, "features.parquet"}
    index = found.path.replace("features.parquet", "index")
    assert find_features_file(index) == found.path
    features = read_features(found.path, index)
    assert features.rows.tolist() == read_index(index, ["row"])["row"].to_pylist()
    assert (features.values.shape, features.values.std() > 0) == ((found.images, 3), True)
    assert darkroom.verify(root).is_sound


@pytest.mark.parametrize("store", ["gs"], indirect=True)
def test_a_model_may_be_in_a_store(store):
    pytest.importorskip("onnxruntime")
    with pytest.raises(FileNotFoundError, match=r"none\.onnx does not exist"):
        open_network(f"{store[1]}/none.onnx")
    storage.write_bytes(f"{store[1]}/net.onnx", b"no model")
    with pytest.raises(UsageError, match=r"/net\.onnx is not a model that ONNX Runtime reads"):
        open_network(f"{store[1]}/net.onnx")
