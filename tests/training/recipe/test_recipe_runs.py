"""Trainings with every part of the recipe: resumed, in both loops, on several devices."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from darkroom.data.open import open_data
from darkroom.errors import OutputError
from darkroom.input.opening import open_splits
from darkroom.options.training import TrainingOptions
from darkroom.runtime import progress

from ..histories import EndedError, assert_same, end_at
from ..training_process import train_dataset

pytestmark = pytest.mark.tensorflow

SCRIPT = Path(__file__).parents[1] / "training_process.py"
# 20 records in batches of 4: several devices would leave out what does not fill a batch.
OPTIONS = {
    "image_size": (8, 8),
    "model": "own_models:plain",
    "batch_size": 4,
    "epochs": 2,
    "learning_rate": 0.05,
    "checkpoint_steps": 2,
    "weight_decay": 0.1,
    "clip_norm": 0.05,
    "label_smoothing": 0.1,
    "warmup_ratio": 0.3,
    "schedule": "cosine",
}


@pytest.fixture(autouse=True)
def own_models(training_process, monkeypatch):
    monkeypatch.setitem(sys.modules, "own_models", None)
    training_process.register_models()


@pytest.fixture
def dataset(helpers, write_dataset):
    rows = helpers.make_rows(60)
    dark, light = rows[0::2], rows[1::2]
    return write_dataset({"train": [*dark[:16], *light[:4]], "eval": [*dark[16:20], light[5]]})


def _train(root, run_dir, **values):
    options = TrainingOptions(**{**OPTIONS, **values})
    return train_dataset(root, run_dir, options)


def _train_interrupted(root, run_dir, epoch, step, **values):
    with pytest.MonkeyPatch.context() as patch:
        end_at(patch, epoch, step)
        with pytest.raises(EndedError):
            _train(root, run_dir, **values)


@pytest.mark.slow
@pytest.mark.parametrize("balance", ["weights", "sampling", "prior"])
def test_a_resumed_training_and_the_other_loop_give_the_same(dataset, tmp_path, balance):
    straight = _train(dataset, tmp_path / "straight", balance=balance)
    for epoch, step in ((0, 3), (1, 2)):
        _train_interrupted(dataset, tmp_path / "run", epoch, step, balance=balance, loop="custom")
    assert_same(_train(dataset, tmp_path / "run", balance=balance, loop="custom"), straight)


@pytest.mark.slow
def test_several_devices_give_what_one_gives(dataset, tmp_path, warm_python):
    # The order of a batch decides which device gets an image, and no sum depends on it.
    values = {**OPTIONS, "balance": "weights"}
    cases = {
        "single": {**values, "strategy": "one"},
        "fit": {**values, "strategy": "mirrored"},
        "custom": {**values, "strategy": "mirrored", "loop": "custom"},
        "sampled": {**values, "strategy": "one", "balance": "sampling"},
        "shared": {**values, "strategy": "mirrored", "balance": "sampling"},
        "prior": {**values, "strategy": "one", "balance": "prior"},
        "priors": {**values, "strategy": "mirrored", "balance": "prior"},
    }
    arguments = [str(dataset), str(tmp_path), json.dumps(cases), "2"]
    assert warm_python.start(SCRIPT, *arguments).wait() == 0
    found = {name: np.load(tmp_path / f"{name}-0.npz") for name in cases}
    pairs = (("fit", "single"), ("custom", "single"), ("shared", "sampled"), ("priors", "prior"))
    for name, other in pairs:
        one, two = found[name], found[other]
        histories = zip(*(json.loads(str(each["history"])) for each in (one, two)), strict=True)
        for left, right in histories:
            assert left == pytest.approx(right, rel=1e-4)
        for array in one.files:
            if array.startswith("arr_"):
                np.testing.assert_allclose(one[array], two[array], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("balance", ["sampling", "prior"])
def test_with_a_balance_every_label_counts_the_same_in_the_eval_loss(dataset, tmp_path, balance):
    values = {"epochs": 1, "label_smoothing": 0.0}
    trained = _train(dataset, tmp_path / "run", balance=balance, **values)
    opened = open_splits(open_data([dataset]).splits)["eval"]
    from darkroom.input.pipeline import make_eval_dataset

    options = TrainingOptions(**OPTIONS).input_options
    [(images, labels)] = make_eval_dataset(opened, options).unbatch().batch(9)
    losses = -np.log(trained.model(images).numpy()[np.arange(5), labels])
    expected = np.mean([losses[labels.numpy() == label].mean() for label in (0, 1)])
    assert trained.history[0]["val_loss"] == pytest.approx(expected, rel=1e-4)


def test_more_epochs_follow_the_new_plan(dataset, tmp_path, monkeypatch):
    remarks: list[str] = []
    monkeypatch.setattr(progress, "remark", remarks.append)
    values = {"learning_rate": 0.5, "warmup_ratio": 0.0, "model": "own_models:tiny"}
    _train(dataset, tmp_path / "run", **values)
    # A hundredth is left at the end of a plan.
    assert "rate 0.005," in remarks[2]
    # With half as many batches in an epoch, a quarter of the new plan is done.
    remarks.clear()
    _train(dataset, tmp_path / "run", epochs=4, batch_size=8, **values)
    rates = [float(each.partition("rate ")[2].partition(",")[0]) for each in remarks[0::2]]
    cosine = 0.5 * (1 + np.cos(np.pi * np.array([3, 4]) / 4))
    assert rates == pytest.approx(0.5 * (0.01 + 0.99 * cosine), rel=1e-2)


@pytest.mark.parametrize("change", [{"balance": "weights"}, {"label_smoothing": 0.3}])
def test_epochs_with_another_eval_loss_are_not_compared(dataset, tmp_path, change):
    values = {"model": "own_models:tiny", "epochs": 1}
    _train(dataset, tmp_path / "run", **values)
    name, value = next(iter(change.items()))
    was = OPTIONS.get(name, "none")
    with pytest.raises(OutputError, match=f"another training: {name} was {was}, now {value}"):
        _train(dataset, tmp_path / "run", **{**values, "epochs": 2, **change})
