from __future__ import annotations

import functools
import json
import math
import shutil
import sys
import types

import keras
import numpy as np
import pytest
import tensorflow as tf

from darkroom.data.open import open_data
from darkroom.errors import DataError, OutputError, UsageError
from darkroom.input.graph.decode import view_image
from darkroom.input.opening import input_fn, open_splits
from darkroom.input.records import RecordSource
from darkroom.options.input import InputOptions
from darkroom.options.training import TrainingOptions
from darkroom.profiling.meter import InputMeter
from darkroom.runtime import progress
from darkroom.targets.label.head import LabelHead
from darkroom.training.batches import ImageBatches, use_cache_folder
from darkroom.training.devices.placement import make_placement
from darkroom.training.export import export_model
from darkroom.training.model import make_parts
from darkroom.training.state.history import read_exported
from darkroom.training.state.training_run import TrainingRun
from darkroom.training.trainer import read_example_labels, run_fn

from ..records import make_rows, write_records
from .conftest import make_fn_args, use_quick_loop
from .quick_loop import QuickLoop
from .training_process import make_random, make_tiny, train_dataset

SIZE = (8, 8)
# Keras warns about every dataset of unknown length.
pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.filterwarnings("ignore:Your input ran out of data"),
    pytest.mark.usefixtures("simple_decoder"),
]


def _make_compiled(num_classes, image_size, **changed):
    model = make_tiny(num_classes, image_size)
    options = {"optimizer": keras.optimizers.SGD(0.5), "loss": "sparse_categorical_crossentropy"}
    model.compile(**{**options, **changed})
    return model


@pytest.fixture(scope="module", autouse=True)
def own_models(training_process):
    """The models of the script that trains, by name, and the one above."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "own_models", None)
        training_process.register_models()
        sys.modules["own_models"].make_compiled = _make_compiled
        yield sys.modules["own_models"]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """A dataset that no test changes."""
    rows = make_rows(30)
    root = tmp_path_factory.mktemp("data") / "dataset"
    return write_records(root, {"train": rows[:22], "eval": rows[22:]})


@pytest.fixture
def changed(dataset, tmp_path):
    """A copy of it, for a test that changes it."""
    return shutil.copytree(dataset, tmp_path / "dataset")


def _options(**values):
    base = {"image_size": SIZE, "model": "own_models:tiny", "batch_size": 4, "augment": "none"}
    # The rate of a short training that only has to learn something.
    base |= {"learning_rate": 0.1, "schedule": "constant", "warmup_ratio": 0.0}
    return TrainingOptions(**{**base, **values})


def _train(root, run_dir, *, splits=("train", "eval"), **values):
    return train_dataset(root, run_dir, _options(**values), splits)


def _epochs(history):
    return [entry["epoch"] for entry in history]


@pytest.fixture(scope="module")
def served(dataset, tmp_path_factory, count_commits):
    """A training by `run_fn`, and what was seen of it."""
    folder, opened, calls, models = tmp_path_factory.mktemp("served"), [], [], []
    inner = RecordSource.__init__

    def open_source(source, split, *more):
        opened.append([each.path.rsplit("/", 2)[1] for each in split.list_files()])
        inner(source, split, *more)

    def export(model, *values, **named):
        models.append(model)
        export_model(model, *values, **named)

    options = _options(epochs=2, learning_rate=0.5, resize="center_crop")
    config = {"darkroom": options.to_dict(), "checkpoint_dir": str(folder / "kept")}
    config["ai_platform_training_args"] = {}
    # As text, as on Kubeflow.
    given = json.dumps(config)
    with pytest.MonkeyPatch.context() as patch, count_commits() as read:
        patch.setattr(progress, "remark", calls.append)
        patch.setattr(RecordSource, "__init__", open_source)
        patch.setattr("darkroom.training.trainer.export_model", export)
        run_fn(make_fn_args(dataset, folder, given))
    return types.SimpleNamespace(
        folder=folder,
        model=models[0],
        opened=opened,
        calls=calls,
        read=read,
        history=json.loads((folder / "run" / "history.json").read_text()),
        signatures=tf.saved_model.load(str(folder / "serving")).signatures,
    )


def test_run_fn_trains_and_exports(served):
    assert served.calls[1::2] == ["1 epoch", "2 epochs"]
    assert _epochs(served.history) == [1, 2]
    assert set(served.history[0]) == {"epoch", "accuracy", "loss", "val_accuracy", "val_loss"}
    assert served.history[-1]["loss"] < served.history[0]["loss"]
    events = served.folder / "run" / "tensorboard" / "validation"
    assert list(events.glob("events.out.tfevents.*"))

    dark, light = (np.full((4, 4, 3), value, np.uint8) for value in (0, 255))
    images = tf.stack([tf.io.encode_png(dark), tf.io.encode_png(light)])
    labels = served.signatures["serving_default"](image_bytes=images)["label"]
    assert labels.numpy().tolist() == [b"dark", b"light"]


def test_run_fn_keeps_no_checkpoints_where_tensorflow_takes_the_name_for_a_pattern(
    dataset, tmp_path
):
    config = {"darkroom": _options().to_dict(), "checkpoint_dir": str(tmp_path / "kept[1]")}
    with pytest.raises(UsageError, match=r"^checkpoint_dir is '.*/kept\[1\]/"):
        run_fn(make_fn_args(dataset, tmp_path, config))


def test_run_fn_opens_its_data_once(served, dataset):
    assert served.opened == [["Split-train"] * 2, ["Split-eval"] * 2]
    assert served.read == [f"{dataset}/dataset.json"]


def test_the_exported_model_sees_the_window_that_evaluation_sees(served, dataset):
    files = sorted(str(path) for path in (dataset / "Split-eval").iterdir())
    serialised = list(tf.data.TFRecordDataset(files[0]))
    signature = served.signatures["serving_examples"]
    found = signature(examples=tf.stack(serialised))["probabilities"]
    features = [tf.train.Example.FromString(each.numpy()).features.feature for each in serialised]

    def decode(resize):
        images = [each["image/encoded"].bytes_list.value[0] for each in features]
        return tf.stack([view_image(tf.constant(each), SIZE, resize)[0] for each in images])

    model = served.model
    np.testing.assert_allclose(found, model(decode("center_crop")), rtol=1e-5)
    assert not np.allclose(found, model(decode("stretch")), rtol=1e-5)


def test_a_cache_serves_every_epoch_and_is_gone_after_the_training(dataset, tmp_path, monkeypatch):
    inner = RecordSource._interleave
    read = []

    def interleave(source, options, order):
        read.append(source)
        return inner(source, options, order)

    monkeypatch.setattr(RecordSource, "_interleave", interleave)
    splits = open_splits(open_data([dataset]).splits)
    options = InputOptions(SIZE, augment="none", record_cache=str(tmp_path / "new" / "cache"))
    with use_cache_folder(options) as shared:
        batches = ImageBatches(
            make_placement("one"), shared, splits["train"], splits["eval"], InputMeter()
        )
        for epoch in (0, 1):
            counts = [len(labels) for _, labels in batches.make_training(epoch, 0)]
            counts += [len(labels) for _, labels in batches.make_evaluation()]
            assert sum(counts) == 30
    assert len(read) == 2
    assert list((tmp_path / "new" / "cache").iterdir()) == []


@pytest.mark.usefixtures("quick_loop")
def test_training_resumes_after_the_last_epoch(dataset, first, run_dir, tmp_path, notes):
    straight = _train(dataset, tmp_path / "straight", epochs=2)
    assert _epochs(first[0].history) == [1]
    second = _train(dataset, run_dir, epochs=2)
    assert _epochs(second.history) == [1, 2]
    assert second.history[:1] == first[0].history
    # The optimizer's state was restored too: the losses are the same as without a stop.
    losses = [[entry["val_loss"] for entry in run.history] for run in (straight, second)]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)

    done = _train(dataset, run_dir, epochs=2)
    assert notes == [
        "Resumes after epoch 1.",
        "Epoch 2 was the last one: nothing is left to train.",
    ]
    assert done.history == second.history
    for one, two in zip(done.model.get_weights(), second.model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.fixture
def weights_by_epoch(monkeypatch):
    """The weights at the end of each epoch that is trained, in turn."""
    found = []
    inner = TrainingRun.end_epoch

    def end_epoch(run, *values):
        found.append(run.model.get_weights())
        inner(run, *values)

    monkeypatch.setattr(TrainingRun, "end_epoch", end_epoch)
    return found


def _assert_weights(model, expected):
    for one, two in zip(model.get_weights(), expected, strict=True):
        np.testing.assert_array_equal(one, two)


def _evaluate_to(monkeypatch, losses):
    """Makes the epochs' losses on the eval split these."""
    left = iter(losses)
    monkeypatch.setattr(QuickLoop, "evaluate", lambda *_: {"loss": next(left)})


@pytest.mark.usefixtures("quick_loop", "quick_export")
def test_the_model_is_that_of_the_best_epoch(dataset, tmp_path, monkeypatch, weights_by_epoch):
    def run():
        return _train(dataset, run_dir, epochs=20, early_stopping_patience=2)

    _evaluate_to(monkeypatch, [1, 2, 3, 4])
    run_dir = tmp_path / "run"
    trained = run()
    assert trained.best_epoch == 1
    assert _epochs(trained.history) == [1, 2, 3]
    _assert_weights(trained.model, weights_by_epoch[0])
    # A run that has stopped early stays so, and gives the same model.
    again = run()
    assert again.history == trained.history
    _assert_weights(again.model, weights_by_epoch[0])
    # More epochs, which are worse: the model stays.
    more = _train(dataset, run_dir, epochs=4)
    assert (more.best_epoch, len(more.history), len(weights_by_epoch)) == (1, 4, 4)
    _assert_weights(more.model, weights_by_epoch[0])
    assert not np.allclose(weights_by_epoch[0][0], weights_by_epoch[3][0])
    assert read_exported(str(run_dir)) == (1, 4, 1)

    # What is exported is that model, too.
    run_fn(make_fn_args(dataset, tmp_path, {"darkroom": _options(epochs=4).to_dict()}))
    assert read_exported(str(run_dir)) == (1, 4, 1)
    expected = b"".join(each.tobytes() for each in weights_by_epoch[0])
    assert (tmp_path / "serving" / "saved_model.pb").read_bytes() == expected


@pytest.mark.usefixtures("quick_loop")
def test_a_training_without_a_finite_loss_exports_no_model(dataset, tmp_path, monkeypatch):
    config = {"darkroom": _options(epochs=2).to_dict()}
    _evaluate_to(monkeypatch, [math.nan, math.inf])
    for _ in range(2):  # Nothing is left to train the second time.
        with pytest.raises(DataError, match="val_loss is not a finite number in any of 2 epochs"):
            run_fn(make_fn_args(dataset, tmp_path, config))
    assert not (tmp_path / "serving").exists()
    assert _epochs(json.loads((tmp_path / "run" / "history.json").read_text())) == [1, 2]


@pytest.mark.usefixtures("quick_loop")
def test_a_compiled_model_stays_as_it_is(dataset, tmp_path):
    trained = _train(dataset, tmp_path / "run", epochs=1, model="own_models:make_compiled")
    assert isinstance(trained.model.optimizer, keras.optimizers.SGD)


@pytest.mark.parametrize("loop", ["fit", pytest.param("custom", marks=pytest.mark.long)])
def test_mixup_trains_on_mixed_labels_and_is_judged_by_whole_ones(dataset, tmp_path, loop):
    values = {"epochs": 2, "loop": loop, "learning_rate": 0.3}
    trained = _train(dataset, tmp_path / "mixed", augment="mixup=0.4", **values)
    last = trained.history[-1]
    assert trained.best_epoch == 2
    assert set(last) == {"epoch", "accuracy", "loss", "val_accuracy", "val_loss"}
    assert last["loss"] < trained.history[0]["loss"]
    data = input_fn(f"{dataset}/Split-eval/*", _options().input_options, training=False)
    pixels, labels = (np.concatenate(part) for part in zip(*data, strict=True))
    scores = trained.model(pixels).numpy()
    assert last["val_accuracy"] == np.mean(scores.argmax(axis=1) == labels)
    expected = -np.log(scores[np.arange(len(labels)), labels]).mean()
    assert last["val_loss"] == pytest.approx(expected, rel=1e-5)


def test_mixup_rejects_a_model_that_was_compiled_for_numbers(own_models, monkeypatch):
    vectors = {"loss": "categorical_crossentropy"}
    sparse = {
        "loss": keras.losses.SparseCategoricalCrossentropy(),
        "metrics": [keras.metrics.SparseCategoricalAccuracy()],
    }

    def make_parts_of(changed):
        make = functools.partial(_make_compiled, **{**vectors, **changed})
        monkeypatch.setattr(own_models, "own", make, raising=False)
        return make_parts(_options(augment="mixup", model="own_models:own"), LabelHead(2), 1)

    for part, value in sparse.items():
        with pytest.raises(UsageError, match=r"own_models:own comes compiled with a sparse loss"):
            make_parts_of({part: value})
    assert isinstance(make_parts_of({}).trained.optimizer, keras.optimizers.SGD)


@pytest.fixture(scope="module")
def first(dataset, tmp_path_factory):
    """The result of one epoch, and its folder."""
    folder = tmp_path_factory.mktemp("first")
    with pytest.MonkeyPatch.context() as patch:
        use_quick_loop(patch)
        return _train(dataset, folder, epochs=1), folder


@pytest.fixture
def run_dir(first, tmp_path):
    """A copy of that folder."""
    return shutil.copytree(first[1], tmp_path / "run")


def test_the_checkpoint_of_another_training_is_an_error(dataset, run_dir):
    for name, value, now in (
        ("model", "small_cnn", "small_cnn"),
        ("image_size", (16, 16), "16x16"),
        ("label_smoothing", 0.1, "0.1"),
    ):
        was = {"image_size": "8x8", "label_smoothing": "0"}.get(name, ".*")
        expected = rf"belongs to another training: {name} was {was}, now {now}\."
        with pytest.raises(OutputError, match=expected):
            _train(dataset, run_dir, epochs=2, **{name: value})


def test_epochs_that_were_evaluated_on_other_data_are_not_compared(dataset, run_dir):
    with pytest.raises(OutputError, match="was evaluated on different data"):
        _train(dataset, run_dir, epochs=2, splits=("train", "train"))


def test_a_checkpoint_that_does_not_fit_is_an_error(own_models, dataset, run_dir, monkeypatch):
    # The same name, but another model.
    monkeypatch.setattr(own_models, "tiny", make_random)
    with pytest.raises(UsageError, match="is of another model or number of labels"):
        _train(dataset, run_dir, epochs=2, model="own_models:tiny")


@pytest.mark.usefixtures("quick_loop")
def test_changed_options_are_reported_and_used(dataset, first, run_dir, monkeypatch):
    notes = []
    monkeypatch.setattr(progress, "note", notes.append)
    second = _train(dataset, run_dir, epochs=2, learning_rate=1e-12, batch_size=5)
    assert notes == [
        "Resumes after epoch 1 with other options: batch_size was 4, now 5, "
        "learning_rate was 0.1, now 1e-12."
    ]
    # A rate this small does not change the weights.
    for before, after in zip(first[0].model.weights, second.model.weights, strict=True):
        np.testing.assert_allclose(after, before, atol=1e-9)


def test_labels_come_from_the_root_of_the_examples(helpers, write_dataset, changed, tmp_path):
    dataset = changed
    patterns = [f"{dataset}/Split-train/*", f"{dataset}/Split-eval/*"]
    assert read_example_labels(patterns) == ["dark", "light"]
    other = dataset.rename(tmp_path / "other")
    dataset = write_dataset({"train": helpers.make_rows(4)}, labels=("light", "dark"))
    with pytest.raises(DataError, match=r"The label maps of .*dataset and .*other differ"):
        read_example_labels([f"{other}/Split-train/*", *patterns])
    helpers.write_split(tmp_path / "others", "train", [])
    with pytest.raises(DataError, match=r"no dataset\.json in .*others"):
        read_example_labels([f"{tmp_path}/others/Split-train/*"])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"image_size": [8, 8], "epoch": 3}, "no option 'epoch'. Did you mean epochs?"),
        ({"image_size": [8, 8], "zzz": 3}, "no option 'zzz'. Options: batch_size, resize,"),
        ({"epochs": 3}, "needs the option image_size"),
        ({"image_size": [8, 8], "epochs": 0}, "epochs is 0, expected a whole number"),
    ],
)
def test_wrong_training_options_are_named(values, message):
    with pytest.raises(UsageError) as caught:
        TrainingOptions.from_dict(values)
    assert message in str(caught.value)


@pytest.mark.parametrize("config", [None, {}, "{}", {"epochs": 3}])
def test_custom_config_without_our_key_is_an_error(dataset, tmp_path, config):
    with pytest.raises(UsageError, match=r"custom_config is .* expected a dict with 'darkroom'"):
        run_fn(make_fn_args(dataset, tmp_path, config))


def test_the_trainer_verifies_hashes_when_asked_to(changed, tmp_path):
    path = changed / "Split-train" / "data_tfrecord-00001-of-00002"
    data = path.read_bytes()
    path.write_bytes(data[:60] + bytes([data[60] ^ 1]) + data[61:])
    config = {"darkroom": _options(verify=True).to_dict()}
    with pytest.raises(DataError, match=r"(?s)Split-train/.*has the right length"):
        run_fn(make_fn_args(changed, tmp_path, config))
