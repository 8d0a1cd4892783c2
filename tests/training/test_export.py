from __future__ import annotations

import os

import keras
import numpy as np
import pytest
import tensorflow as tf

from darkroom.errors import StorageError, UsageError
from darkroom.input.graph import decode
from darkroom.targets.learned import Learned, decode_learned
from darkroom.training.export import export_model

from ..pictures import encode

pytestmark = [pytest.mark.tensorflow, pytest.mark.usefixtures("simple_decoder")]

SIZE = (6, 5)
LABELS = ["naïve", "007", "big cat"]


def _brightest_channel():
    inputs = keras.Input((*SIZE, 3), dtype="uint8")
    means = keras.layers.GlobalAveragePooling2D()(keras.layers.Rescaling(1 / 255)(inputs))
    return keras.Model(inputs, keras.layers.Softmax()(means))


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("served") / "model"
    export_model(_brightest_channel(), LABELS, SIZE, str(directory))
    return directory


@pytest.fixture(scope="module")
def served(directory):
    return tf.saved_model.load(str(directory))


def test_label_score_and_scores(served):
    images = [
        encode(np.full((9, 9, 3), color, np.uint8), format_)
        for color, format_ in [((0, 0, 255), "PNG"), ((255, 0, 0), "PNG"), ((0, 255, 0), "JPEG")]
    ]
    answer = served.signatures["serving_default"](image_bytes=tf.constant(images))
    assert set(answer) == {"label", "score", "scores", "error"}
    assert [label.decode() for label in answer["label"].numpy()] == ["big cat", "naïve", "007"]
    assert answer["scores"].shape == (3, 3)
    assert answer["scores"].dtype == answer["score"].dtype == tf.float32
    np.testing.assert_allclose(answer["scores"].numpy().sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_array_equal(answer["score"], answer["scores"].numpy().max(axis=1))
    assert answer["error"].numpy().tolist() == [b""] * 3


@pytest.mark.parametrize("kind", ["label", "labels"])
def test_an_image_that_is_refused_has_no_labels_and_no_scores(tmp_path, monkeypatch, kind):
    def describe(encoded):
        return tf.where(tf.equal(encoded, "RIFF"), "a WebP", "")

    monkeypatch.setattr(decode, "describe_form", describe)
    # The last one reaches the threshold with any score.
    thresholds = (0.5, 0.5, 0.0) if kind == "labels" else ()
    learned = Learned(kind, tuple(LABELS), thresholds)
    export_model(_brightest_channel(), learned, SIZE, str(tmp_path / "model"))
    red = encode(np.full((9, 9, 3), (255, 0, 0), np.uint8))
    serve = tf.saved_model.load(str(tmp_path / "model")).signatures["serving_default"]
    answer = {n: each.numpy() for n, each in serve(image_bytes=tf.constant([red, b"RIFF"])).items()}
    reason = b"The image is a WebP, which this model does not read."
    assert answer.pop("error").tolist() == [b"", reason]
    for taken, refused in answer.values():
        assert {*np.ravel(refused).tolist()} <= {b"", 0.0}
        assert {*np.ravel(taken).tolist()} - {b"", 0.0}


def test_no_images_give_no_answers(served):
    answer = served.signatures["serving_default"](image_bytes=tf.constant([], tf.string))
    assert answer["label"].shape == (0,)
    assert answer["scores"].shape == (0, 3)


def test_signatures_and_the_label_map_as_asset(served, directory):
    assert set(served.signatures) == {"serving_default", "serving_examples"}
    for name, argument in (("serving_default", "image_bytes"), ("serving_examples", "examples")):
        (spec,) = served.signatures[name].structured_input_signature[1].values()
        assert (spec.name, spec.shape, spec.dtype) == (argument, tf.TensorShape([None]), tf.string)
    assert sorted(os.listdir(directory / "assets")) == ["labels.txt", "target.json"]
    learned = decode_learned((directory / "assets" / "target.json").read_bytes())
    assert learned == Learned("label", ("naïve", "007", "big cat"))
    text = (directory / "assets" / "labels.txt").read_text("utf-8")
    assert text == "naïve\n007\nbig cat\n"


def test_optimizer_is_not_exported(tmp_path):
    pixels = keras.Input((*SIZE, 3), dtype="uint8")
    flat = keras.layers.Flatten()(keras.layers.Rescaling(1 / 255)(pixels))
    model = keras.Model(pixels, keras.layers.Dense(3, activation="softmax")(flat))
    model.compile("adam", "sparse_categorical_crossentropy")
    model.optimizer.build(model.trainable_variables)
    export_model(model, LABELS, SIZE, str(tmp_path / "model"))
    saved = tf.train.list_variables(str(tmp_path / "model" / "variables" / "variables"))
    shapes = [shape for name, shape in saved if name.startswith("model_variables")]
    assert sorted(shapes) == [[3], [90, 3]]
    assert len(saved) == 3  # The third is the checkpoint's own object graph.


def _dense(activation, dtype="float32"):
    pixels = keras.Input((*SIZE, 3), dtype="uint8")
    means = keras.layers.GlobalAveragePooling2D()(keras.layers.Rescaling(1 / 16)(pixels))
    dense = keras.layers.Dense(3, activation, kernel_initializer="identity", dtype=dtype)
    return keras.Model(pixels, dense(means))


def test_logits_are_refused_and_from_logits_adds_a_softmax(tmp_path):
    logits = _dense(None)
    with pytest.raises(UsageError, match=r"does not give probabilities: \[.*from_logits=True"):
        export_model(logits, LABELS, SIZE, str(tmp_path / "model"))
    assert not (tmp_path / "model").exists()
    export_model(logits, LABELS, SIZE, str(tmp_path / "model"), from_logits=True)
    served = tf.saved_model.load(str(tmp_path / "model"))
    pixels = np.random.default_rng(3).integers(0, 256, (4, *SIZE, 3), np.uint8)
    expected = tf.nn.softmax(logits(pixels)).numpy()
    np.testing.assert_allclose(served.classify(tf.constant(pixels)), expected, rtol=1e-6)
    image = encode(pixels[0])
    answer = served.signatures["serving_default"](image_bytes=tf.constant([image]))
    np.testing.assert_allclose(answer["scores"][0], expected[0], rtol=1e-6)


def test_what_is_neither_probabilities_nor_logits_is_refused(tmp_path):
    with pytest.raises(UsageError, match="does not give probabilities"):
        export_model(_dense("sigmoid"), LABELS, SIZE, str(tmp_path / "model"))


def test_probabilities_are_not_taken_for_logits(tmp_path):
    with pytest.raises(UsageError, match=r"gives probabilities: .*Leave out from_logits"):
        export_model(_dense("softmax"), LABELS, SIZE, str(tmp_path / "model"), from_logits=True)


def test_probabilities_of_half_the_precision_add_up_to_one(tmp_path):
    model = _dense("softmax", "bfloat16")
    export_model(model, LABELS, SIZE, str(tmp_path / "model"))
    pixels = np.random.default_rng(3).integers(0, 256, (64, *SIZE, 3), np.uint8)
    pixels *= np.array([1, 0, 0], np.uint8)
    given = tf.cast(model(pixels), tf.float32)
    served = tf.saved_model.load(str(tmp_path / "model"))
    found = served.classify(tf.constant(pixels))
    np.testing.assert_allclose(np.sum(found, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(found, given, atol=0.01)


def test_an_error_without_a_text_names_the_folder(tmp_path, monkeypatch):
    def save(*given, **named):
        raise tf.errors.NotFoundError(None, None, "")

    monkeypatch.setattr(tf.saved_model, "save", save)
    with pytest.raises(StorageError, match=r"The model cannot be written to .*model: NotFound"):
        export_model(_brightest_channel(), LABELS, SIZE, str(tmp_path / "model"))
