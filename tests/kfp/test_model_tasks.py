"""The components of models, run as Kubeflow's launcher runs them."""

from __future__ import annotations

import json
import re
import shutil
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import darkroom
from darkroom.cli import main
from darkroom.dataset.commit import read_dataset

from ..evaluation.conftest import COLORS, exported, model  # noqa: F401
from ..pictures import encode
from ..targets.conftest import FLAGS, datasets, listed  # noqa: F401
from ..targets.served import write_model
from .tasks import Artifact

pytestmark = [pytest.mark.tensorflow, pytest.mark.usefixtures("simple_decoder")]


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Pictures of three colors, of which the model finds all but two in the test split."""
    rows = {f"{split}/{name}/{n}.png": name for name in COLORS for split in ("train", "eval")
            for n in range(3)}  # fmt: skip
    rows |= {f"test/red/{n}.png": "red" for n in range(4)}
    rows |= {f"test/green/{n}.png": "green" for n in range(3)}
    rows |= {f"test/blue/{n}.png": "green" for n in range(2)}
    pictures = tmp_path_factory.mktemp("pictures")
    for number, (path, color) in enumerate(rows.items()):
        (pictures / path).parent.mkdir(parents=True, exist_ok=True)
        pixels = np.full((12, 9, 3), COLORS[color]) - number
        # A JPEG is converted without a process of a decoder.
        (pictures / path).write_bytes(encode(pixels.astype(np.uint8), "JPEG"))
    folder = tmp_path_factory.mktemp("converted") / "records"
    darkroom.convert(pictures, folder)
    return folder


@pytest.fixture
def dataset(cluster, records):
    made = Artifact("minio://mlpipeline/v2/artifacts/images/run-1/convert/1/dataset")
    shutil.copytree(records, cluster.find(made))
    return made


@pytest.fixture
def given(cluster, model, dataset):  # noqa: F811
    made = Artifact("minio://mlpipeline/v2/artifacts/images/run-1/train/1/trained_model")
    shutil.copytree(model, cluster.find(made))
    return {"model": made, "dataset": dataset}


def test_an_evaluation_hands_over_numbers_matrix_and_page(cluster, given):
    done = cluster.run("evaluate_classifier", given, min_accuracy=0.9, fail=False)
    assert done.parameters == {
        "passed": False,
        "score": pytest.approx(7 / 9),
        "accuracy": pytest.approx(7 / 9),
    }
    numbers = done.artifacts["evaluation_metrics"].metadata
    assert 0 < numbers.pop("test_calibration_error") < 1
    assert numbers == {
        "test_accuracy": done.parameters["accuracy"],
        "test_macro_f1": pytest.approx((0 + 3 / 4 + 1) / 3),
        "test_macro_recall": pytest.approx(2 / 3),
        "test_records": 9,
        "passed": 0.0,
    }
    assert done.artifacts["confusion_matrix"].metadata == {
        "display_name": "model on the test split",
        "confusionMatrix": {
            "annotationSpecs": [{"displayName": name} for name in ("blue", "green", "red")],
            "rows": [{"row": [0.0, 2.0, 0.0]}, {"row": [0.0, 3.0, 0.0]}, {"row": [0.0, 0.0, 4.0]}],
        },
    }
    page = cluster.find(done.artifacts["evaluation_page"]).read_text()
    assert "Confusion" in page
    assert "Not good enough: the accuracy is 0.7778 (needed at least 0.9)" in page
    assert "The model is held to min_accuracy 0.9." in page


def test_a_model_that_is_not_good_enough_stops(cluster, given):
    stopped = cluster.run("evaluate_classifier", given, min_accuracy=0.9, min_recall=0.5)
    assert (stopped.code, stopped.error["code"]) == (1, "data")
    assert stopped.error["message"] == (
        "The model is not good enough on the test split: the accuracy is 0.7778 (needed at least "
        "0.9); the recall of blue is 0.0000 (needed at least 0.5)."
    )
    wrong = cluster.run("evaluate_classifier", given, min_accuracy=1.5)
    assert (wrong.code, wrong.error["message"]) == (
        2,
        "min_accuracy is 1.5, expected a number from 0 to 1.",
    )


def test_new_images_are_predicted_into_a_list_that_is_converted_next(cluster, given, tmp_path):
    paths = []
    for name, color in COLORS.items():
        paths.append(tmp_path / f"{name}.png")
        paths[-1].write_bytes(encode(np.full((12, 9, 3), color, np.uint8), "PNG"))
    (tmp_path / "broken.png").write_bytes(b"?")
    images = [*map(str, paths), f"{tmp_path}/bro*.png"]
    done = cluster.run("predict_images", {"model": given["model"]}, images=images)
    place = done.parameters.pop("predictions_uri")
    assert done.parameters == {"predicted": 3, "failed": 1}
    found = done.artifacts["predictions"]
    assert place == f"{found.uri.replace('minio://', 's3://')}/predictions.jsonl"
    assert found.metadata == done.artifacts["prediction_metrics"].metadata == done.parameters
    file = cluster.find(found) / "predictions.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert {row["image_uri"]: row["label"] for row in rows} == {
        str(path): path.stem for path in paths
    }
    page = cluster.find(done.artifacts["prediction_page"]).read_text()
    assert "broken.png" in page
    assert f"{found.uri}/predictions.jsonl" in page
    next_ = cluster.run("convert_images", data=str(file), split_ratios="100/0/0")
    assert next_.parameters["written"] == 3
    wrong = cluster.run("predict_images", {"model": given["model"]}, images=[str(tmp_path / "no")])
    assert (wrong.code, wrong.error["code"]) == (3, "environment")
    none = cluster.run("predict_images", {"model": given["model"]}, images=[])
    assert (none.code, none.error["message"]) == (2, "No image is given.")


@pytest.mark.parametrize(
    ("kind", "name", "missed"),
    [
        (
            "labels",
            "mean_average_precision",
            "the mean average precision is 0.4444 (needed at least 0.9), and 2 more bounds missed",
        ),
        ("numbers", "r2", "the R² is - (needed at least 0.9)"),
    ],
)
def test_a_model_of_another_kind_has_no_accuracy(
    cluster,
    listed,  # noqa: F811
    tmp_path,
    kind,
    name,
    missed,
):
    records = tmp_path / "records"
    assert main(["convert", str(listed(kind)), "--output-dir", str(records), *FLAGS[kind]]) == 0
    trained = Artifact("minio://mlpipeline/v2/artifacts/images/run-1/train/1/trained_model")
    shutil.copytree(write_model(tmp_path / kind, kind), cluster.find(trained))
    asked = {"dataset_uri": str(records), "min_accuracy": 0.9, "min_recall": 0.5}
    done = cluster.run("evaluate_classifier", {"model": trained}, **asked, fail=False)
    numbers = done.artifacts["evaluation_metrics"].metadata
    assert done.parameters == {
        "passed": False,
        "score": numbers[f"eval_{name}"],
        "accuracy": -1.0,
    }
    assert done.artifacts["confusion_matrix"].metadata == {}
    page = cluster.find(done.artifacts["evaluation_page"]).read_text()
    shown = page.partition("Not good enough: ")[2]
    assert re.sub(r"is -[0-9.]+", "is -", shown).startswith(missed)


def _make_model(num_classes, image_size):
    import keras

    inputs = keras.Input((*image_size, 3), dtype="uint8")
    means = keras.layers.GlobalAveragePooling2D()(keras.layers.Rescaling(1 / 255)(inputs))
    return keras.Model(inputs, keras.layers.Dense(num_classes, activation="softmax")(means))


def test_a_training_hands_over_model_log_and_page(cluster, dataset, monkeypatch):
    monkeypatch.setitem(sys.modules, "own_models", types.SimpleNamespace(make=_make_model))
    given = {"model": "own_models:make", "augment": "none", "image_size": [8.0, 8.0]}
    done = cluster.run("train_classifier", {"dataset": dataset}, epochs=1.0, seed=3.0, **given)
    artifacts = done.artifacts
    folder = cluster.find(artifacts["trained_model"])
    assert {path.name for path in folder.iterdir()} >= {"saved_model.pb", "variables", "assets"}
    facts = artifacts["trained_model"].metadata
    assert (facts["framework"], facts["labels"], facts["split"]) == ("tensorflow", 3, "test")
    assert facts["accuracy"] == done.parameters["accuracy"]
    assert facts["dataset_fingerprint"] == read_dataset(str(cluster.find(dataset))).fingerprint
    files = {path.name for path in cluster.find(artifacts["training_log"]).iterdir()}
    assert {"history.json", "training.json", "model.keras", "tensorboard"} <= files
    assert "checkpoints" not in files
    numbers = artifacts["training_metrics"].metadata
    assert (numbers["epochs"], numbers["test_records"]) == (1, 9)
    assert numbers["test_accuracy"] == done.parameters["accuracy"]
    # Each number says of which split it is.
    assert {"train_accuracy", "train_loss", "eval_accuracy", "eval_loss"} <= numbers.keys()
    assert {name.partition("_")[0] for name in numbers.keys() - {"epochs", "exported_epoch"}} == {
        "train", "eval", "test",
    }  # fmt: skip
    assert "Confusion" in cluster.find(artifacts["model_page"]).read_text()
    # The next task knows how the model was made.
    again = cluster.run(
        "evaluate_classifier", {"model": artifacts["trained_model"], "dataset": dataset}
    )
    assert again.parameters == {"passed": True, **done.parameters}
    page = cluster.find(again.artifacts["evaluation_page"]).read_text()
    assert "is not known" not in page
    # The page of the training has no such line, as it holds the model to nothing.
    assert "The model is held to no bound" in page
    assert artifacts["trained_model"].uri in (folder / "evaluation.json").read_text()
    log = artifacts["training_log"]
    assert f'"{log.uri}"' in (cluster.find(log) / "training.json").read_text()


@pytest.mark.long
def test_a_training_that_was_done_elsewhere_is_taken(cluster, records, tmp_path):
    values = {"dataset_uri": str(records), "epochs": 1, "image_size": [8, 8]}
    kept = str(tmp_path / "kept")
    first = cluster.run("train_classifier", **values, checkpoint_dir=kept)
    result = json.loads((tmp_path / "kept" / "training.json").read_text())["result"]
    assert result["evaluation"]["accuracy"] == first.parameters["accuracy"]
    again = cluster.run("train_classifier", **values, checkpoint_dir=kept)
    digest = first.artifacts["trained_model"].metadata["sha256"]
    assert again.artifacts["trained_model"].metadata["sha256"] == digest


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "name"), [("labels", "mean_average_precision"), ("numbers", "r2")]
)
def test_a_model_of_another_kind_is_trained_and_evaluated(cluster, datasets, kind, name):  # noqa: F811
    given = {"dataset_uri": str(datasets[kind])}
    done = cluster.run("train_classifier", epochs=1, image_size=[8, 8], **given)
    assert done.parameters["accuracy"] == -1
    facts = done.artifacts["trained_model"].metadata
    assert facts["score"] == done.parameters["score"]
    assert facts[kind] == {"labels": 3, "numbers": 2}[kind]
    numbers = done.artifacts["training_metrics"].metadata
    assert numbers[f"eval_{name}"] == done.parameters["score"]
    model = {"model": done.artifacts["trained_model"]}  # noqa: F811
    again = cluster.run("evaluate_classifier", model, split="eval", **given)
    assert again.parameters == {"passed": True, **done.parameters}
    page = cluster.find(again.artifacts["evaluation_page"]).read_text()
    assert "is not known" not in page


def _train(records, output_dir, epochs, sizes=(), **more):
    if epochs == 0:
        raise ValueError("epochs is 0")
    if epochs < 0:
        sys.exit(0)
    if "file" in more:
        Path(more["file"]).read_text()
    if epochs > 1:
        with open(f"{output_dir}/model.pt", "w") as file:
            file.write(json.dumps([epochs, sizes, more]))
    return {"accuracy": np.float32(0.5), "loss": float("nan")} if epochs > 2 else records


def test_a_function_gets_records_and_arguments_and_hands_over_its_files(
    cluster, dataset, monkeypatch
):
    monkeypatch.setitem(sys.modules, "own_training", types.SimpleNamespace(train=_train))

    def run(name="own_training:train", **arguments):
        given = {"function": name, "arguments": arguments}
        return cluster.run("train_with_function", {"dataset": dataset}, **given)

    # Kubeflow carries whole numbers as floats.
    done = run(epochs=3.0, sizes=[8.0, 0.5], other={"depth": 2.0})
    made = done.artifacts["trained_model"]
    assert made.metadata["function"] == "own_training:train"
    fingerprint = read_dataset(str(cluster.find(dataset))).fingerprint
    assert made.metadata["dataset_fingerprint"] == fingerprint
    [file] = cluster.find(made).iterdir()
    assert (file.name, file.read_text()) == ("model.pt", '[3, [8, 0.5], {"other": {"depth": 2}}]')
    assert done.artifacts["training_metrics"].metadata == {"accuracy": 0.5}
    for found, message in (
        (run("own-training"), "function is 'own-training', expected package.module:function."),
        (run("no_such_package.code:train"), "function is 'no_such_package.code:train', but "
         "no_such_package.code cannot be imported: ModuleNotFoundError: No module named"),
        (run("own_training:trane"), "function is 'own_training:trane', but own_training has no "),
        (run(epochs=0), "own_training:train failed: ValueError: epochs is 0 ("),
        (run(epochs=-1), "own_training:train failed: SystemExit: 0 ("),
        (run(), "own_training:train failed: TypeError: _train() missing 1 required"),
        (run(epochs=2), "own_training:train returned '"),
    ):  # fmt: skip
        assert (found.code, found.error["code"]) == (2, "usage")
        assert found.error["message"].startswith(message), found.error
    found = run(epochs=1, file="no-such-file")
    assert (found.code, found.error["message"]) == (3, "no-such-file does not exist.")
    assert f'File "{__file__}", line' in "\n".join(found.printed)
    monkeypatch.setitem(sys.modules, "own_training", types.SimpleNamespace(train=lambda **_: None))
    assert run().error["message"] == "own_training:train wrote no file into output_dir."
