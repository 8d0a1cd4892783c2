"""Trainings of TFX's Trainer: with more epochs, a later run goes on where an earlier one ended."""

from __future__ import annotations

import json

import keras
import numpy as np
import pytest

from darkroom.evaluation.report.facts import FACTS_FILE, read_facts
from darkroom.options.training import TrainingOptions
from darkroom.training import trainer
from darkroom.training.trainer import run_fn

from .conftest import make_fn_args

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.usefixtures("own_models", "quick_loop", "quick_export"),
]


@pytest.fixture
def train(helpers, write_dataset, tmp_path):
    """Trains as TFX's Trainer does; returns the folder of the run."""
    rows = helpers.make_rows(40)
    root = write_dataset({"train": rows[:28], "eval": rows[28:]})

    def run(name: str, epochs: int, kept: str = "kept", **options: object):
        folder = tmp_path / name
        values = {
            "image_size": (8, 8),
            "batch_size": 8,
            "model": "own_models:random",
            "learning_rate": 0.01,
            "epochs": epochs,
            # Another schedule depends on the number of epochs.
            "schedule": "constant",
            "warmup_ratio": 0.0,
        }
        chosen = TrainingOptions(**{**values, **options})
        config = {"darkroom": chosen.to_dict(), "checkpoint_dir": str(tmp_path / kept)}
        run_fn(make_fn_args(root, folder, config))
        return folder / "run"

    return run


def _read(folder):
    weights = keras.models.load_model(folder / "model.keras", compile=False).get_weights()
    return json.loads((folder / "history.json").read_text()), weights


def test_more_epochs_go_on_and_end_with_the_same_weights(train, notes, tmp_path):
    train("first", 2)
    notes.clear()
    resumed, whole = _read(train("second", 5)), _read(train("alone", 5, "elsewhere"))
    assert notes[:2] == [
        "Resumes from 2 epochs, which an earlier run trained.",
        "Resumes after epoch 2.",
    ]
    for found, expected in zip(resumed[0], whole[0], strict=True):
        assert found == pytest.approx(expected, rel=1e-5)
    for found, expected in zip(resumed[1], whole[1], strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    # One folder is kept of each training; what the first run made stays whole.
    assert len(list((tmp_path / "kept").iterdir())) == 1
    assert len(_read(tmp_path / "first" / "run")[0]) == 2


def test_what_is_not_the_same_with_more_epochs_is_trained_from_the_start(train, notes):
    train("first", 2)
    notes.clear()
    assert len(_read(train("fewer", 1))[0]) == 1
    assert len(_read(train("other", 3, seed=5))[0]) == 3
    assert not [note for note in notes if "Resumes" in note or "Goes on" in note]


def test_a_training_that_was_stopped_goes_on_also_towards_more_epochs(
    train, notes, monkeypatch, tmp_path
):
    def stop(*_, **__):
        raise OSError("stop")

    with monkeypatch.context() as patch:
        patch.setattr(trainer.copies, "copy_folder", stop)
        with pytest.raises(OSError, match="stop"):
            train("first", 2)
    notes.clear()
    history, _ = _read(train("second", 2))
    assert notes[0] == "Epoch 2 was the last one: nothing is left to train."
    assert len(history) == 2
    assert len(_read(train("third", 3))[0]) == 3


def test_what_a_later_run_goes_on_from_is_on_the_disk_once(train, tmp_path):
    made = train("first", 1)
    [kept] = (tmp_path / "kept").iterdir()
    inside = {str(path.relative_to(kept)) for path in kept.rglob("*") if path.is_file()}
    copied = {str(path.relative_to(made)) for path in made.rglob("*") if path.is_file()}
    only_kept = {name.partition("-")[0].partition(".")[0] for name in inside - copied}
    assert only_kept == {"checkpoints/checkpoint", "checkpoints/ckpt", "best/weights", "done"}
    assert {"history.json", "model.keras", "best/epoch.json"} <= copied
    assert any(name.startswith("tensorboard/") for name in copied)
    # The copy says how its model was made.
    facts = read_facts(str(made), FACTS_FILE)
    assert (facts.exported_epoch, len(facts.history)) == (1, 1)
    assert facts.recipe["model"] == "own_models:random"
    assert [part["records"] for part in facts.data["train"]] == [28]
    assert facts.input["waiting_share"] >= 0
    assert "tensorflow" in facts.code
    # A file of the user's is not deleted.
    (kept / "notes.txt").write_text("mine")
    train("second", 1)
    assert (kept / "notes.txt").read_text() == "mine"
