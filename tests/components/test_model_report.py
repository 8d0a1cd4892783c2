from __future__ import annotations

import json
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format
from tensorflow_model_analysis.proto import validation_result_pb2
from tfx.types import standard_artifacts

from darkroom.components.artifacts import ModelPage, ValidationReport
from darkroom.components.model_report import executor
from darkroom.components.model_report.evaluation import (
    SplitMetrics,
    read_failures,
    read_split_metrics,
)
from darkroom.components.system_artifacts import HTML, ClassificationMetrics, Metrics
from darkroom.errors import DataError
from darkroom.evaluation.report.facts import Facts, encode_facts
from darkroom.evaluation.report.result import Slice
from darkroom.steps.places import MOUNTS_VARIABLE
from darkroom.targets.label.confusion import OTHER_CLASSES, make_matrix
from darkroom.training.export import export_model
from darkroom.validation.report.dataset_report import DatasetReport

pytestmark = [pytest.mark.tfx, pytest.mark.usefixtures("simple_decoder")]

CONFUSIONS = {(0, 0): 5.0, (0, 1): 1.0, (1, 1): 4.0, (2, 0): 2.0}


def test_rows_are_the_true_classes_in_the_order_of_the_labels():
    assert make_matrix(CONFUSIONS, ["cat", "dog", "owl"]).encode() == {
        "annotationSpecs": [{"displayName": "cat"}, {"displayName": "dog"}, {"displayName": "owl"}],
        "rows": [{"row": [5.0, 1.0, 0.0]}, {"row": [0.0, 4.0, 0.0]}, {"row": [2.0, 0.0, 0.0]}],
    }


def test_many_classes_are_cut_to_those_with_mistakes_without_losing_examples():
    confusions = {(number, number): 3.0 for number in range(80)} | {(70, 75): 2.0, (79, 70): 1.0}
    matrix = make_matrix(confusions, [str(number) for number in range(80)]).encode()
    names = [each["displayName"] for each in matrix["annotationSpecs"]]
    rows = [row["row"] for row in matrix["rows"]]
    assert len(names) == len(rows) == 50
    assert {len(row) for row in rows} == {50}
    assert names[:3] == ["0", "1", "2"]
    assert names[-4:] == ["70", "75", "79", OTHER_CLASSES]
    assert rows[names.index("70")][names.index("75")] == 2.0
    assert rows[names.index("79")][names.index("70")] == 1.0
    assert rows[-1][-1] == 31 * 3.0
    assert sum(map(sum, rows)) == 80 * 3.0 + 3.0


def test_a_class_without_a_label_is_an_error():
    with pytest.raises(DataError, match=r"has classes \[2\], the data only 2 labels"):
        make_matrix(CONFUSIONS, ["cat", "dog"])


@pytest.mark.parametrize(
    ("read", "name"),
    [(read_split_metrics, "eval_config.json"), (read_failures, "validations.tfrecord")],
)
def test_a_damaged_evaluation_is_named(tmp_path, read, name: str):
    (tmp_path / name).write_text("{")
    with pytest.raises(DataError, match=f"The evaluation in {tmp_path} is damaged: .") as error:
        read(str(tmp_path))
    assert "--no-cache" in error.value.hint


def test_an_error_of_the_machine_does_not_make_an_evaluation_damaged(tmp_path, monkeypatch):
    def fail(folder):
        raise RuntimeError(f"{folder}: Permission denied")

    monkeypatch.setattr("tensorflow_model_analysis.load_eval_result", fail)
    with pytest.raises(RuntimeError, match="Permission denied"):
        read_split_metrics(str(tmp_path))


def write_validation(folder: Path) -> None:
    """Writes the result of an evaluation as TFMA does: four bounds were missed."""
    bounds = (
        "value_threshold { lower_bound { value: 0.6 } } } "
        "metric_value { double_value { value: 0.45",
        "change_threshold { direction: HIGHER_IS_BETTER absolute { value: -0.01 } } } "
        "metric_value { double_value { value: -0.03",
        "change_threshold { direction: LOWER_IS_BETTER relative { value: 0.1 } } } "
        "metric_value { double_value { value: 0.25",
        "change_threshold { direction: HIGHER_IS_BETTER absolute { value: -0.0 } } } "
        "metric_value { double_value { value: -0.5",
    )
    failures = "".join(
        f'failures {{ metric_key {{ name: "accuracy" }} metric_threshold {{ {each} }} }} }} '
        for each in bounds
    )
    failures += 'failures { metric_key { name: "loss" } message: "Metric not found." }'
    text = f"metric_validations_per_slice {{ {failures} }}"
    result = text_format.Parse(text, validation_result_pb2.ValidationResult())
    with tf.io.TFRecordWriter(str(folder / "validations-00000-of-00001.tfrecord")) as writer:
        writer.write(result.SerializeToString())


def test_a_model_that_did_not_pass_is_told_with_values_and_bounds(tmp_path: Path):
    assert read_failures(str(tmp_path)) == ()
    write_validation(tmp_path)
    assert read_failures(str(tmp_path)) == (
        "accuracy is 0.4500 (needed at least 0.6)",
        "accuracy differs by -0.0300 from the model before (needed at least -0.01)",
        "accuracy differs by 0.2500 from the model before (needed at most 0.1 times its value)",
        "accuracy differs by -0.5000 from the model before (needed at least 0)",
        "loss: Metric not found.",
    )


def _report(new_artifact, monkeypatch, evaluation: SplitMetrics, split: str = "eval"):
    report = new_artifact(ValidationReport)
    labels = ("cat", "dog", "owl")
    text = DatasetReport(20, 18, 0, {}, labels, {"train": 6, "eval": 12}, {}, {}).to_json()
    Path(report.uri, "report.json").write_text(text)
    monkeypatch.setattr(executor, "read_split_metrics", lambda folder: evaluation)
    metrics, matrix = new_artifact(Metrics), new_artifact(ClassificationMetrics)
    scored = new_artifact(standard_artifacts.ModelEvaluation)
    if split:
        scored.set_string_custom_property("split", split)
    executor.Executor().Do(
        {
            "evaluation": [scored],
            "report": [report],
        },
        {"metrics": [metrics], "classification_metrics": [matrix]},
        {},
    )
    return metrics, matrix


def test_numbers_and_matrix_are_in_properties_and_files(new_artifact, monkeypatch):
    # NaN and infinity are not JSON, and a backend cannot record such metrics.
    found = {
        "sparse_categorical_accuracy": 0.75,
        "example_count": 12.0,
        "loss": float("nan"),
        "worst": float("inf"),
    }
    evaluation = SplitMetrics(found, CONFUSIONS)
    metrics, matrix = _report(new_artifact, monkeypatch, evaluation)
    expected = {
        "eval_accuracy": 0.75,
        "train_records": 6.0,
        "eval_records": 12.0,
        "passed": 1.0,
    }
    assert {name: metrics.get_float_custom_property(name) for name in expected} == expected
    assert json.loads(Path(metrics.uri, "metrics.json").read_text()) == expected
    assert not metrics.has_custom_property("loss")
    shown = matrix.get_json_value_custom_property("confusionMatrix")
    assert shown == make_matrix(CONFUSIONS, ["cat", "dog", "owl"]).encode()
    assert json.loads(Path(matrix.uri, "confusion_matrix.json").read_text()) == shown


@pytest.mark.parametrize(
    ("split", "name"), [("test", "test_accuracy"), ("", "sparse_categorical_accuracy")]
)
def test_a_number_of_evaluator_is_called_after_the_split_it_scored(
    new_artifact, monkeypatch, split, name
):
    evaluation = SplitMetrics({"sparse_categorical_accuracy": 0.75}, CONFUSIONS)
    metrics, _ = _report(new_artifact, monkeypatch, evaluation, split)
    assert metrics.get_float_custom_property(name) == 0.75
    assert not metrics.has_custom_property("eval_accuracy")


def _export_first_label(folder: Path, labels: list[str]) -> None:
    """Writes a model that always says the first label."""
    inputs = keras.Input((6, 5, 3), dtype="uint8")
    mean = keras.layers.GlobalAveragePooling2D()(keras.layers.Rescaling(0.0)(inputs))
    outputs = keras.layers.Softmax()(mean + np.array([2.0, 0.0, 0.0], np.float32))
    export_model(keras.Model(inputs, outputs), labels, (6, 5), str(folder))


def test_the_page_of_the_model_is_beside_the_numbers(
    new_artifact, converted, monkeypatch, tmp_path: Path
):
    kinds = {
        "evaluation": standard_artifacts.ModelEvaluation,
        "report": ValidationReport,
        "model": standard_artifacts.Model,
        "model_run": standard_artifacts.ModelRun,
    }
    given = {key: [new_artifact(kind)] for key, kind in kinds.items()}
    given["examples"] = [converted["examples"]]
    made = {"metrics": Metrics, "classification_metrics": ClassificationMetrics}
    made |= {"page": ModelPage, "model_html": HTML}
    outputs = {key: [new_artifact(kind)] for key, kind in made.items()}
    labels = ["cat", "dog", "owl"]
    text = DatasetReport(30, 30, 0, {}, tuple(labels), {"train": 24, "eval": 6}, {}, {}).to_json()
    Path(given["report"][0].uri, "report.json").write_text(text)
    monkeypatch.setenv(MOUNTS_VARIABLE, str(tmp_path))
    given["model"][0].uri = str(tmp_path / "minio" / "bucket" / "model")
    _export_first_label(Path(given["model"][0].uri, "Format-Serving"), labels)
    history = ({"epoch": 1, "loss": 0.5, "val_loss": 0.25},)
    facts = Facts({"model": "own:first"}, history, 1)
    Path(given["model_run"][0].uri, "facts.json").write_bytes(encode_facts(facts))
    write_validation(Path(given["evaluation"][0].uri))
    given["evaluation"][0].set_string_custom_property("split", "eval")
    slices = (Slice("camera", "<old>", 2, 0.5), Slice("camera", "new", 4, 0.25))
    # Evaluator scored other records than the page shows.
    evaluation = SplitMetrics({"sparse_categorical_accuracy": 0.25}, CONFUSIONS, slices)
    monkeypatch.setattr(executor, "read_split_metrics", lambda _: evaluation)

    executor.Executor().Do(given, outputs, {})
    folder = Path(outputs["page"][0].uri)
    names = ["evaluation.json", "model.html", "model.md"]
    assert sorted(path.name for path in folder.iterdir()) == names
    found = json.loads((folder / "evaluation.json").read_text())
    # In a cluster, the folder of the task is gone when somebody reads it.
    assert found["evaluation"]["model_dir"] == "minio://bucket/model/Format-Serving"
    # The data has no test split.
    assert (found["evaluation"]["split"], found["evaluation"]["records"]) == ("eval", 6)
    assert found["facts"]["recipe"] == {"model": "own:first"}
    bound = "on the eval split, accuracy is 0.4500 (needed at least 0.6)"
    assert found["evaluation"]["notes"][0].startswith(
        f"The model did not pass its evaluation: {bound}; "
    )
    assert found["evaluation"]["missed"][0] == bound
    page = (folder / "model.html").read_text()
    assert f"Not good enough: {bound}, and 4 more bounds missed" in page
    assert "own:first" in page
    assert "Columns, on the eval split" in page
    assert page.index("0.250") < page.index("&lt;old&gt;")
    assert "| camera | new | 0.250 | 4 |" in (folder / "model.md").read_text()
    assert [each["value"] for each in found["evaluation"]["slices"]] == ["<old>", "new"]
    assert outputs["model_html"][0].uri.endswith("/model.html")
    assert Path(outputs["model_html"][0].uri).read_text() == page
    accuracy = found["evaluation"]["accuracy"]
    assert outputs["page"][0].get_float_custom_property("accuracy") == accuracy
    assert outputs["metrics"][0].get_float_custom_property("eval_accuracy") == accuracy
    assert outputs["metrics"][0].get_float_custom_property("eval_macro_recall") == 1 / 3
    assert outputs["metrics"][0].get_float_custom_property("passed") == 0
    drawn = outputs["classification_metrics"][0]
    assert drawn.get_json_value_custom_property("display_name") == "model on the eval split"
    matrix = drawn.get_json_value_custom_property("confusionMatrix")
    shown = found["evaluation"]["matrix"]
    assert [each["row"] for each in matrix["rows"]] == shown["rows"]
    assert [each["displayName"] for each in matrix["annotationSpecs"]] == labels
    assert sum(map(sum, shown["rows"])) == 6


def test_an_evaluation_without_a_matrix_writes_none(new_artifact, monkeypatch):
    _, matrix = _report(new_artifact, monkeypatch, SplitMetrics({"accuracy": 0.75}, {}))
    assert not matrix.has_custom_property("confusionMatrix")
    assert list(Path(matrix.uri).iterdir()) == []
