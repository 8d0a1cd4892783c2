"""`darkroom.train`: the command `darkroom train`, as a function."""

from __future__ import annotations

import json

import pytest

import darkroom
from darkroom.cli import main
from darkroom.errors import DataError, UsageError
from darkroom.options.training import TrainingFields, TrainingOptions
from darkroom.training import train

from ..html_page import Page
from ..records import make_rows, write_records
from ..signatures import call, find_differences
from .conftest import use_quick_loop

pytestmark = [pytest.mark.tensorflow, pytest.mark.usefixtures("simple_decoder", "own_models")]

OPTIONS = {"image_size": (8, 8), "batch_size": 8, "augment": "none", "model": "own_models:tiny"}


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    rows = make_rows(40)
    splits = {"train": rows[:20], "eval": rows[20:30], "test": rows[30:]}
    return write_records(tmp_path_factory.mktemp("records"), splits)


@pytest.fixture(scope="module")
def trained(records, training_process, tmp_path_factory):
    """A training of two epochs, and its result."""
    training_process.register_models()
    with pytest.MonkeyPatch.context() as patch:
        use_quick_loop(patch)
        return darkroom.train(records, tmp_path_factory.mktemp("run"), epochs=2, **OPTIONS)


def test_the_arguments_are_those_of_the_options():
    names = ["model", "image_size", "epochs", "batch_size", "learning_rate", "augment"]
    assert find_differences(darkroom.train, TrainingFields, names=names) == []


def test_another_model_by_name_has_an_image_size_that_fits(tmp_path, monkeypatch):
    """A size that the options have chosen is not one that was given."""
    begun = []
    monkeypatch.setattr(
        train, "train_datasets", lambda data, options, *_, **values: begun.append(options)
    )
    for options in (TrainingOptions(seed=3), TrainingOptions(seed=3, image_size=(64, 64))):
        darkroom.train("records", tmp_path, model="efficientnet-lite0", options=options)
    assert [(each.image_size, each.seed) for each in begun] == [((224, 224), 3), ((64, 64), 3)]


def test_the_function_and_the_command_leave_the_same(records, trained, capsys):
    flags = ["--image-size=8", "--batch-size=8", "--augment=none", "--model=own_models:tiny"]
    command = ["train", "--data", str(records), "--checkpoint-dir", trained.checkpoint_dir]
    assert main([*command, "--epochs=2", *flags, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed.pop("already_complete")
    told = json.loads(json.dumps(trained.to_dict()))
    assert (told.pop("already_complete"), told) == (False, printed)
    assert trained.evaluation.metrics.records == 10
    assert trained.evaluation.split == "test"


def test_a_notebook_shows_the_epoch_and_how_good_the_model_is(records, trained):
    text = Page(trained._repr_html_()).text
    assert f" Epoch {trained.best_epoch} of 2 (lowest val_loss) " in text
    assert f"val_loss {trained.metrics['val_loss']:.4f}" in text
    assert f"{trained.evaluation.accuracy:.4f} on the test split of 10 records" in text
    assert f"{trained.checkpoint_dir}/model.html" in text
    assert "Already complete" not in text
    again = darkroom.train(str(records), trained.checkpoint_dir, epochs=2, **OPTIONS)
    assert "Already complete: nothing was done." in again._repr_html_()
    shown = f"TrainingResult(model_dir='{trained.model_dir}', best_epoch={trained.best_epoch}"
    assert repr(again).startswith(shown)


@pytest.mark.usefixtures("quick_loop", "quick_export")
def test_other_records_may_have_the_eval_split(helpers, write_dataset, tmp_path, monkeypatch):
    rows = helpers.make_rows(30)
    first = write_dataset({"train": rows[:20]}).rename(tmp_path / "first")
    with pytest.raises(DataError, match="no record of the eval split"):
        darkroom.train(first, tmp_path / "run", **OPTIONS)
    second = write_dataset({"eval": rows[20:]}).rename(tmp_path / "second")
    scored = []
    evaluate = train._evaluate
    monkeypatch.setattr(train, "_evaluate", lambda *given: scored.append(given) or evaluate(*given))
    darkroom.train([first], tmp_path / "run", eval_records=second, epochs=1, **OPTIONS)
    [[data, *_]] = scored
    assert {name: split.data[0]["records"] for name, split in data.splits.items()} == {
        "train": 20,
        "eval": 10,
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"epochs": 0}, "epochs is 0, expected"),
        ({"weights": "nowhere.h5"}, "weights is 'nowhere.h5'"),
        ({"model": "small-cnn"}, "Did you mean small_cnn?"),
    ],
)
def test_a_wrong_option_is_told_before_anything_is_written(tmp_path, options, said):
    with pytest.raises(UsageError) as error:
        call(darkroom.train, TrainingOptions, "records", tmp_path / "run", **options)
    assert said in f"{error.value.message} {error.value.hint}"
    assert not (tmp_path / "run").exists()
