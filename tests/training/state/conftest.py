"""Fixtures for the phases of a training.

This file loads no TensorFlow: make test-fast runs the tests here that need none.
"""

from __future__ import annotations

import pytest

from darkroom.options.training import TrainingOptions

from ..conftest import SIZE


@pytest.fixture
def without_images(quick_loop, monkeypatch):
    """Trains without images, and so without their features."""
    from darkroom.training.features.compute import Computer

    monkeypatch.setattr(Computer, "compute", lambda *_: None)


@pytest.fixture
def values(tmp_path, small_network, weights):
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
def train_in(dataset, training_process):
    """Trains with options in a folder."""

    def train_now(run_dir, values):
        options = TrainingOptions(**values)
        return training_process.train_dataset(dataset, run_dir, options)

    return train_now
