"""The search of `darkroom train --tune`: what is tried, and what a stopped search keeps."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest

from darkroom.errors import DataError
from darkroom.options.training import TrainingOptions
from darkroom.runtime import progress
from darkroom.runtime.display import PlainProgress
from darkroom.runtime.notebook import CellProgress
from darkroom.training.tuning.search import Trials, find_best
from darkroom.training.tuning.space import make_space

pytestmark = pytest.mark.tensorflow
pytest.importorskip("keras_tuner")

OPTIONS = TrainingOptions(learning_rate=1e-3, augment="flip")
PLAN = {"data": ["abc"]}


class Trainer:
    """Scores options by a formula, and counts the trainings."""

    def __init__(self, stop_at: int = 0) -> None:
        self.tried, self.options, self._stop_at = [], [], stop_at

    def __call__(self, options, folder):
        if len(self.tried) + 1 == self._stop_at:
            raise KeyboardInterrupt
        self.tried.append((options.learning_rate, options.augment))
        self.options.append(options)
        score = 0.5 + (options.augment == "crop,flip") * 0.2 - abs(options.learning_rate - 5e-3)
        return score, 2


def search(folder, number, trainer=None, plan=PLAN, options=OPTIONS):
    trainer = trainer or Trainer()
    trials = Trials(str(folder), plan, options).search(number, trainer)
    return [(each.values["learning_rate"], each.values["augment"]) for each in trials], trainer


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "tuning"
    place.mkdir()
    return place


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A search whose last trial KerasTuner chooses by the scores, which takes it seconds."""
    folder = tmp_path_factory.mktemp("whole")
    return *search(folder, 8), folder


def test_the_first_trial_has_the_given_options_and_all_are_in_the_space(whole):
    tried, trainer, _ = whole
    assert tried == trainer.tried
    assert tried[0] == (1e-3, "flip")
    assert len(set(tried)) == 8
    space = make_space(OPTIONS)
    for rate, augment in tried:
        assert space["learning_rate"]["least"] <= rate <= space["learning_rate"]["greatest"]
        assert augment in space["augment"]["choices"]
    for name in ("label_smoothing", "weight_decay", "batch_size"):
        found = {getattr(each, name) for each in trainer.options}
        assert len(found) > 1
        assert found <= set(space[name]["choices"])
    # On a linear scale, one of ten would be below the given rate.
    assert sum(rate < 1e-3 for rate, _ in tried[1:7]) >= 2


@pytest.mark.parametrize(
    ("values", "name", "choices"),
    [
        ({"weight_decay": 0.3}, "weight_decay", [0.0, 0.001, 0.01, 0.1, 0.3]),
        ({"label_smoothing": 0.2}, "label_smoothing", [0.0, 0.05, 0.1, 0.2]),
        ({"batch_size": 1}, "batch_size", [1, 2]),
        ({"augment": "crop"}, "augment", ["crop", "crop,flip", "flip", "flip,color=0.2"]),
        ({"model": "efficientnet-lite0"}, "augment", ["crop,flip", "flip", "none"]),
        # It may come compiled with a loss that takes no vectors.
        ({"model": "own:make"}, "augment", ["crop,flip", "flip", "flip,color=0.2"]),
    ],
)
def test_the_space_has_what_the_user_has_set_and_what_is_possible(values, name, choices):
    found = make_space(TrainingOptions(**values))[name]["choices"]
    assert found[: len(choices)] == choices
    has_mixup = any("mixup" in str(each) for each in found)
    assert has_mixup == (name == "augment" and "model" not in values)


def _train_two_epochs(options, place):
    with progress.step("Training"), progress.step("epoch 1/2"):
        progress.advance(3, 8, "batches", detail="loss 0.5")
        progress.remark("loss 0.4")
        progress.note("Fine-tuning would take a minute.")
    return (0.75, 2) if options.learning_rate == 1e-3 else (0.0, 0)


def _check_lines(said):
    first, second = said.splitlines()
    values = "augment flip, label_smoothing 0, weight_decay 0.01, batch_size 16"
    found = f"val_accuracy 0.7500 in epoch 2: learning_rate 0.001, {values}, the best so far"
    assert re.fullmatch(rf"Trial 1/2 done in \S+ s, {found}", first)
    assert re.match(r"Trial 2/2 done in \S+ s, the loss was not a finite number: learn", second)


def test_a_trial_is_one_line_of_a_log(folder):
    stream = io.StringIO()
    with progress.use(PlainProgress(stream, 0)):
        Trials(str(folder), PLAN, OPTIONS).search(2, _train_two_epochs)
    _check_lines(stream.getvalue())


def test_a_notebook_shows_where_the_trial_is(folder):
    shown = []
    with progress.use(CellProgress(lambda data, _: shown.append(data["text/plain"]), 0)):
        Trials(str(folder), PLAN, OPTIONS).search(2, _train_two_epochs)
    assert "Trial 1/2 Training" in shown
    assert "Trial 1/2 epoch 1/2" in shown
    assert "Trial 1/2 epoch 1/2 3/8 batches, loss 0.5" in shown
    second, first = shown[-1].splitlines()
    _check_lines(f"{first}\n{second}")


def test_a_stopped_search_goes_on_with_the_trial_where_it_stopped(folder, whole):
    tried, _, expected = whole
    first = Trainer(stop_at=5)
    with pytest.raises(KeyboardInterrupt):
        search(folder, 8, first)
    rest, trainer = search(folder, 8)
    assert rest == tried
    assert first.tried == tried[:4]
    assert trainer.tried == tried[4:]
    assert (folder / "trials.json").read_text() == (expected / "trials.json").read_text()


def test_other_data_or_options_start_again(folder):
    search(folder, 3)
    assert len(search(folder, 3, plan={"data": ["abd"]})[1].tried) == 3
    options = TrainingOptions(learning_rate=1e-3, augment="flip", seed=1)
    again, trainer = search(folder, 3, plan={"data": ["seed 1"]}, options=options)
    assert len(trainer.tried) == 3
    assert again[1:] != search(folder, 3)[0][1:]


def test_the_file_says_what_was_tried_and_in_which_space(folder):
    search(folder, 3)
    saved = json.loads((folder / "trials.json").read_text())
    assert saved["plan"]["space"] == make_space(OPTIONS)
    assert [each["trial"] for each in saved["trials"]] == [1, 2, 3]
    assert saved["trials"][0] == {
        "trial": 1,
        "values": {
            "learning_rate": 1e-3,
            "augment": "flip",
            "label_smoothing": 0.0,
            "weight_decay": 0.01,
            "batch_size": 16,
        },
        "score": pytest.approx(0.496),
        "epoch": 2,
    }


def test_a_damaged_file_is_reported(folder):
    (folder / "trials.json").write_text('{"plan": ')
    with pytest.raises(DataError, match=r"trials\.json is damaged"):
        search(folder, 3)


def test_the_best_trial_is_the_first_of_equals(folder):
    trials = Trials(str(folder), PLAN, OPTIONS).search(4, lambda options, place: (0.5, 1))
    assert find_best(trials).trial == 1


def test_folders_of_trials_are_deleted(folder):
    def train(options, place):
        (Path(place) / "checkpoints").mkdir(parents=True)
        (Path(place) / "checkpoints" / "ckpt-1.index").write_bytes(b"x")
        return 0.5, 1

    Trials(str(folder), PLAN, OPTIONS).search(2, train)
    assert [path.name for path in folder.iterdir()] == ["trials.json"]
