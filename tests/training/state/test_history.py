"""Which epoch of a training is the best, and how that is kept."""

from __future__ import annotations

import json
import math

import pytest

from darkroom.errors import DataError
from darkroom.options.training import TrainingOptions
from darkroom.training.state.facts import collect_facts
from darkroom.training.state.history import (
    Exported,
    find_best_epoch,
    format_exported,
    read_exported,
    write_best_epoch,
    write_history,
)


def _make_history(*losses):
    return [{"epoch": n, "val_loss": loss} for n, loss in enumerate(losses, start=1)]


@pytest.mark.parametrize(
    ("losses", "best"),
    [
        ((), 0),
        ((0.5,), 1),
        ((0.5, 0.3, 0.4), 2),
        ((0.5, 0.3, 0.3), 2),
        ((math.nan, 0.3, 0.2), 3),
        ((math.inf, 0.3, math.nan), 2),
        ((-1.0, -math.inf), 1),
        ((math.nan, math.inf), 0),
    ],
)
def test_the_first_epoch_with_the_lowest_finite_loss_is_the_best(losses, best):
    assert find_best_epoch(_make_history(*losses)) == best


def test_an_exported_table_is_read_as_it_was_written(tmp_path):
    history = _make_history(0.5, 0.3, 0.4)
    write_history(str(tmp_path), history)
    assert read_exported(str(tmp_path)) is None
    (tmp_path / "best").mkdir()
    write_best_epoch(str(tmp_path), history)
    assert json.loads((tmp_path / "best" / "epoch.json").read_text()) == history[1]
    assert read_exported(str(tmp_path)) == (2, 3, 2)
    write_best_epoch(str(tmp_path), history, 2)
    assert read_exported(str(tmp_path)) == (2, 3, 2)
    write_best_epoch(str(tmp_path), history, 3)
    assert read_exported(str(tmp_path)) == (3, 3, 2)


def test_it_is_said_which_epoch_is_exported():
    assert format_exported(Exported(2, 3, 2)) == "2 of 3 (lowest val_loss)"
    assert format_exported(Exported(3, 3, 2)) == "3 of 3 (the last; 2 has the lowest val_loss)"


@pytest.mark.parametrize("name", ["history.json", "best/epoch.json"])
@pytest.mark.parametrize("text", ["", "{", "3", "\xff", "[" * 100_000])
def test_a_damaged_history_is_named(tmp_path, name, text):
    write_history(str(tmp_path), _make_history(0.5))
    (tmp_path / "best").mkdir()
    write_best_epoch(str(tmp_path), _make_history(0.5))
    (tmp_path / name).write_text(text, "latin-1")
    with pytest.raises(DataError, match=f"{tmp_path}/{name} is damaged"):
        read_exported(str(tmp_path))


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("options", "phases", "chosen"),
    [
        ({"model": "efficientnet-lite0"}, ["head", "head"], ("imagenet", 0, 10)),
        ({"model": "efficientnet-lite0"}, ["head", "top", "all"], ("imagenet", 2, 10)),
        (
            {"model": "efficientnet-lite0", "weights": "a.h5", "export": "last"},
            ["head"],
            ("a.h5", 0, 0),
        ),
        (
            {"model": "efficientnet-lite0", "fine_tune_epochs": 6, "early_stopping_patience": 3},
            ["head", "top"],
            ("imagenet", 6, 3),
        ),
        ({"model": "small_cnn"}, ["", ""], (None, 0, 0)),
    ],
)
def test_the_recipe_has_what_the_training_chose(tmp_path, options, phases, chosen):
    history = [{"epoch": n, "phase": phase} for n, phase in enumerate(phases, 1)]
    write_history(str(tmp_path), history)
    made = TrainingOptions(**options)
    recipe = collect_facts(str(tmp_path), made, 1, {}).recipe
    names = ("weights", "fine_tune_epochs", "early_stopping_patience")
    assert tuple(recipe[name] for name in names) == chosen
    others = {name: value for name, value in made.to_dict().items() if name not in names}
    assert {name: value for name, value in recipe.items() if name not in names} == others
