"""What one sees while a model trains: one line an epoch, and on a terminal its batches."""

from __future__ import annotations

import io
import json
import logging
import re

import pytest

from darkroom.options.training import TrainingOptions
from darkroom.runtime import progress
from darkroom.runtime.display import PlainProgress
from darkroom.training.trainer import run_fn

from .conftest import make_fn_args
from .histories import EndedError, end_at
from .training_process import train_dataset

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.filterwarnings("ignore:Your input ran out of data"),
    pytest.mark.usefixtures("simple_decoder", "own_models"),
]
# 22 records in batches of 4: six steps an epoch.
OPTIONS = {
    "image_size": (8, 8),
    "model": "own_models:tiny",
    "batch_size": 4,
    "epochs": 2,
    "augment": "none",
    "learning_rate": 0.05,
    "schedule": "constant",
    "warmup_ratio": 0.0,
}


def _train(root, run_dir, **values):
    options = TrainingOptions(**{**OPTIONS, **values})
    with progress.step("Training"):
        return train_dataset(root, run_dir, options)


def _describe(entry):
    names = ("loss", "accuracy", "val_loss", "val_accuracy")
    return ", ".join(f"{name} {entry[name]:.4f}" for name in names) + ", rate 0.05"


def _check_lines(stream, history, speed):
    *lines, last = stream.getvalue().splitlines()
    assert len(lines) == 2
    for number, (line, entry) in enumerate(zip(lines, history, strict=True), 1):
        assert re.match(rf"Training: epoch {number}/2 done in \d+\.\d s, loss ", line)
        assert re.search(re.escape(_describe(entry)) + speed + "$", line)
    assert re.fullmatch(r"Training done in .* s, 2 epochs", last)


@pytest.mark.usefixtures("quick_loop")
def test_a_log_has_one_line_an_epoch(dataset, tmp_path):
    stream = io.StringIO()
    with progress.use(PlainProgress(stream, interval_seconds=0)):
        trained = _train(dataset, tmp_path / "run")
    _check_lines(stream, trained.history, "")


class Display(PlainProgress):
    """A live display that keeps the counts that it gets."""

    is_live = True

    def __init__(self):
        super().__init__(io.StringIO())
        self.counts = []

    def advance(self, done, total, unit, before, detail=""):
        self.counts.append((self._steps[-1].label, done, total, unit, before, detail))


def _check_counts(counts, *num_batches):
    expected = [
        (f"Training: epoch {epoch}/2", done, 6, "batches", 0)
        for epoch, number in enumerate(num_batches, 1)
        for done in range(1, number + 1)
    ]
    assert [each[:5] for each in counts] == expected
    assert all(re.fullmatch(r"loss \d+\.\d{4}", each[5]) for each in counts)


@pytest.fixture
def always_loss(monkeypatch):
    monkeypatch.setattr("darkroom.training.devices.loops._LOSS_SECONDS", 0)


@pytest.mark.usefixtures("always_loss")
def test_a_terminal_shows_the_batches_of_each_epoch(dataset, tmp_path):
    display = Display()
    with progress.use(display):
        trained = _train(dataset, tmp_path / "run")
    _check_counts(display.counts, 6, 6)
    speed = r", [\d,]+ images/s, \d+% waiting for input"
    _check_lines(display._stream, trained.history, speed)


@pytest.mark.usefixtures("always_loss", "quick_loop")
def test_a_training_that_resumes_shows_the_rest_of_its_epoch(dataset, tmp_path, monkeypatch):
    display = Display()
    with monkeypatch.context() as patch, progress.use(display):
        end_at(patch, 1, 4)
        with pytest.raises(EndedError):
            _train(dataset, tmp_path / "run", checkpoint_steps=2)
    # The fourth ended before it could be shown.
    _check_counts(display.counts, 6, 3)
    display = Display()
    with progress.use(display):
        trained = _train(dataset, tmp_path / "run", checkpoint_steps=2)
    shown = [each[:5] for each in display.counts]
    assert shown == [("Training: epoch 2/2", done, 6, "batches", 4) for done in (5, 6)]
    lines = display._stream.getvalue().splitlines()
    assert lines[0] == "Resumes after batch 4 of epoch 2."
    assert _describe(trained.history[1]) in lines[1]
    assert len(lines) == 3


@pytest.mark.usefixtures("quick_loop")
def test_a_model_with_a_schedule_shows_the_rate_of_its_last_step(
    dataset, tmp_path, monkeypatch, own_models
):
    import keras

    def make(num_classes, image_size):
        model = own_models.tiny(num_classes, image_size)
        schedule = keras.optimizers.schedules.PolynomialDecay(0.1, 12, 0.05)
        model.compile(keras.optimizers.SGD(schedule), "sparse_categorical_crossentropy")
        return model

    monkeypatch.setattr(own_models, "scheduled", make, raising=False)
    stream = io.StringIO()
    with progress.use(PlainProgress(stream)):
        _train(dataset, tmp_path / "run", model="own_models:scheduled")
    assert re.findall(r"rate [\d.]+", stream.getvalue()) == ["rate 0.075", "rate 0.05"]


@pytest.mark.usefixtures("quick_loop", "quick_export")
def test_the_log_of_tfx_s_trainer_has_one_line_an_epoch(dataset, tmp_path, caplog):
    config = {"darkroom": {**OPTIONS, "image_size": [8, 8]}}
    logger = logging.getLogger("darkroom.training.run")
    try:
        run_fn(make_fn_args(dataset, tmp_path, config))
    finally:
        logging.getLogger("darkroom.training").setLevel(logging.NOTSET)
    history = json.loads((tmp_path / "run" / "history.json").read_text())
    lines = [each.getMessage() for each in caplog.records if each.name == logger.name]
    assert len(lines) == 2
    for number, (line, entry) in enumerate(zip(lines, history, strict=True), 1):
        # No image was read, so nothing is said of their speed.
        assert line == f"Epoch {number} of 2: {_describe(entry)}"
