"""Trainings with every part of the recipe: resumed, in both loops, on several devices."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from darkroom.errors import OutputError
from darkroom.options.training import TrainingOptions
from darkroom.runtime import progress

from ..histories import EndedError, assert_near, assert_same, end_at
from ..training_process import train_dataset

pytestmark = [pytest.mark.tensorflow, pytest.mark.usefixtures("simple_decoder", "own_models")]

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


@pytest.fixture
def dataset(helpers, write_dataset):
    rows = helpers.make_rows(60)
    dark, light = rows[0::2], rows[1::2]
    return write_dataset({"train": [*dark[:16], *light[:4]], "eval": [*dark[16:20], light[5]]})


def _train(root, run_dir, **values):
    options = TrainingOptions(**{**OPTIONS, **values})
    return train_dataset(root, run_dir, options)


# tests/training/test_resuming.py asks the same of one loop.
@pytest.mark.long
@pytest.mark.parametrize("balance", ["sampling", "weights", "prior"])
def test_a_resumed_training_and_the_other_loop_give_the_same(dataset, tmp_path, balance):
    # With layers that have a random state, and one that is not trained.
    values = {"balance": balance, "model": "own_models:random"}
    straight = _train(dataset, tmp_path / "straight", **values)
    values["loop"] = "custom"
    with pytest.MonkeyPatch.context() as patch:
        end_at(patch, 1, 3)
        with pytest.raises(EndedError):
            _train(dataset, tmp_path / "run", **values)
    assert_same(_train(dataset, tmp_path / "run", **values), straight)


# tests/training/test_placement.py asks the same of weights, without the rest of the recipe.
@pytest.mark.long
@pytest.mark.parametrize(
    ("balance", "loop"),
    [("weights", "fit"), ("sampling", "custom"), ("weights", "custom"), ("prior", "fit")],
)
def test_several_devices_give_what_one_gives(dataset, tmp_path, warm_python, balance, loop):
    # The order of a batch decides which device gets an image, and no sum depends on it.
    values = {**OPTIONS, "balance": balance}
    cases = {
        "one": {**values, "strategy": "one"},
        "two": {**values, "strategy": "mirrored", "loop": loop},
    }
    arguments = [str(dataset), str(tmp_path), json.dumps(cases), "2"]
    assert warm_python.start(SCRIPT, *arguments).wait() == 0
    one, two = (np.load(tmp_path / f"{name}-0.npz") for name in cases)
    assert_near(*(json.loads(str(each["history"])) for each in (two, one)))
    for array in one.files:
        if array.startswith("arr_"):
            np.testing.assert_allclose(two[array], one[array], rtol=1e-3, atol=1e-5)


@pytest.mark.usefixtures("quick_loop")
def test_more_epochs_follow_the_new_plan(dataset, tmp_path, monkeypatch):
    remarks: list[str] = []
    monkeypatch.setattr(progress, "remark", remarks.append)
    values = {"learning_rate": 0.5, "warmup_ratio": 0.0, "model": "own_models:tiny"}
    _train(dataset, tmp_path / "run", **values)
    # A hundredth is left at the end of a plan.
    assert remarks[2].endswith(" rate 0.005")
    # With half as many batches in an epoch, a quarter of the new plan is done.
    remarks.clear()
    _train(dataset, tmp_path / "run", epochs=4, batch_size=8, **values)
    rates = [float(each.partition("rate ")[2]) for each in remarks[0::2]]
    cosine = 0.5 * (1 + np.cos(np.pi * np.array([3, 4]) / 4))
    assert rates == pytest.approx(0.5 * (0.01 + 0.99 * cosine), rel=1e-2)


@pytest.mark.usefixtures("quick_loop")
@pytest.mark.parametrize("change", [{"balance": "weights"}, {"label_smoothing": 0.3}])
def test_epochs_with_another_eval_loss_are_not_compared(dataset, tmp_path, change):
    values = {"model": "own_models:tiny", "epochs": 1}
    _train(dataset, tmp_path / "run", **values)
    name, value = next(iter(change.items()))
    was = OPTIONS.get(name, "none")
    with pytest.raises(OutputError, match=f"another training: {name} was {was}, now {value}"):
        _train(dataset, tmp_path / "run", **{**values, "epochs": 2, **change})
