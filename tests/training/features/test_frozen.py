"""A training of the head on features of a frozen base."""

from __future__ import annotations

import json
import math
import signal
from pathlib import Path

import numpy as np
import pytest

import darkroom
from darkroom.data.open import open_data
from darkroom.dataset.index import find_index_files, read_index
from darkroom.errors import OutputError
from darkroom.features.cache import FeatureCache
from darkroom.features.compute import number_contents
from darkroom.features.networks import efficientnet_lite
from darkroom.features.networks.network import name_base
from darkroom.features.table import read_features
from darkroom.input.opening import open_splits
from darkroom.options.conversion import ConversionOptions
from darkroom.options.input import InputOptions
from darkroom.options.training import TrainingOptions
from darkroom.profiling.meter import InputMeter
from darkroom.targets.head import make_head
from darkroom.targets.learned import Learned
from darkroom.training.batches import FeatureBatches, ImageBatches
from darkroom.training.devices.placement import make_placement
from darkroom.training.features import compute
from darkroom.training.features.compute import SplitFeatures
from darkroom.training.model import make_parts
from darkroom.training.state.training_run import TrainingRun

from ...pictures import write_label_folders
from ..conftest import SIZE
from ..histories import assert_near
from ..training_process import train_dataset

pytestmark = [pytest.mark.tensorflow, pytest.mark.usefixtures("simple_decoder")]

SCRIPT = Path(__file__).parents[1] / "training_process.py"


@pytest.fixture
def values(tmp_path, small_network, weights):
    """Options of a training, as JSON knows them."""
    return {
        "model": "efficientnet-lite0",
        "weights": weights,
        "image_size": SIZE,
        "batch_size": 4,
        "epochs": 2,
        "learning_rate": 0.1,
        "checkpoint_steps": 2,
        "feature_cache": str(tmp_path / "cache"),
        # Without it, the output says what fine-tuning would take.
        "fine_tune_epochs": 0,
    }


def _train(root, run_dir, values):
    options = TrainingOptions(**values)
    return train_dataset(root, run_dir, options)


def _read_history(path):
    return json.loads(str(np.load(path)["history"]))


def _forbid_computing(monkeypatch):
    def refuse(*arguments):
        raise AssertionError("features were computed")

    monkeypatch.setattr(compute, "decode_views", refuse)


def _count_kept(cache):
    """Returns how many images each file of the cache has, by the name of its folder's view."""
    found: dict[str, list[int]] = {}
    for path in sorted(cache.rglob("*.npz")):
        view = path.parent.name.partition("-")[2]
        found.setdefault(view, []).append(len(np.load(path)["keys"]))
    return {view: sorted(counts) for view, counts in found.items()}


@pytest.mark.usefixtures("quick_loop")
def test_a_second_training_computes_only_what_is_new(
    rows, write_dataset, tmp_path, values, monkeypatch, notes
):
    cache = tmp_path / "cache"
    values["augment"] = "none"
    dataset = write_dataset({"train": rows[:20], "eval": rows[22:]}).rename(tmp_path / "first")
    _train(dataset, tmp_path / "one", values)
    assert _count_kept(cache) == {"stretch": [8, 20]}
    second = write_dataset({"train": rows[:22], "eval": rows[21:]}).rename(tmp_path / "second")
    notes.clear()
    _train(second, tmp_path / "two", values)
    assert _count_kept(cache) == {"stretch": [2, 8, 20]}
    # The eval split has one image more, which the train split has as well.
    assert notes == [f"{n} images of the {s} split are known from {cache}." for n, s in (
        (20, "train"), (9, "eval")
    )]  # fmt: skip
    _forbid_computing(monkeypatch)
    _train(second, tmp_path / "three", {**values, "seed": 5})
    # Other sizes and weights have other features.
    efficientnet_lite.build_network(SIZE).save_weights(tmp_path / "other.weights.h5")
    other = str(tmp_path / "other.weights.h5")
    for change in ({"image_size": (40, 32)}, {"weights": other}):
        with pytest.raises(AssertionError, match="features were computed"):
            _train(second, tmp_path / "four", {**values, **change})


@pytest.mark.usefixtures("quick_loop")
def test_a_training_that_ended_keeps_its_features(dataset, tmp_path, values, monkeypatch, notes):
    monkeypatch.setattr(compute, "_BATCH_IMAGES", 4)
    monkeypatch.setattr(compute, "_KEPT_IMAGES", 8)
    values |= {"augment": "crop,flip", "epochs": 1}
    views = ("stretch", "stretch-mirrored", "center_crop", "center_crop-mirrored")
    add = FeatureCache.add

    def end(cache, keys, features):
        if _count_kept(tmp_path / "cache").get(views[-1]) == [8]:
            raise KeyboardInterrupt
        add(cache, keys, features)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FeatureCache, "add", end)
        with pytest.raises(KeyboardInterrupt):
            _train(dataset, tmp_path / "run", values)
    steps: list[int] = []
    monkeypatch.setattr(TrainingRun, "_end_step", lambda run, step: steps.append(step))
    trained = _train(dataset, tmp_path / "run", values)
    assert notes == [f"8 images of the train split are known from {tmp_path / 'cache'}."]
    # Of the input, which was not read, nothing is known.
    assert trained.verdict is None
    # An epoch has each view of each image, and the eval split one.
    found = _count_kept(tmp_path / "cache")
    expected = {view: 30 if view == "stretch" else 22 for view in views}
    assert {view: sum(counts) for view, counts in found.items()} == expected
    assert steps == list(range(1, math.ceil(22 * len(views) / 4) + 1))
    # One of the head is not resumed as one of all.
    with pytest.raises(OutputError, match=r"another training: freeze was base, now none\."):
        _train(dataset, tmp_path / "run", {**values, "freeze": "none", "epochs": 3})


def test_raw_pixels_have_the_keys_of_a_training(tmp_path):
    write_label_folders(tmp_path / "in", 10)
    raw = ConversionOptions(encoding="raw")
    darkroom.convert(tmp_path / "in", tmp_path / "records", options=raw)
    folder = str(tmp_path / "records")
    found = number_contents(find_index_files(f"{folder}/index"))
    sources = open_splits(open_data([folder]).splits).values()
    keys = [key for each in sources for key in compute._read_keys(each, InputOptions(SIZE))[0]]
    assert sorted(found) == sorted(keys)


def test_embed_finds_what_a_training_has_computed(tmp_path, small_network, weights, monkeypatch):
    write_label_folders(tmp_path / "in", 10)
    darkroom.convert(tmp_path / "in", tmp_path / "records")
    from darkroom.features.networks import keras_models

    monkeypatch.setattr(keras_models, "DEFAULT_SIZE", SIZE)
    monkeypatch.setattr(small_network, "find_weights", lambda: weights)
    monkeypatch.setattr(small_network, "load_weights", lambda net, path: net.load_weights(path))
    # The base, and its name, as of `make_features`.
    training = TrainingOptions(model="efficientnet-lite0", weights=weights, image_size=SIZE)
    head = make_head(Learned("label", ("0", "1")))
    base = make_parts(training, head, 1).base
    name = name_base(training.model, training.precision, scaled=True)
    cache = str(tmp_path / "cache" / "features")
    computer = compute.Computer(base, name, training.input_options, cache)
    source = open_splits(open_data([tmp_path / "records"]).splits)["train"]
    expected = computer.compute(source, "train", [compute.FeatureView("stretch", False)]).values
    monkeypatch.setenv("DARKROOM_CACHE", str(tmp_path / "cache"))
    found = darkroom.embed(tmp_path / "records")
    assert found.computed == found.images - len(expected) > 0
    # Both compute the same.
    monkeypatch.setenv("DARKROOM_CACHE", str(tmp_path / "other"))
    assert darkroom.embed(tmp_path / "records").computed == found.images
    values = read_features(found.path, str(tmp_path / "records" / "index")).values
    order = np.lexsort(expected[:, 0].T)
    index = read_index(str(tmp_path / "records" / "index"), ["split"])["split"].to_pylist()
    values = values[np.array(index) == "train"]
    near = np.abs(values[None] - expected[order]).max(-1).min(1)
    np.testing.assert_allclose(near, 0, atol=0.02)


def test_an_epoch_has_every_view_once_from_any_batch_on(monkeypatch):
    features = SplitFeatures(np.arange(12, dtype=np.float32).reshape(6, 2, 1), np.arange(6))
    images = ImageBatches(
        make_placement("one"), InputOptions(SIZE, batch_size=5), None, None, InputMeter()
    )
    batches = FeatureBatches(images, features, features)

    def read(epoch, step):
        made = batches.make_training(epoch, step)
        return [(values[:, 0].numpy().tolist(), labels.numpy().tolist()) for values, labels in made]

    whole = read(1, 0)
    assert sorted(value for values, _ in whole for value in values) == list(range(12))
    assert all(label == value // 2 for batch in whole for value, label in zip(*batch, strict=True))
    assert read(1, 1) == whole[1:]
    assert read(2, 0) != whole
    # What an error names are the images of a batch.
    monkeypatch.setattr("darkroom.training.batches.name_images", lambda *given: given[-1])
    assert batches.name_images(1, range(1, 2)) == {*whole[1][1]}


@pytest.mark.usefixtures("quick_loop")
def test_a_base_that_is_not_frozen_is_trained(dataset, tmp_path, values, weights):
    values |= {"freeze": "none", "epochs": 1, "learning_rate": 1e-3, "batch_size": 16}
    trained = _train(dataset, tmp_path / "run", values)
    network = efficientnet_lite.build_network(SIZE)
    network.load_weights(weights)
    base = trained.model.get_layer("efficientnet-lite0")
    assert np.abs(base.get_weights()[0] - network.get_weights()[0]).max() > 0
    assert not (tmp_path / "cache").exists()


@pytest.mark.long
@pytest.mark.parametrize(("epoch", "step", "fine_tuning"), [(0, 3, 0), (1, 5, 0), (3, 5, 3)])
def test_a_killed_training_ends_with_the_weights_of_one_that_was_not(
    dataset, tmp_path, values, warm_python, epoch, step, fine_tuning
):
    arguments = [str(dataset), str(tmp_path)]
    values |= {"network": "small", "fine_tune_epochs": fine_tuning}
    cases = {name: json.dumps({name: values}) for name in ("killed", "straight")}
    kill = [str(epoch), str(step)]
    died = warm_python.run(SCRIPT, *arguments, cases["killed"], "1", *kill)
    assert died.returncode == -signal.SIGKILL
    for name in cases:
        done = warm_python.run(SCRIPT, *arguments, cases[name])
        assert done.returncode == 0, done.stderr
    killed, straight = (np.load(tmp_path / f"{name}-0.npz") for name in cases)
    assert killed.files == straight.files
    for name in killed.files:
        if name.startswith("arr"):
            np.testing.assert_allclose(killed[name], straight[name], rtol=1e-4, atol=1e-6)
    assert_near(*(_read_history(tmp_path / f"{n}-0.npz") for n in cases))
