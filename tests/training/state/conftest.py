"""Fixtures for the phases of a training: a small network with weights, and data.

This file loads no TensorFlow: make test-fast runs the tests here that need none.
"""

from __future__ import annotations

import pytest

from darkroom.options.training import TrainingOptions
from darkroom.runtime import progress

SIZE = (32, 32)


@pytest.fixture
def small_network(monkeypatch, training_process):
    from darkroom.training.networks import efficientnet_lite

    monkeypatch.setattr(efficientnet_lite, "build_network", training_process.build_small_network)
    return efficientnet_lite


@pytest.fixture
def quick_course(quick_loop, monkeypatch):
    """Trains without images, and so without their features."""
    from darkroom.training.features.compute import Computer

    monkeypatch.setattr(Computer, "compute", lambda *_: None)


@pytest.fixture
def weights(small_network, tmp_path):
    path = str(tmp_path / "network.weights.h5")
    small_network.build_network(SIZE).save_weights(path)
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
        "feature_cache": str(tmp_path / "cache"),
    }


@pytest.fixture
def notes(monkeypatch):
    found: list[str] = []
    monkeypatch.setattr(progress, "note", found.append)
    return found


@pytest.fixture
def train_in(dataset, training_process):
    """Trains with options in a folder."""

    def train_now(run_dir, values):
        options = TrainingOptions(**values)
        return training_process.train_dataset(dataset, run_dir, options)

    return train_now
