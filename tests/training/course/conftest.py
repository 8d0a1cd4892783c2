"""Fixtures for the phases of a training: a small network with weights, and data."""

from __future__ import annotations

import pytest

from darkroom.dataset.commit import read_dataset
from darkroom.input.records import open_splits
from darkroom.options.training import TrainingOptions
from darkroom.runtime import progress
from darkroom.training.networks import efficientnet_lite
from darkroom.training.placement import make_placement
from darkroom.training.run import train

SIZE = (32, 32)


@pytest.fixture
def small_network(monkeypatch, training_process):
    monkeypatch.setattr(efficientnet_lite, "build_network", training_process.build_small_network)


@pytest.fixture
def weights(small_network, tmp_path):
    path = str(tmp_path / "network.weights.h5")
    efficientnet_lite.build_network(SIZE).save_weights(path)
    return path


@pytest.fixture
def dataset(helpers, write_dataset):
    rows = helpers.make_rows(30)
    return write_dataset({"train": rows[:22], "eval": rows[22:]})


@pytest.fixture
def values(tmp_path, weights):
    """Options of a training, as JSON knows them: 11 batches an epoch of the head, then 6."""
    return {
        "model": "efficientnet-lite0",
        "weights": weights,
        "image_size": SIZE,
        "batch_size": 4,
        "epochs": 2,
        "fine_tune_epochs": 3,
        "learning_rate": 0.1,
        "checkpoint_steps": 2,
        "feature_cache": str(tmp_path / "cache"),
    }


@pytest.fixture
def notes(monkeypatch):
    found: list[str] = []
    monkeypatch.setattr(progress, "note", found.append)
    return found


@pytest.fixture
def train_in(dataset):
    """Trains with options in a folder."""

    def train_now(run_dir, values):
        options = TrainingOptions(**values)
        opened = open_splits({str(dataset): read_dataset(str(dataset))})
        return train(
            options,
            make_placement(options.strategy),
            training=opened["train"],
            evaluation=opened["eval"],
            num_classes=2,
            run_dir=str(run_dir),
        )

    return train_now
