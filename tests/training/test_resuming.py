"""A training that was stopped anywhere resumes with the next batch, as if it had not stopped."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from darkroom.errors import OutputError, UsageError
from darkroom.options.training import TrainingOptions
from darkroom.training.batches import ImageBatches
from darkroom.training.state.checkpoints import TrainingState
from darkroom.training.state.course import Phase, TimeBudget
from darkroom.training.state.training_run import TrainingRun

from ..trees import read_files
from .histories import EndedError, assert_same, end_at
from .training_process import train_dataset

pytestmark = [pytest.mark.tensorflow, pytest.mark.usefixtures("own_models")]

# 22 records in batches of 4: six steps an epoch, the last one smaller.
OPTIONS = {
    "image_size": (8, 8),
    "model": "own_models:random",
    "batch_size": 4,
    "epochs": 2,
    "learning_rate": 0.1,
    "checkpoint_steps": 2,
    "balance": "sampling",
    "clip_norm": 0.05,
    "label_smoothing": 0.1,
}
SCRIPT = Path(__file__).with_name("training_process.py")


def _train(root, run_dir, **values):
    options = TrainingOptions(**{**OPTIONS, **values})
    return train_dataset(root, run_dir, options)


def _train_interrupted(root, run_dir, epoch, step, **values):
    with pytest.MonkeyPatch.context() as patch:
        end_at(patch, epoch, step)
        with pytest.raises(EndedError):
            _train(root, run_dir, **values)


@pytest.fixture(scope="module")
def straight_runs():
    """The results of runs that were not stopped, by model. All tests have the same data."""
    return {}


@pytest.fixture
def train_straight(straight_runs, dataset, tmp_path):
    def train_once(model=OPTIONS["model"]):
        if model not in straight_runs:
            straight_runs[model] = _train(dataset, tmp_path / "straight", model=model)
        return straight_runs[model]

    return train_once


@pytest.mark.usefixtures("quick_loop")
def test_a_run_that_stops_resumes_with_the_next_batch(dataset, tmp_path, notes, monkeypatch):
    places = []
    monkeypatch.setattr(ImageBatches, "make_training", lambda _, *place: places.append(place))
    # In the second epoch, one batch after a checkpoint.
    run_dir = tmp_path / "run"
    _train_interrupted(dataset, run_dir, 1, 3)
    trained = _train(dataset, run_dir)
    assert "Resumes after batch 2 of epoch 2." in notes
    assert places == [(0, 0), (1, 0), (1, 2)]
    assert_same(trained, _train(dataset, tmp_path / "straight"))
    # TensorBoard shows every epoch once.
    for part, name in (("train", "loss"), ("validation", "val_loss")):
        expected = [(each["epoch"] - 1, pytest.approx(each[name])) for each in trained.history]
        assert _read_losses(run_dir / "tensorboard" / part) == expected


@pytest.mark.long
@pytest.mark.parametrize("loop", ["fit", "custom"])
def test_a_run_that_is_killed_resumes_with_the_next_batch(
    dataset, tmp_path, notes, train_straight, warm_python, loop
):
    run_dir, cases = tmp_path / "run", {"run": {**OPTIONS, "loop": loop}}
    arguments = [str(dataset), str(tmp_path), json.dumps(cases), "1", "1", "3"]
    assert warm_python.start(SCRIPT, *arguments).wait() == -signal.SIGKILL
    assert not list(tmp_path.glob("run-*"))
    # Stopped where the epoch has no batch left.
    _train_interrupted(dataset, run_dir, 1, 6, loop=loop)
    trained = _train(dataset, run_dir, loop=loop)
    places = ["batch 2 of epoch 2", "batch 6 of epoch 2"]
    assert [note for note in notes if "Resumes" in note] == [
        f"Resumes after {place}." for place in places
    ]
    assert_same(trained, train_straight())


def _read_losses(folder):
    return sorted(
        (event.step, tf.make_ndarray(value.tensor).item())
        for path in folder.iterdir()
        for event in tf.compat.v1.train.summary_iterator(str(path))
        for value in event.summary.value
        if value.tag == "epoch_loss"
    )


@pytest.mark.long
@pytest.mark.parametrize("loop", ["fit", "custom"])
def test_several_steps_an_execution_change_nothing(dataset, tmp_path, train_straight, loop):
    # Six steps by four: the second execution of the first epoch ends early.
    values = {"loop": loop, "model": "own_models:plain", "steps_per_execution": 4}
    _train_interrupted(dataset, tmp_path / "run", 1, 4, **values)
    assert_same(_train(dataset, tmp_path / "run", **values), train_straight("own_models:plain"))


def _make_run(training_process, folder, *, data="a", is_chief=True, **values):
    model = training_process.make_plain(2, (8, 8))
    model.compile("adam", "sparse_categorical_crossentropy")
    model.optimizer.build(model.trainable_variables)
    options = TrainingOptions(epochs=2, **{"checkpoint_steps": 0, **values})
    state = TrainingState.load(str(folder), options, data, data, TimeBudget(), (22, 8))
    return TrainingRun(model, state, Phase("", 2), is_chief=is_chief)


@pytest.mark.parametrize(
    ("every", "steps", "expected"),
    [(4, (1, 2, 3, 4, 5), [4]), (2, (3, 6, 7), [3, 6]), (3, (1, 2), [])],
)
def test_checkpoints_are_made_when_due(
    training_process, tmp_path, monkeypatch, every, steps, expected
):
    saved = []
    monkeypatch.setattr(TrainingRun, "_save", lambda run: saved.append(run.step))
    run = _make_run(training_process, tmp_path, checkpoint_steps=every)
    for step in steps:
        run.step_hook(step)
    assert saved == expected
    assert _make_run(training_process, tmp_path).step_hook is None


def _end_epoch(run, number, val_loss):
    """Ends an epoch whose weights all are its number."""
    run.model.set_weights([np.full_like(each, number) for each in run.model.get_weights()])
    run.end_epoch({"loss": 1.0, "val_loss": val_loss})


def _assert_best(run, number):
    run.restore_best()
    for weights in run.model.get_weights():
        np.testing.assert_array_equal(weights, number)


@pytest.mark.parametrize("part", ["_save", "_write_best"])
def test_the_best_weights_are_those_of_the_history_wherever_a_run_ends(
    training_process, tmp_path, part
):
    run = _make_run(training_process, tmp_path)
    _end_epoch(run, 1, 0.5)

    def end(run):
        raise EndedError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrainingRun, part, end)
        with pytest.raises(EndedError):
            _end_epoch(run, 2, 0.4)
    done = 1 if part == "_save" else 2
    again = _make_run(training_process, tmp_path)
    assert (len(again.history), again.best_epoch) == (done, done)
    # The next epochs are worse, with another learning rate.
    _end_epoch(again, 7, 0.6)
    _assert_best(again, done)
    _assert_best(_make_run(training_process, tmp_path), done)


def test_checkpoints_elsewhere_are_not_deleted(training_process, tmp_path):
    """TensorFlow deletes the checkpoints that a list names, wherever they are."""
    run = _make_run(training_process, tmp_path / "run", checkpoint_steps=1)
    run.step_hook(1)
    path = tmp_path / "run" / "checkpoints" / "checkpoint"
    path.write_text(f'all_model_checkpoint_paths: "{tmp_path}/ckpt-0"\n{path.read_text()}')
    with pytest.raises(OutputError, match="has checkpoints that darkroom did not write"):
        _make_run(training_process, tmp_path / "run")


def test_half_of_the_best_weights_are_written_again(training_process, tmp_path):
    _end_epoch(_make_run(training_process, tmp_path), 1, 0.5)
    [data] = (tmp_path / "best").glob("weights.data*")
    data.write_bytes(data.read_bytes()[:9])
    _assert_best(_make_run(training_process, tmp_path), 1)


def test_missing_best_weights_are_named_before_training(training_process, tmp_path):
    run = _make_run(training_process, tmp_path)
    _end_epoch(run, 1, 0.4)
    _end_epoch(run, 2, 0.5)
    shutil.rmtree(tmp_path / "best")
    with pytest.raises(
        OutputError, match=r"weights of epoch 1, the best so far, are missing: .*/b"
    ):
        _make_run(training_process, tmp_path)


def test_a_worker_takes_the_best_weights_of_the_chief(training_process, tmp_path):
    run = _make_run(training_process, tmp_path)
    _end_epoch(run, 1, 0.4)
    _end_epoch(run, 2, 0.5)
    files = read_files(tmp_path)
    worker = _make_run(training_process, tmp_path, is_chief=False)
    _assert_best(worker, 1)
    # What it trains itself is not in the chief's folder yet, or only half of it.
    _end_epoch(worker, 3, 0.3)
    _assert_best(worker, 3)
    assert read_files(tmp_path) == files


def test_another_order_is_an_error_only_within_an_epoch(training_process, tmp_path):
    run = _make_run(training_process, tmp_path, checkpoint_steps=2, batch_size=4)
    run.step_hook(2)
    other = {"checkpoint_steps": 2, "batch_size": 8}
    with pytest.raises(UsageError, match=r"after 2 batches, .*: batch_size was 4, now 8\. Resume"):
        _make_run(training_process, tmp_path, **other)
    run.end_epoch({"loss": 1.0, "val_loss": 2.0})
    again = _make_run(training_process, tmp_path, **other)
    assert again.history == [{"epoch": 1, "loss": 1.0, "val_loss": 2.0}]
    with pytest.raises(OutputError, match="belongs to a training on different data"):
        _make_run(training_process, tmp_path, data="b", **other)
