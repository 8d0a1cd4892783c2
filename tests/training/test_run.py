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
from darkroom.input.graph.decode import decode_image
from darkroom.input.opening import input_fn, open_splits
from darkroom.input.records import RecordSource
from darkroom.options.input import InputOptions
from darkroom.options.training import TrainingOptions
from darkroom.pipelines.local.demo import read_digits
from darkroom.runtime import progress
from darkroom.targets.label.head import LabelHead
from darkroom.training.devices.placement import make_placement
from darkroom.training.models import build_model
from darkroom.training.run import train
from darkroom.training.state.history import read_exported
from darkroom.training.state.training_run import TrainingRun
from darkroom.training.trainer import read_example_labels, run_fn

from ..records import make_rows, write_records
from .quick_loop import QuickLoop

SIZE = (8, 8)
# Keras warns about every dataset of unknown length.
pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.filterwarnings("ignore:Your input ran out of data"),
]


def _make(num_classes, image_size):
    """A small model that is traced quickly."""
    inputs = keras.Input((*image_size, 3), dtype="uint8")
    x = keras.layers.GlobalAveragePooling2D()(keras.layers.Rescaling(1 / 255)(inputs))
    return keras.Model(inputs, keras.layers.Dense(num_classes, activation="softmax")(x))


def _make_compiled(num_classes, image_size):
    model = _make(num_classes, image_size)
    model.compile(keras.optimizers.SGD(0.5), "sparse_categorical_crossentropy")
    return model


@pytest.fixture(scope="module", autouse=True)
def own_models():
    """The models above, by name."""
    module = types.ModuleType("own_models")
    module.make, module.make_compiled = _make, _make_compiled
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "own_models", module)
        yield module


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
    base = {"image_size": SIZE, "model": "own_models:make", "batch_size": 4, "augment": "none"}
    # The rate of a short training that only has to learn something.
    base |= {"learning_rate": 0.1, "schedule": "constant", "warmup_ratio": 0.0}
    return TrainingOptions(**{**base, **values})


def _fn_args(root, tmp_path, config):
    return types.SimpleNamespace(
        train_files=[f"{root}/Split-train/*"],
        eval_files=[f"{root}/Split-eval/*"],
        model_run_dir=str(tmp_path / "run"),
        serving_model_dir=str(tmp_path / "serving"),
        custom_config=config,
    )


def _train(root, run_dir, *, splits=("train", "eval"), **values):
    options = _options(**values)
    placement = make_placement(options.strategy)
    opened = open_splits(open_data([root]).splits)
    training, evaluation = (opened[split] for split in splits)
    return train(
        options,
        placement,
        training=training,
        evaluation=evaluation,
        run_dir=str(run_dir),
    )


def _epochs(history):
    return [entry["epoch"] for entry in history]


@pytest.fixture(scope="module")
def served(dataset, tmp_path_factory, count_commits):
    """A training by `run_fn`, and what was seen of it."""
    folder, opened, calls = tmp_path_factory.mktemp("served"), [], []
    inner = RecordSource.__init__

    def open_source(source, files, *commits):
        opened.append([file.rsplit("/", 2)[1] for file in files])
        inner(source, files, *commits)

    options = _options(epochs=2, learning_rate=0.5, resize="center_crop")
    config = {"darkroom": options.to_dict(), "checkpoint_dir": str(folder / "kept")}
    config["ai_platform_training_args"] = {}
    with pytest.MonkeyPatch.context() as patch, count_commits() as read:
        patch.setattr(progress, "remark", calls.append)
        patch.setattr(RecordSource, "__init__", open_source)
        run_fn(_fn_args(dataset, folder, config))
    return types.SimpleNamespace(
        folder=folder,
        options=options,
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
        run_fn(_fn_args(dataset, tmp_path, config))


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
        return tf.stack([decode_image(tf.constant(each), SIZE, resize) for each in images])

    # Nothing is left to train: this only gives the model.
    options = served.options
    values = {name: getattr(options, name) for name in ("epochs", "learning_rate", "resize")}
    model = _train(dataset, served.folder / "run", **values).model
    np.testing.assert_allclose(found, model(decode("center_crop")), rtol=1e-5)
    assert not np.allclose(found, model(decode("stretch")), rtol=1e-5)
    data = input_fn(f"{dataset}/Split-eval/*", options.input_options, training=False)
    loss = model.evaluate(data, verbose=0, return_dict=True)["loss"]
    assert served.history[-1]["val_loss"] == pytest.approx(loss, rel=1e-5)


@pytest.fixture(scope="module")
def straight(dataset, tmp_path_factory):
    """Two epochs of one batch, which has fewer records than it could: their order is the same."""
    return _train(dataset, tmp_path_factory.mktemp("straight"), epochs=2, batch_size=64)


@pytest.mark.parametrize("cache", ["memory", pytest.param("files", marks=pytest.mark.long)])
def test_a_cache_serves_both_splits_and_every_epoch(
    dataset, straight, tmp_path, monkeypatch, cache
):
    inner = RecordSource._interleave
    read = []

    def interleave(source, options, order):
        read.append(options.record_cache)
        return inner(source, options, order)

    monkeypatch.setattr(RecordSource, "_interleave", interleave)
    where = cache if cache == "memory" else str(tmp_path / "new" / "cache")
    cached = _train(dataset, tmp_path / "run", epochs=2, batch_size=64, record_cache=where)
    for one, two in zip(straight.history, cached.history, strict=True):
        assert one == pytest.approx(two, rel=1e-4)
    assert len(read) == 2
    if cache == "files":
        assert list((tmp_path / "new" / "cache").iterdir()) == []


@pytest.mark.usefixtures("quick_loop")
def test_training_resumes_after_the_last_epoch(dataset, tmp_path, monkeypatch):
    notes: list[str] = []
    monkeypatch.setattr(progress, "note", notes.append)
    straight = _train(dataset, tmp_path / "straight", epochs=2, batch_size=64)
    first = _train(dataset, tmp_path / "run", epochs=1, batch_size=64)
    assert _epochs(first.history) == [1]
    second = _train(dataset, tmp_path / "run", epochs=2, batch_size=64)
    assert _epochs(second.history) == [1, 2]
    assert second.history[:1] == first.history
    # The optimizer's state was restored too: the losses are the same as without a stop.
    losses = [[entry["val_loss"] for entry in run.history] for run in (straight, second)]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)

    done = _train(dataset, tmp_path / "run", epochs=2, batch_size=64)
    assert notes == [
        "Resumes after epoch 1.",
        "Epoch 2 was the last one: nothing is left to train.",
    ]
    assert done.history == second.history
    for one, two in zip(done.model.get_weights(), second.model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.usefixtures("quick_loop", "quick_export")
def test_custom_config_as_json_text_resumes_run_fn(dataset, tmp_path):
    for epochs in (1, 2):
        config = json.dumps({"darkroom": _options(epochs=epochs).to_dict()})
        run_fn(_fn_args(dataset, tmp_path, config))
        history = json.loads((tmp_path / "run" / "history.json").read_text())
        assert _epochs(history) == list(range(1, epochs + 1))


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


@pytest.mark.usefixtures("quick_loop")
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
    run_fn(_fn_args(dataset, tmp_path, {"darkroom": _options(epochs=4).to_dict()}))
    assert read_exported(str(run_dir)) == (1, 4, 1)
    pixels = np.random.default_rng(0).integers(0, 256, (4, *SIZE, 3), dtype=np.uint8)
    images = tf.stack([tf.io.encode_png(each) for each in pixels])
    signature = tf.saved_model.load(str(tmp_path / "serving")).signatures["serving_default"]
    scores = signature(image_bytes=images)["scores"]
    model = _make(2, SIZE)
    expected = []
    for weights in weights_by_epoch:
        model.set_weights(weights)
        expected.append(model(pixels).numpy())
    np.testing.assert_allclose(scores, expected[0], rtol=1e-5)
    assert not np.allclose(scores, expected[-1], rtol=1e-3)


@pytest.mark.usefixtures("quick_loop")
@pytest.mark.parametrize(
    ("losses", "best"),
    [((math.nan, 0.4, 0.3, math.nan), 3), ((0.4, 0.3, 0.3), 2), ((math.inf, 0.3, math.nan), 2)],
)
def test_an_epoch_without_a_finite_loss_is_never_the_best(
    dataset, tmp_path, monkeypatch, weights_by_epoch, losses, best
):
    _evaluate_to(monkeypatch, losses)
    trained = _train(dataset, tmp_path / "run", epochs=len(losses))
    assert trained.best_epoch == best
    assert not np.allclose(weights_by_epoch[0][0], weights_by_epoch[1][0])
    _assert_weights(trained.model, weights_by_epoch[best - 1])


@pytest.mark.usefixtures("quick_loop")
def test_a_training_without_a_finite_loss_exports_no_model(dataset, tmp_path, monkeypatch):
    config = {"darkroom": _options(epochs=2).to_dict()}
    _evaluate_to(monkeypatch, [math.nan, math.inf])
    for _ in range(2):  # Nothing is left to train the second time.
        with pytest.raises(DataError, match="val_loss is not a finite number in any of 2 epochs"):
            run_fn(_fn_args(dataset, tmp_path, config))
    assert not (tmp_path / "serving").exists()
    assert _epochs(json.loads((tmp_path / "run" / "history.json").read_text())) == [1, 2]


@pytest.mark.usefixtures("quick_loop")
def test_a_compiled_model_stays_as_it_is(dataset, tmp_path):
    trained = _train(dataset, tmp_path / "run", epochs=1, model="own_models:make_compiled")
    assert isinstance(trained.model.optimizer, keras.optimizers.SGD)


@pytest.mark.parametrize("loop", ["fit", pytest.param("custom", marks=pytest.mark.long)])
def test_mixup_trains_on_mixed_labels_and_is_judged_by_whole_ones(dataset, tmp_path, loop):
    values = {"epochs": 3, "loop": loop, "learning_rate": 0.3}
    trained = _train(dataset, tmp_path / "mixed", augment="mixup=0.4", **values)
    last = trained.history[-1]
    assert trained.best_epoch == 3
    assert set(last) == {"epoch", "accuracy", "loss", "val_accuracy", "val_loss"}
    assert last["loss"] < trained.history[0]["loss"]
    data = input_fn(f"{dataset}/Split-eval/*", _options().input_options, training=False)
    pixels, labels = (np.concatenate(part) for part in zip(*data, strict=True))
    scores = trained.model.predict(pixels, verbose=0)
    assert last["val_accuracy"] == np.mean(scores.argmax(axis=1) == labels) == 1
    expected = -np.log(scores[np.arange(len(labels)), labels]).mean()
    assert last["val_loss"] == pytest.approx(expected, rel=1e-5)


def test_mixup_rejects_a_model_that_was_compiled_for_numbers(
    dataset, tmp_path, own_models, monkeypatch
):
    options = {"loss": "categorical_crossentropy"}
    sparse = {
        "loss": keras.losses.SparseCategoricalCrossentropy(),
        "metrics": [keras.metrics.SparseCategoricalAccuracy()],
    }

    def make(num_classes, image_size, **changed):
        model = _make(num_classes, image_size)
        model.compile("sgd", **{**options, **changed})
        return model

    for part, value in sparse.items():
        changed = {part: value}
        monkeypatch.setattr(own_models, "own", functools.partial(make, **changed), raising=False)
        with pytest.raises(UsageError, match=r"own_models:own comes compiled with a sparse loss"):
            _train(dataset, tmp_path / "run", augment="mixup", model="own_models:own")
    monkeypatch.setattr(own_models, "own", make)
    values = {"augment": "mixup", "model": "own_models:own", "epochs": 1}
    trained = _train(dataset, tmp_path / "run", **values)
    assert isinstance(trained.model.optimizer, keras.optimizers.SGD)
    assert set(trained.history[0]) == {"epoch", "loss", "val_loss"}


@pytest.fixture(scope="module")
def first(dataset, tmp_path_factory):
    """The result of one epoch, and its folder."""
    folder = tmp_path_factory.mktemp("first")
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
    monkeypatch.setattr(
        own_models,
        "make",
        lambda classes, size: build_model("small_cnn", LabelHead(classes), size),
    )
    with pytest.raises(UsageError, match="is of another model or number of labels"):
        _train(dataset, run_dir, epochs=2, model="own_models:make")


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


def test_a_missing_split_is_an_error(helpers, write_dataset, tmp_path):
    root = write_dataset({"train": helpers.make_rows(8)})
    with pytest.raises(DataError, match=r"No file matches .*eval/"):
        run_fn(_fn_args(root, tmp_path, {"darkroom": _options().to_dict()}))


def test_labels_come_from_the_root_of_the_examples(helpers, write_dataset, changed, tmp_path):
    dataset = changed
    patterns = [f"{dataset}/Split-train/*", f"{dataset}/Split-eval/*"]
    assert read_example_labels(patterns) == ["dark", "light"]
    other = dataset.rename(tmp_path / "other")
    dataset = write_dataset({"train": helpers.make_rows(4)}, labels=("light", "dark"))
    with pytest.raises(DataError, match=r"The label maps of .*dataset and .*other differ"):
        read_example_labels([f"{other}/Split-train/*", *patterns])
    with pytest.raises(DataError, match=r"No file matches .*nowhere/Split-train/"):
        read_example_labels([f"{tmp_path}/nowhere/Split-train/*"])
    helpers.write_split(tmp_path / "others", "train", [])
    with pytest.raises(DataError, match=r"no dataset\.json in .*others"):
        read_example_labels([f"{tmp_path}/others/Split-train/*"])
    (other / "labels.txt").write_text("dark\nlighu\n")
    with pytest.raises(DataError, match=r"other/labels\.txt is damaged: it differs from"):
        read_example_labels([f"{other}/Split-train/*"])
    shard = dataset / "Split-train" / "data_tfrecord-00001-of-00002"
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(DataError, match="data_tfrecord-00001-of-00002"):
        read_example_labels(patterns)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"image_size": [8, 8], "epoch": 3}, "no option 'epoch'. Did you mean epochs?"),
        ({"image_size": [8, 8], "zzz": 3}, "no option 'zzz'. Options: batch_size, resize,"),
        ({"epochs": 3}, "needs the option image_size"),
        ({"image_size": [8, 8], "epochs": 0}, "epochs is 0, expected a whole number"),
        ({"image_size": [8, 8], "epochs": True}, "epochs is True, expected a whole number"),
        ({"image_size": [8, 8], "learning_rate": 0}, "learning_rate is 0, expected a number"),
        ({"image_size": [8, 8], "batch_size": "4"}, "batch_size is '4', expected a whole"),
        ({"image_size": [8, 8], "augment": "spin"}, "augment is 'spin', expected none, or"),
    ],
)
def test_wrong_training_options_are_named(values, message):
    with pytest.raises(UsageError) as caught:
        TrainingOptions.from_dict(values)
    assert message in str(caught.value)


def test_options_survive_json():
    options = _options(early_stopping_patience=3, weights="w.h5", seed=5)
    assert TrainingOptions.from_dict(json.loads(json.dumps(options.to_dict()))) == options


@pytest.mark.parametrize("config", [None, {}, "{}", {"epochs": 3}])
def test_custom_config_without_our_key_is_an_error(dataset, tmp_path, config):
    with pytest.raises(UsageError, match=r"custom_config is .* expected a dict with 'darkroom'"):
        run_fn(_fn_args(dataset, tmp_path, config))


def test_own_run_fn_with_our_input_fn(helpers, tmp_path):
    """As in the documentation: any Examples, with a model and a loop of your own."""
    for split, rows in (("train", helpers.make_rows(24)), ("eval", helpers.make_rows(8, seed=1))):
        records = [
            helpers.make_example({"image/encoded": image, "image/class/label": label})
            for image, label in rows
        ]
        helpers.write_split(tmp_path / "examples", split, records, suffix=".gz")

    def own_run_fn(fn_args):
        options = InputOptions((8, 8), batch_size=4, repeat=None)
        model = sys.modules["own_models"].make(2, options.image_size)
        model.compile(
            keras.optimizers.Adam(0.1), "sparse_categorical_crossentropy", metrics=["accuracy"]
        )
        model.fit(
            input_fn(fn_args.train_files, options, training=True),
            validation_data=input_fn(fn_args.eval_files, options, training=False),
            steps_per_epoch=12,
            epochs=2,
            shuffle=False,
            verbose=0,
        )
        model.export(fn_args.serving_model_dir, verbose=False)
        return model.history.history["val_accuracy"][-1]

    assert own_run_fn(_fn_args(tmp_path / "examples", tmp_path, None)) == 1.0
    assert (tmp_path / "serving" / "saved_model.pb").exists()


# The demo's own test asks the same of the whole pipeline.
@pytest.mark.long
def test_small_cnn_reads_digits(helpers, write_dataset, tmp_path):
    digits, labels = read_digits()
    order = np.random.default_rng(0).permutation(len(labels))
    rows = [(helpers.encode_png(digits[number]), int(labels[number])) for number in order]
    root = write_dataset({"train": rows[:1437], "eval": rows[1437:]}, labels="0123456789")
    options = TrainingOptions(image_size=(16, 16), epochs=8, augment="none")
    opened = open_splits(open_data([root]).splits)
    trained = train(
        options,
        make_placement(options.strategy),
        training=opened["train"],
        evaluation=opened["eval"],
        run_dir=str(tmp_path / "run"),
    )
    assert trained.history[-1]["val_accuracy"] >= 0.97


def test_the_trainer_verifies_hashes_when_asked_to(changed, tmp_path):
    path = changed / "Split-train" / "data_tfrecord-00001-of-00002"
    data = path.read_bytes()
    path.write_bytes(data[:60] + bytes([data[60] ^ 1]) + data[61:])
    config = {"darkroom": _options(verify=True).to_dict()}
    with pytest.raises(DataError, match=r"(?s)Split-train/.*has the right length"):
        run_fn(_fn_args(changed, tmp_path, config))
