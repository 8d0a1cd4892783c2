"""A training in phases: the head on a frozen base, then the last blocks, then all."""

from __future__ import annotations

import json
import math
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from darkroom.data.open import open_data
from darkroom.errors import DataError, UsageError
from darkroom.features.networks import efficientnet_lite
from darkroom.input.opening import open_splits
from darkroom.input.pipeline import make_eval_dataset
from darkroom.options.input import InputOptions
from darkroom.options.training import TrainingOptions
from darkroom.training.devices.loops import FitLoop, make_loop
from darkroom.training.devices.placement import make_placement
from darkroom.training.recipe.fine_tuning import (
    build_optimizer,
    choose_trained_layers,
    release_layers,
)
from darkroom.training.state.checkpoints import TrainingState
from darkroom.training.state.course import Phase, TimeBudget
from darkroom.training.state.history import read_exported
from darkroom.training.state.training_run import TrainingRun

from ..conftest import SIZE
from ..histories import EndedError, assert_near, assert_same, end_at
from ..quick_loop import QuickLoop

pytestmark = [pytest.mark.tensorflow, pytest.mark.usefixtures("simple_decoder")]

SCRIPT = Path(__file__).parents[1] / "training_process.py"


def _list_base(model):
    return model.get_layer("efficientnet-lite0").layers


def _find_changed(model, weights):
    """Returns the layers of the base whose weights are not those of a file."""
    network = efficientnet_lite.build_network(SIZE)
    network.load_weights(weights)
    return {
        mine.name
        for mine, given in zip(_list_base(model), network.layers, strict=True)
        for one, two in zip(mine.get_weights(), given.get_weights(), strict=True)
        if not np.array_equal(one, two)
    }


def test_a_loss_is_the_same_by_features_and_by_images_and_without_a_prior(
    tmp_path, train_in, values, dataset, monkeypatch
):
    # The model that is evaluated stays the same.
    monkeypatch.setattr(FitLoop, "train_epoch", lambda *_: None)
    values |= {"export": "last", "balance": "prior", "epochs": 1, "fine_tune_epochs": 1}
    trained = train_in(tmp_path / "run", values)
    assert [entry["phase"] for entry in trained.history] == ["head", "top"]
    assert "prior" not in [layer.name for layer in trained.model.layers]
    source = open_splits(open_data([dataset]).splits)["eval"]
    [(images, labels)] = make_eval_dataset(source, InputOptions(SIZE, batch_size=9))
    losses = -np.log(trained.model(images).numpy()[np.arange(len(labels)), labels])
    expected = np.mean([losses[labels.numpy() == label].mean() for label in (0, 1)])
    losses = [entry["val_loss"] for entry in trained.history]
    assert losses == pytest.approx([expected] * 2, rel=1e-5)


@pytest.mark.usefixtures("without_images")
def test_the_history_goes_on_through_all_phases(tmp_path, train_in, values, weights):
    values |= {"learning_rate": 1e-2, "export": "last"}
    trained = train_in(tmp_path / "run", values)
    assert [entry["epoch"] for entry in trained.history] == [1, 2, 3, 4, 5]
    phases = [entry["phase"] for entry in trained.history]
    assert phases == ["head", "head", "top", "top", "all"]
    assert json.loads((tmp_path / "run" / "history.json").read_text()) == trained.history
    # All phases have trained, but for normalisation, whose statistics are those of the weights.
    assert _find_changed(trained.model, weights) == {"conv_0", "conv_1", "conv_2"}
    assert all(layer.trainable for layer in _list_base(trained.model))
    # What was trained is opened by Keras.
    trained.model.save(tmp_path / "model.keras")
    opened = keras.models.load_model(tmp_path / "model.keras", compile=False)
    images = np.random.default_rng(0).integers(0, 256, (2, *SIZE, 3), dtype=np.uint8)
    np.testing.assert_allclose(opened(images), trained.model(images), rtol=1e-5)


def test_normalisation_is_never_trained(small_network):
    base = efficientnet_lite.build_network(SIZE)
    for phase, expected in (("top", {"conv_2"}), ("all", {"conv_0", "conv_1", "conv_2"})):
        choose_trained_layers(base, phase)
        trained = {layer.name for layer in base.layers if layer.trainable_variables}
        assert trained == expected
    images = np.random.default_rng(0).uniform(0, 255, (2, *SIZE, 3))
    before = base.get_layer("norm_0").get_weights()
    np.testing.assert_allclose(base(images, training=True), base(images, training=False))
    for one, two in zip(base.get_layer("norm_0").get_weights(), before, strict=True):
        np.testing.assert_array_equal(one, two)
    release_layers(base)
    assert len(base.trainable_variables) == 8


@pytest.mark.usefixtures("without_images")
def test_a_training_that_ends_or_stops_in_any_phase_goes_on_as_one_that_did_not(
    tmp_path, train_in, values, weights, notes
):
    values["checkpoint_steps"] = 2
    straight = train_in(tmp_path / "straight", values)
    first = train_in(tmp_path / "run", {**values, "fine_tune_epochs": 0})
    assert [entry["phase"] for entry in first.history] == ["head", "head"]
    assert _find_changed(first.model, weights) == set()
    notes.clear()
    # In the middle of a phase, and at its end.
    for epoch, step in ((2, 3), (3, 6)):
        with pytest.MonkeyPatch.context() as patch:
            end_at(patch, epoch, step)
            with pytest.raises(EndedError):
                train_in(tmp_path / "run", values)
    trained = train_in(tmp_path / "run", values)
    assert [note for note in notes if "after batch" in note] == [
        f"Resumes after batch {place}." for place in ("2 of epoch 3", "6 of epoch 4")
    ]
    assert_same(trained, straight, rel=1e-4)


def _evaluate_to(monkeypatch, losses):
    """Makes the losses of the epochs on the eval split these."""
    left = iter(losses)
    monkeypatch.setattr(QuickLoop, "evaluate", lambda *_: {"loss": next(left)})


@pytest.mark.usefixtures("without_images")
@pytest.mark.long
@pytest.mark.parametrize("best", [1, 5])
def test_the_best_epoch_of_all_phases_is_exported(tmp_path, train_in, values, monkeypatch, best):
    ends = []
    inner = TrainingRun.end_epoch

    def end_epoch(run, *arguments):
        inner(run, *arguments)
        ends.append([each.numpy() for each in run.model.weights])

    monkeypatch.setattr(TrainingRun, "end_epoch", end_epoch)
    _evaluate_to(monkeypatch, [0.1 if n == best else 0.5 for n in range(1, 6)])
    straight = train_in(tmp_path / "run", values)
    assert straight.best_epoch == straight.exported.epoch == best
    expected = ends[best - 1]
    found = straight.model.get_weights()
    for one, two in zip(found[-len(expected) :], expected, strict=True):
        np.testing.assert_array_equal(one, two)
    changed = _find_changed(straight.model, values["weights"])
    assert (changed == set()) == (best == 1)
    # The same from another process, which trains nothing.
    again = train_in(tmp_path / "run", values)
    assert_same(again, straight, rel=1e-4)
    assert len(ends) == 5


@pytest.mark.usefixtures("without_images")
def test_an_epoch_after_a_restart_is_exported_if_it_is_the_best(
    tmp_path, train_in, values, monkeypatch
):
    _evaluate_to(monkeypatch, [0.3, 0.5, 0.5, 0.1, 0.5])
    with pytest.MonkeyPatch.context() as patch:
        end_at(patch, 3, 4)  # in the second epoch of the last layers; the best one is the head's
        with pytest.raises(EndedError):
            train_in(tmp_path / "run", values)
    trained = train_in(tmp_path / "run", values)
    assert trained.exported.epoch == 4
    assert _find_changed(trained.model, values["weights"]) == {"conv_2"}


@pytest.mark.usefixtures("without_images")
def test_the_last_epoch_is_exported_where_it_is_asked_for(tmp_path, train_in, values, monkeypatch):
    _evaluate_to(monkeypatch, [0.1, 0.5, 0.5, 0.5, 0.4])
    values |= {"export": "last"}
    last = train_in(tmp_path / "run", values)
    assert last.exported == (5, 5, 1)
    assert read_exported(str(tmp_path / "run")) == (5, 5, 1)
    assert_same(train_in(tmp_path / "run", values), last, rel=1e-4)
    best = train_in(tmp_path / "run", {**values, "export": "best"})
    assert read_exported(str(tmp_path / "run")) == best.exported == (1, 5, 1)
    assert _find_changed(best.model, values["weights"]) == set()


@pytest.mark.usefixtures("without_images")
def test_a_last_epoch_without_a_finite_loss_is_not_exported(
    tmp_path, train_in, values, monkeypatch
):
    _evaluate_to(monkeypatch, [0.1, math.nan])
    values |= {"fine_tune_epochs": 0, "export": "last"}
    with pytest.raises(DataError, match="val_loss of the last epoch, 2, is not a finite number"):
        train_in(tmp_path / "run", values)


def test_with_a_gpu_a_model_is_fine_tuned(tmp_path, monkeypatch):
    inner, options = tf.config.list_physical_devices, TrainingOptions(model="efficientnet-lite0")

    def choose():
        state = TrainingState.load(str(tmp_path), options, "a", "a", TimeBudget(), (22, 8))
        return state.choose_fine_tuning()

    assert choose() == 0
    monkeypatch.setattr(
        tf.config,
        "list_physical_devices",
        lambda kind=None: ["a GPU"] if kind == "GPU" else inner(kind),
    )
    assert choose() > 0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"fine_tune_epochs": 3}, "fine_tune_epochs is 3, but no base is frozen before"),
        ({"fine_tune_epochs": -1}, "fine_tune_epochs is -1"),
        ({"fit_minutes": 0}, "fit_minutes is 0, expected a number above 0"),
        ({"fit_minutes": math.nan}, "fit_minutes is"),
        ({"export": "all"}, "export is 'all'"),
    ],
)
def test_wrong_options_are_named(values, message):
    with pytest.raises(UsageError, match=message):
        TrainingOptions(**values)


def test_fine_tuning_may_change_pixels_but_not_mix_labels():
    lite = {"model": "efficientnet-lite0"}
    with pytest.raises(UsageError, match="only flip and crop are possible"):
        TrainingOptions(**lite, augment="flip,color")
    assert TrainingOptions(**lite, augment="flip,color", fine_tune_epochs=1)
    with pytest.raises(UsageError, match="does not go with mixup"):
        TrainingOptions(**lite, augment="flip,mixup", fine_tune_epochs=1)


@pytest.fixture
def train_on_two_devices(dataset, tmp_path, values, warm_python):
    """Fine-tunes on two devices, in a process; returns the history.

    Not twice in one process: for each strategy, TensorFlow numbers the sums over devices from the
    start, and takes those of other sizes for the same.
    """
    given = {"network": "small", "epochs": 1, "strategy": "mirrored"}

    def train_now(*phases, **more):
        more["fine_tune_epochs"] = len(phases) - 1
        cases = json.dumps({"run": {**values, **given, **more}})
        done = warm_python.run(SCRIPT, str(dataset), str(tmp_path / more["loop"]), cases, "2")
        assert done.returncode == 0, done.stderr
        history = json.loads(str(np.load(tmp_path / more["loop"] / "run-0.npz")["history"]))
        assert [entry["phase"] for entry in history] == list(phases)
        assert np.isfinite([entry["val_loss"] for entry in history]).all()
        return history

    return train_now


@pytest.mark.long
def test_several_devices_fine_tune_with_mixed_precision(train_on_two_devices):
    train_on_two_devices("head", "top", loop="fit", precision="mixed_float16")


@pytest.mark.long
def test_both_loops_fine_tune_alike_on_several_devices(train_on_two_devices):
    loops = [train_on_two_devices("head", "top", "all", loop=loop) for loop in ("fit", "custom")]
    assert_near(*loops)


def test_both_loops_average_the_weights_alike(training_process):
    images = np.random.default_rng(0).integers(0, 256, (8, 4, 4, 3), np.uint8)
    batches = tf.data.Dataset.from_tensor_slices((images, np.arange(8) % 2)).batch(2)
    options = TrainingOptions(model="efficientnet-lite0", learning_rate=10.0)
    found, last = [], []
    for loop in ("fit", "custom"):
        model = training_process.make_tiny(2, (4, 4))
        model.layers[-1].set_weights([np.eye(3, 2), np.zeros(2)])
        optimizer = build_optimizer(options, Phase("top", 2), 4, averages=True)
        model.compile(optimizer, "sparse_categorical_crossentropy")
        kernel = model.layers[-1].kernel
        make_loop(model, loop, make_placement("one"), 1).train_epoch(
            batches, 0, 4, lambda _, kernel=kernel: last.append(kernel.numpy())
        )
        found.append(kernel.numpy())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)
    # The weights of the last step are others.
    assert np.abs(found[1] - last[-1]).max() > 1e-3
