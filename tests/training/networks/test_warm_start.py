from __future__ import annotations

import json
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf

from darkroom.errors import DataError, UsageError
from darkroom.targets.label.head import LabelHead
from darkroom.training.export import export_model
from darkroom.training.models import build_model, check_model
from darkroom.training.networks.weights import find_state_file

pytestmark = [pytest.mark.tensorflow, pytest.mark.usefixtures("simple_decoder")]

SIZE = (8, 8)
LABELS = ["cat", "dog", "owl"]
IMAGES = np.random.default_rng(0).integers(0, 256, (4, *SIZE, 3), np.uint8)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A model, and a folder of the training that exported it."""
    folder = tmp_path_factory.mktemp("made")
    model = build_model("small_cnn", LabelHead(3), SIZE)
    for layer in model.layers:
        layer.set_weights([each + 0.1 for each in layer.get_weights()])
    export_model(model, LABELS, SIZE, str(folder / "model"))
    plan = {"options": {"model": "small_cnn"}, "data": []}
    (folder / "training.json").write_text(json.dumps({"plan": plan, "result": {}}))
    return model, folder


@pytest.fixture
def earlier(made, tmp_path):
    """That model, and a copy of the folder, whose name is like a pattern."""
    model, folder = made
    return model, shutil.copytree(folder, tmp_path / "run[1]")


def test_a_model_starts_from_all_weights_of_one_with_the_same_labels(earlier, notes):
    model, folder = earlier
    started = build_model("small_cnn", LabelHead(3), SIZE, str(folder), LABELS)
    np.testing.assert_array_equal(started(IMAGES, training=False), model(IMAGES, training=False))
    assert notes == [f"Starts from the weights of {folder}."]


@pytest.mark.parametrize("labels", [["cat", "dog"], ["dog", "cat", "owl"], ["a", "b", "c", "d"]])
def test_other_labels_get_a_new_head(earlier, notes, labels):
    model, folder = earlier
    started = build_model("small_cnn", LabelHead(len(labels)), SIZE, str(folder), labels)
    assert notes == [
        f"Starts from the weights of {folder}, with a new head, because its labels are others."
    ]
    for mine, before in zip(started.layers[:-1], model.layers[:-1], strict=True):
        for one, two in zip(mine.get_weights(), before.get_weights(), strict=True):
            np.testing.assert_array_equal(one, two)
    # The bias of a new head is zero.
    np.testing.assert_array_equal(started.layers[-1].get_weights()[1], np.zeros(len(labels)))
    assert started(IMAGES).shape == (4, len(labels))


def test_a_training_of_another_model_is_an_error(earlier):
    _, folder = earlier
    name = "keras.applications:MobileNetV2"
    with pytest.raises(UsageError, match=f"a training of small_cnn, but the model is {name}"):
        check_model(name, str(folder))


def test_a_training_with_other_layers_is_an_error(earlier):
    _, folder = earlier
    with pytest.raises(UsageError, match="do not fit small_cnn: it has other layers"):
        build_model("small_cnn", LabelHead(3), (32, 32), str(folder), LABELS)


def test_a_folder_without_a_training_is_an_error(tmp_path):
    with pytest.raises(UsageError, match="a folder without a finished training") as caught:
        check_model("small_cnn", str(tmp_path))
    assert "--checkpoint-dir" in caught.value.hint


def test_weights_that_are_not_finite_are_an_error(earlier):
    model, folder = earlier
    broken = keras.models.clone_model(model)
    broken.layers[-1].set_weights([each * np.nan for each in model.layers[-1].get_weights()])
    export_model(broken, LABELS, SIZE, str(folder / "model"))
    with pytest.raises(DataError, match="variables has numbers that are not finite"):
        build_model("small_cnn", LabelHead(3), SIZE, str(folder), LABELS)


def test_damaged_files_of_a_training_are_an_error(earlier):
    _, folder = earlier
    [data] = (folder / "model" / "variables").glob("variables.data-*")
    data.write_bytes(data.read_bytes()[:100])
    with pytest.raises(DataError, match=r"variables is damaged: IndexError"):
        build_model("small_cnn", LabelHead(3), SIZE, str(folder), LABELS)
    (folder / "model" / "variables" / "variables.index").write_bytes(b"no index")
    with pytest.raises(DataError, match=r"variables is damaged"):
        build_model("small_cnn", LabelHead(3), SIZE, str(folder), LABELS)
    (folder / "training.json").write_text('{"plan": 5}')
    with pytest.raises(DataError, match=r"training\.json is damaged"):
        build_model("small_cnn", LabelHead(3), SIZE, str(folder), LABELS)


def test_an_error_of_the_machine_is_not_a_damaged_training(earlier, monkeypatch):
    def fail(path):
        raise tf.errors.ResourceExhaustedError(None, None, "out of memory")

    monkeypatch.setattr(tf.train, "load_checkpoint", fail)
    with pytest.raises(tf.errors.ResourceExhaustedError):
        build_model("small_cnn", LabelHead(3), SIZE, str(earlier[1]), LABELS)


def test_a_cache_notices_that_a_training_was_done_again(earlier, tmp_path):
    _, folder = earlier
    assert find_state_file(str(folder)) == f"{folder}/training.json"
    assert find_state_file(str(tmp_path / "w.h5")) == str(tmp_path / "w.h5")
