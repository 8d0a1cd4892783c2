from __future__ import annotations

import functools
import sys
import types

import keras
import numpy as np
import pytest

from darkroom.errors import DataError, StorageError, UsageError
from darkroom.options.training import APPLICATIONS, TrainingOptions
from darkroom.targets.label.head import LabelHead
from darkroom.training.model import make_parts
from darkroom.training.models import build_model, check_model, list_applications

pytestmark = pytest.mark.tensorflow

IMAGES = np.random.default_rng(0).integers(0, 256, (2, 32, 32, 3), np.uint8)


@pytest.fixture
def own_models(monkeypatch):
    module = types.ModuleType("own_models")
    monkeypatch.setitem(sys.modules, "own_models", module)
    return module


def _dense(num_classes, image_size, activation="softmax"):
    inputs = keras.Input((*image_size, 3))
    x = keras.layers.GlobalAveragePooling2D()(keras.layers.Rescaling(1 / 255)(inputs))
    return keras.Model(inputs, keras.layers.Dense(num_classes, activation=activation)(x))


@pytest.mark.parametrize("size", [(1, 1), (2, 9), (33, 20)])
def test_small_cnn_gives_probabilities_at_every_size(size):
    scores = build_model("small_cnn", 4, size)(np.zeros((2, *size, 3), np.uint8))
    assert scores.shape == (2, 4)
    np.testing.assert_allclose(np.sum(scores, axis=1), 1, rtol=1e-5)


def _find_network(model):
    return next(layer for layer in model.layers if isinstance(layer, keras.Model))


@pytest.fixture
def asked_weights(monkeypatch):
    """Makes MobileNetV2 a network of one layer, and lists the weights that it is asked for."""
    asked = []

    @functools.wraps(keras.applications.MobileNetV2)
    def build(weights, input_shape, include_top):
        assert not include_top
        asked.append(weights)
        inputs = keras.Input(input_shape)
        return keras.Model(inputs, keras.layers.Conv2D(4, 3, name="convolution")(inputs))

    monkeypatch.setattr(keras.applications, "MobileNetV2", build)
    return asked


def test_an_application_has_its_own_preprocessing_inside(asked_weights):
    model = build_model("keras.applications:MobileNetV2", LabelHead(3), (32, 32))
    scores = np.asarray(model(IMAGES, training=False))
    preprocess = keras.applications.mobilenet_v2.preprocess_input
    features = _find_network(model)(preprocess(IMAGES.astype(np.float32)), training=False)
    vectors = np.asarray(features).mean(axis=(1, 2))
    np.testing.assert_allclose(scores, model.layers[-1](vectors), rtol=1e-5)
    np.testing.assert_allclose(scores.sum(axis=1), 1, rtol=1e-5)
    assert asked_weights == [None]


def test_every_application_has_a_preprocessing():
    names = list_applications()
    assert {"ResNet50", "EfficientNetV2B0", "MobileNetV3Small", "VGG16"} <= set(names)
    # The names for suggestions are those of Keras.
    assert set(APPLICATIONS) <= set(names)
    for name in names:
        module = sys.modules[getattr(keras.applications, name).__module__]
        assert callable(module.preprocess_input)


def test_a_preprocessing_that_changes_channels_works_in_the_graph():
    model = build_model("keras.applications:VGG16", LabelHead(2), (32, 32))
    assert model.predict(IMAGES, verbose=0).shape == (2, 2)


@pytest.mark.usefixtures("asked_weights")
def test_weights_are_those_of_the_network_without_head(tmp_path):
    path = str(tmp_path / "network.weights.h5")
    first = build_model("keras.applications:MobileNetV2", LabelHead(3), (32, 32))
    network = _find_network(first)
    network.save_weights(path)
    second = build_model("keras.applications:MobileNetV2", LabelHead(5), (32, 32), path)
    loaded = _find_network(second).get_weights()
    for one, two in zip(network.get_weights(), loaded, strict=True):
        np.testing.assert_array_equal(one, two)


def test_weights_of_small_cnn(tmp_path):
    path = str(tmp_path / "small.weights.h5")
    first = build_model("small_cnn", LabelHead(3), (16, 16))
    first.save_weights(path)
    second = build_model("small_cnn", LabelHead(3), (16, 16), path)
    np.testing.assert_array_equal(first(IMAGES[:, :16, :16]), second(IMAGES[:, :16, :16]))
    whole = (tmp_path / "small.weights.h5").read_bytes()
    (tmp_path / "cut.weights.h5").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"cut\.weights\.h5 is damaged: .*truncated file"):
        build_model("small_cnn", LabelHead(3), (16, 16), str(tmp_path / "cut.weights.h5"))
    with pytest.raises(UsageError, match=r"small\.weights\.h5 do not fit small_cnn"):
        build_model("small_cnn", LabelHead(4), (16, 16), path)
    with pytest.raises(UsageError, match="weights is 'imagenet', but small_cnn has none"):
        build_model("small_cnn", LabelHead(3), (32, 32), "imagenet")


def test_weights_of_imagenet_are_those_that_keras_has(asked_weights):
    build_model("keras.applications:MobileNetV2", LabelHead(3), (32, 32), "imagenet")
    assert asked_weights == ["imagenet"]


def test_without_a_network_and_a_cache_the_error_says_what_to_do(monkeypatch):
    @functools.wraps(keras.applications.MobileNetV2)
    def fail(**options):
        raise Exception("URL fetch failure on https://example.test/w.h5: None -- no network")

    monkeypatch.setattr(keras.applications, "MobileNetV2", fail)
    with pytest.raises(StorageError, match="and cannot download them: URL fetch") as caught:
        build_model("keras.applications:MobileNetV2", LabelHead(3), (32, 32), "imagenet")
    assert "--model efficientnet-lite0" in caught.value.hint


@pytest.mark.parametrize(
    ("weights", "hint"),
    [
        ("smal.weights.h5", "Did you mean {folder}/small.weights.h5?"),
        ("photos", "Pass the path of a file."),
    ],
)
def test_weights_with_a_wrong_name_are_suggested(tmp_path, weights, hint):
    (tmp_path / "small.weights.h5").touch()
    with pytest.raises(UsageError, match="which is not a file") as caught:
        check_model("small_cnn", str(tmp_path / weights))
    assert caught.value.hint == hint.format(folder=tmp_path)


def test_weights_may_be_in_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "w.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    check_model("small_cnn", "~/w.h5")
    (tmp_path / "w.h5").write_bytes(b"PK not HDF5")
    with pytest.raises(UsageError, match=r"~/w\.h5', which is not a file of HDF5") as caught:
        check_model("small_cnn", "~/w.h5")
    assert "save_weights" in caught.value.hint


def test_own_function_gets_classes_and_size(own_models):
    calls = []

    def make(num_classes, image_size):
        calls.append((num_classes, image_size))
        return _dense(num_classes, image_size)

    own_models.make = make
    model = build_model("own_models:make", LabelHead(3), (32, 20))
    assert calls == [(3, (32, 20))]
    assert not model.compiled
    assert model(IMAGES[:, :, :20]).shape == (2, 3)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("resnet", "model is 'resnet', expected small_cnn, efficientnet-lite0, keras"),
        ("resnet50", "Did you mean keras.applications:ResNet50\\?"),
        ("efficientnet-b0", "Did you mean keras.applications:EfficientNetB0\\?"),
        ("smal_cnn", "Did you mean small_cnn\\?"),
        ("vit", "as in keras.applications:MobileNetV2. Any other model, as a vision transformer"),
        ("keras.aplications:ResNet50", "Did you mean keras.applications:ResNet50\\?"),
        ("tf.keras.applications:VGG16", "Did you mean keras.applications:VGG16\\?"),
        ("keras.applications:resnet50", "Did you mean ResNet50"),
        ("keras.applications:ResNet5", "no application 'ResNet5'. Did you mean ResNet50"),
        ("keras.applications:Zzz", "no application 'Zzz'. Names: ConvNeXtBase, "),
        ("keras.applications:InceptionV3", "InceptionV3 cannot be built: "),
        (
            "no_such_package.models:make",
            "cannot be imported: ModuleNotFoundError: No module named 'no_such_package'",
        ),
        ("own_models:mak", "own_models has no function 'mak'. Did you mean make?"),
        ("own_models:text", "own_models:text returned str, expected a Keras model"),
        ("own_models:wide", r"own_models:wide gives \[1, 4\] for one image, expected \[1, 3\]"),
        ("own_models:named", r"own_models:named gives a dict for one image, expected \[1, 3\]"),
        ("own_models:logits", "own_models:logits does not give probabilities"),
        ("own_models:each", "own_models:each does not give probabilities"),
    ],
)
def test_the_name_of_an_unknown_model_is_an_error(own_models, spec, message):
    own_models.make = _dense
    own_models.text = lambda *_: "model"
    own_models.wide = lambda num_classes, size: _dense(num_classes + 1, size)
    own_models.named = _make_named
    own_models.logits = lambda num_classes, size: _dense(num_classes, size, None)
    own_models.each = lambda num_classes, size: _dense(num_classes, size, "sigmoid")
    with pytest.raises(UsageError, match=message):
        build_model(spec, LabelHead(3), (32, 32))


def test_a_function_that_is_not_there_is_found_before_a_model_is_built():
    with pytest.raises(UsageError, match="No module named 'no_such_package'"):
        check_model("no_such_package.models:make")


def _make_named(num_classes, image_size):
    model = _dense(num_classes, image_size)
    return keras.Model(model.input, {"scores": model.output})


@pytest.mark.parametrize("wrap", [lambda loss: loss, lambda loss: [loss]])
@pytest.mark.parametrize("from_logits", [True, False])
def test_the_loss_of_a_compiled_model_must_take_what_it_gives(own_models, from_logits, wrap):
    def make(num_classes, image_size):
        model = _dense(num_classes, image_size)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=from_logits)
        model.compile("sgd", wrap(loss))
        return model

    own_models.make = make
    options = TrainingOptions(model="own_models:make", image_size=(32, 32))
    if not from_logits:
        assert make_parts(options, LabelHead(3), 1).trained.compiled
        return
    with pytest.raises(UsageError, match="comes compiled with a loss that takes logits"):
        make_parts(options, LabelHead(3), 1)
