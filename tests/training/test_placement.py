"""Several devices and processes give the weights that one gives on the same batches."""

from __future__ import annotations

import json
import os
import signal
import socket
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from darkroom.errors import UsageError
from darkroom.options.training import TrainingOptions
from darkroom.training.devices import placement
from darkroom.training.devices.environment import Cluster, read_cluster
from darkroom.training.devices.placement import make_placement

from .training_process import train_dataset

pytestmark = pytest.mark.tensorflow

SCRIPT = Path(__file__).with_name("training_process.py")
# 20 records in batches of 4: no batch is left over, which several devices would leave out. Of the
# nine records for evaluation the last one is alone: a device gets nothing.
OPTIONS = {
    "image_size": (8, 8),
    "model": "own_models:plain",
    "batch_size": 4,
    "epochs": 2,
    "learning_rate": 0.01,
}


@pytest.fixture
def dataset(helpers, write_dataset):
    rows = helpers.make_rows(43)
    # Labels that are not equally frequent, for their weights.
    train = [*rows[0:28:2], *rows[1:12:2]]
    # Wrong labels: the first epoch is the best, which a run that goes on after it did not train.
    wrong = [(image, 1 - label) for image, label in rows[34:]]
    return write_dataset({"train": train, "eval": wrong})


def _start(warm_python, root, folder, cases, *arguments, config=None):
    cases = {name: {**OPTIONS, **values} for name, values in cases.items()}
    environment = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
    if config:
        environment["TF_CONFIG"] = json.dumps(config)
    return warm_python.start(SCRIPT, root, folder, json.dumps(cases), *arguments, env=environment)


def _start_workers(warm_python, root, folder, values, *kill):
    ports = []
    for _ in range(2):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            ports.append(free.getsockname()[1])
    cluster = {"worker": [f"127.0.0.1:{port}" for port in ports]}
    return [
        _start(
            warm_python,
            root,
            folder,
            {"workers": values},
            "1",
            *(kill if index else ()),
            config={"cluster": cluster, "task": {"type": "worker", "index": index}},
        )
        for index in range(2)
    ]


def _assert_same(one, two):
    for left, right in zip(*(json.loads(str(each["history"])) for each in (one, two)), strict=True):
        assert left == pytest.approx(right, rel=1e-4)
    for name in one.files:
        if name.startswith("arr_"):
            np.testing.assert_allclose(one[name], two[name], rtol=1e-3, atol=1e-5)


@pytest.mark.long
def test_two_devices_give_what_one_gives(dataset, tmp_path, warm_python):
    # One layer of weights is traced quickly.
    values = {"model": "own_models:tiny", "learning_rate": 0.1, "balance": "weights"}
    values |= {"epochs": 1, "profile_input": False}
    cases = {name: {**values, "strategy": name} for name in ("one", "mirrored")}
    assert _start(warm_python, dataset, tmp_path, cases, "2").wait() == 0
    single, mirrored = (np.load(tmp_path / f"{name}-0.npz") for name in cases)
    _assert_same(mirrored, single)


@pytest.mark.long
def test_two_processes_and_two_devices_give_what_one_gives(dataset, tmp_path, warm_python):
    cases = {
        "single": {"strategy": "one"},
        "fit": {"strategy": "mirrored", "loop": "fit"},
        "custom": {"strategy": "mirrored", "loop": "custom"},
        "split": {"strategy": "one", "model": "own_models:split"},
    }
    values = {"checkpoint_steps": 2}
    # At the same time as the workers, which wait for each other now and then.
    cases = {name: {**values, **options} for name, options in cases.items()}
    in_one_process = _start(warm_python, dataset, tmp_path, cases, "2")
    # In the second epoch, one batch after a checkpoint; the other cannot go on.
    processes = _start_workers(warm_python, dataset, tmp_path, values, "1", "3")
    codes = [process.wait() for process in processes]
    assert codes == [1, -signal.SIGKILL]
    history = json.loads((tmp_path / "workers" / "history.json").read_text())
    assert [entry["epoch"] for entry in history] == [1]
    for process in _start_workers(warm_python, dataset, tmp_path, values):
        assert process.wait() == 0
    assert in_one_process.wait() == 0
    single, *others = (np.load(tmp_path / f"{name}-0.npz") for name in cases)
    assert json.loads(str(single["best_epoch"])) == 1
    for other in others:
        _assert_same(other, single)
    devices = json.loads(str(others[-1]["devices"]))
    assert devices == ["CPU:0", "CPU:0", "CPU:1", "CPU:1"]
    for worker in range(2):
        _assert_same(np.load(tmp_path / f"workers-{worker}.npz"), single)
    # Only the chief writes: a file of events for each run.
    assert len(list((tmp_path / "workers" / "tensorboard" / "train").iterdir())) == 2


@pytest.mark.parametrize(
    "loop", ["quick", *(pytest.param(loop, marks=pytest.mark.long) for loop in ("fit", "custom"))]
)
def test_mixed_precision_ends_with_the_training(dataset, tmp_path, request, loop):
    import keras

    options = {"image_size": (8, 8), "epochs": 1, "precision": "mixed_float16"}
    if loop == "quick":
        request.getfixturevalue("quick_loop")
    else:
        options["loop"] = loop
    trained = train_dataset(dataset, tmp_path / "run", TrainingOptions(**options))
    layers = [layer for layer in trained.model.layers if isinstance(layer, keras.layers.Conv2D)]
    assert {(each.compute_dtype, each.variable_dtype) for each in layers} == {
        ("float16", "float32")
    }
    assert trained.model.layers[-1].compute_dtype == "float32"
    assert isinstance(trained.model.optimizer, keras.optimizers.LossScaleOptimizer)
    assert np.isfinite([entry["loss"] for entry in trained.history]).all()
    assert keras.config.dtype_policy().name == "float32"


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("", Cluster(0, 1)),
        ({"task": {"type": "worker", "index": 0}}, Cluster(0, 1)),
        ({"cluster": {"worker": ["a", "b"]}, "task": {"type": "worker", "index": 1}}, (1, 2)),
        (
            {"cluster": {"chief": ["c"], "worker": ["a"]}, "task": {"type": "worker", "index": 0}},
            (1, 2),
        ),
        (
            {"cluster": {"chief": ["c"], "worker": ["a"]}, "task": {"type": "chief", "index": 0}},
            (0, 2),
        ),
    ],
)
def test_a_cluster_is_read_from_the_environment(monkeypatch, config, expected):
    monkeypatch.setenv("TF_CONFIG", json.dumps(config) if config else "")
    found = read_cluster()
    assert (found.worker, found.num_workers) == tuple(
        (expected.worker, expected.num_workers) if isinstance(expected, Cluster) else expected
    )
    assert found.is_chief == (found.worker == 0)


@pytest.mark.parametrize(
    "text",
    [
        "no json",
        "[]",
        '{"cluster": {"worker": ["a"]}}',
        '{"cluster": {"worker": ["a"]}, "task": {"type": "ps", "index": 0}}',
        '{"cluster": {"worker": ["a"]}, "task": {"type": "worker", "index": 1}}',
    ],
)
def test_a_wrong_cluster_is_an_error(monkeypatch, text):
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(UsageError, match="TF_CONFIG cannot be used"):
        read_cluster()


def test_several_workers_need_a_cluster(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(UsageError, match="TF_CONFIG names no other worker"):
        make_placement("multi_worker")
    assert not make_placement("auto").is_distributed


def test_a_gpu_that_tensorflow_does_not_find_is_a_warning(monkeypatch, caplog):
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(
        placement, "explain_idle_gpu", lambda *known: asked.append(known) or "Idle."
    )
    found: list[str] = []
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda _: found)
    assert not make_placement("one").is_distributed
    assert caplog.messages == ["Idle."]
    [(version, packages)] = asked
    assert version == tf.__version__
    assert (Path(packages) / "tensorflow" / "__init__.py").is_file()
    found.append("GPU:0")
    make_placement("one")
    assert caplog.messages == ["Idle."]
