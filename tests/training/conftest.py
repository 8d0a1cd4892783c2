"""Fixtures for the tests of training."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from darkroom.runtime import progress

from ..commit_reads import count_commits  # noqa: F401
from .quick_loop import QuickLoop

# Height and width of the images of the small network, in pixels.
SIZE = (32, 32)


@pytest.fixture(scope="session")
def training_process() -> Any:
    """The module of the script that trains in a process of its own."""
    path = Path(__file__).with_name("training_process.py")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def own_models(training_process, monkeypatch):
    """The models of that script, as own_models:NAME."""
    monkeypatch.setitem(sys.modules, "own_models", None)
    training_process.register_models()
    return sys.modules["own_models"]


@pytest.fixture
def quick_export(monkeypatch):
    """Writes the labels and the weights alone for a model, which nothing opens or scores."""

    def export(model, learned, image_size, folder, **_):
        assets = Path(folder) / "assets"
        assets.mkdir(parents=True, exist_ok=True)
        (assets / "labels.txt").write_text("".join(f"{label}\n" for label in learned.names))
        (Path(folder) / "saved_model.pb").write_bytes(
            b"".join(weights.tobytes() for weights in model.get_weights())
        )

    from .test_forged_files import EVALUATION

    for module in ("trainer", "export"):
        monkeypatch.setattr(f"darkroom.training.{module}.export_model", export)
    monkeypatch.setattr("darkroom.training.train._evaluate", lambda *_: EVALUATION)


def make_fn_args(root: Path, folder: Path, config: Any) -> SimpleNamespace:
    """The arguments of `run_fn`, as TFX makes them, for the splits of a dataset."""
    return SimpleNamespace(
        train_files=[f"{root}/Split-train/*"],
        eval_files=[f"{root}/Split-eval/*"],
        model_run_dir=str(folder / "run"),
        serving_model_dir=str(folder / "serving"),
        custom_config=config,
    )


def use_quick_loop(patch: pytest.MonkeyPatch) -> None:
    """Trains without images, where the network and its numbers do not matter."""
    from darkroom.training.batches import FeatureBatches, ImageBatches

    patch.setattr("darkroom.training.run.make_loop", lambda model, *_: QuickLoop(model))
    for batches in (ImageBatches, FeatureBatches):
        patch.setattr(batches, "make_training", lambda *_: None)
        patch.setattr(batches, "make_evaluation", lambda *_: None)


@pytest.fixture
def quick_loop(monkeypatch):
    use_quick_loop(monkeypatch)


@pytest.fixture
def small_network(monkeypatch, training_process):
    """A small network in the place of efficientnet-lite0."""
    from darkroom.features.networks import efficientnet_lite

    monkeypatch.setattr(efficientnet_lite, "build_network", training_process.build_small_network)
    return efficientnet_lite


@pytest.fixture(scope="session")
def weights(training_process, tmp_path_factory):
    """The path of weights of the small network."""
    path = str(tmp_path_factory.mktemp("weights") / "network.weights.h5")
    training_process.build_small_network(SIZE).save_weights(path)
    return path


@pytest.fixture
def rows(helpers):
    return helpers.make_rows(30)


@pytest.fixture
def dataset(rows, write_dataset):
    return write_dataset({"train": rows[:22], "eval": rows[22:]})


@pytest.fixture
def notes(monkeypatch):
    """The texts that darkroom says beside its steps."""
    found: list[str] = []
    monkeypatch.setattr(progress, "note", found.append)
    return found
