"""Evaluator: which model passes, why another one does not, and what it is compared with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow_model_analysis as tfma
from tfx.components.evaluator import executor as tfx_executor
from tfx.types import standard_artifacts
from tfx.utils import path_utils, proto_utils

from darkroom.components.evaluator import executor, metrics
from darkroom.components.evaluator.executor import find_newest_model
from darkroom.components.evaluator.metrics import fit_config
from darkroom.components.model_report.evaluation import (
    find_score,
    read_failures,
    read_split_metrics,
)
from darkroom.components.pusher import executor as pusher
from darkroom.errors import DataError, UsageError
from darkroom.evaluation.evaluate import evaluate as evaluate_split
from darkroom.pipelines.config import PipelineConfig
from darkroom.pipelines.evaluation import make_eval_config
from darkroom.targets.learned import Learned
from darkroom.targets.scoring import find_scoring
from darkroom.training.export import export_model

from ..pictures import encode
from .conftest import convert_source, write_csv
from .test_model_report import write_validation

pytestmark = [pytest.mark.tfx, pytest.mark.usefixtures("simple_decoder")]

LABELS = ["blue", "green", "red"]
# In eval, what is called blue has a little more green.
PICTURES = {"red": (250, 60, 40), "green": (70, 240, 50), "blue": (40, 150, 140)}
COUNTS = {"red": 6, "green": 3, "blue": 2}


@pytest.fixture
def examples(tmp_path, new_artifact, beam_context):
    """Records of three colors, with a further column."""
    rows: list[tuple[Any, ...]] = [("split", "image_uri", "label", "camera")]
    for split in ("TRAIN", "VALIDATION"):
        for label, color in PICTURES.items():
            for number in range(COUNTS[label]):
                name = f"{split}-{label}-{number}.jpg"
                pixels = np.full((12, 9, 3), color, np.uint8) - np.uint8(number)
                (tmp_path / name).write_bytes(encode(pixels, "JPEG"))
                rows.append((split, name, label, "old" if number == 0 else "new"))
    write_csv(tmp_path / "colors.csv", rows)
    return convert_source(str(tmp_path / "colors.csv"), new_artifact, beam_context)["examples"]


def _export(folder: Path, blue: float = 1.0) -> None:
    """Writes a model that finds the brightest channel, with a factor for blue."""
    inputs = keras.Input((6, 5, 3), dtype="uint8")
    means = keras.layers.GlobalAveragePooling2D()(keras.layers.Rescaling(1 / 255)(inputs))
    scaled = keras.ops.flip(means, axis=1) * np.array([blue, 1, 1], np.float32)
    model = keras.Model(inputs, keras.layers.Softmax()(scaled * 5))
    export_model(model, LABELS, (6, 5), str(folder))


@pytest.fixture
def serving(model) -> Path:
    """The folder of the new model: of a model, TFX's executor alone reads more than its labels."""
    folder = Path(path_utils.serving_model_dir(model.uri))
    (folder / "assets").mkdir(parents=True)
    (folder / "saved_model.pb").touch()
    (folder / "assets/target.json").write_bytes(Learned("label", tuple(LABELS)).encode())
    (folder / "assets/labels.txt").write_text("\n".join(LABELS))
    return folder


@pytest.fixture
def model(new_artifact):
    return new_artifact(standard_artifacts.Model)


@pytest.fixture
def evaluate(examples, model, new_artifact, beam_context, tmp_path):
    def run(baseline: str = "", artifacts: tuple[Any, ...] = (), **options: Any) -> tuple[Any, Any]:
        config = PipelineConfig(data="colors.csv", root=str(tmp_path / "run"), **options)
        evaluation = new_artifact(standard_artifacts.ModelEvaluation)
        blessing = new_artifact(standard_artifacts.ModelBlessing)
        executor.Executor(beam_context).Do(
            {"examples": [examples], "model": [model], "baseline_model": list(artifacts)},
            {"evaluation": [evaluation], "blessing": [blessing]},
            {
                "eval_config": proto_utils.proto_to_json(make_eval_config(config)),
                "example_splits": json.dumps(["eval"]),
                "baseline": baseline,
            },
        )
        return evaluation, blessing

    return run


def test_a_model_that_misses_a_bound_is_not_pushed_and_says_why(
    evaluate, serving, model, new_artifact, tmp_path, monkeypatch
):
    def miss(_: Any, inputs: Any, outputs: Any, __: Any) -> None:
        assert Path(inputs["baseline_model"][0].uri, "Format-Serving").is_dir()
        write_validation(Path(outputs["evaluation"][0].uri))
        outputs["blessing"][0].set_int_custom_property("blessed", 0)

    monkeypatch.setattr(tfx_executor.Executor, "Do", miss)
    for number in ("9", "10"):
        shutil.copytree(serving, tmp_path / "models" / number)
    evaluation, blessing = evaluate(str(tmp_path / "models"), min_accuracy=0.6)
    failures = read_failures(evaluation.uri)
    assert failures[0] == "accuracy is 0.4500 (needed at least 0.6)"
    assert blessing.get_string_custom_property("reasons") == "; ".join(failures)
    assert evaluation.get_string_custom_property("baseline") == f"{tmp_path}/models/10"
    assert evaluation.get_string_custom_property("split") == "eval"
    assert not [path for path in Path(evaluation.uri).iterdir() if path.is_dir()]

    pushed = new_artifact(standard_artifacts.PushedModel)
    destination = {"filesystem": {"base_directory": str(tmp_path / "pushed")}}
    pusher.Executor().Do(
        {"model": [model], "model_blessing": [blessing]},
        {"pushed_model": [pushed]},
        {"push_destination": json.dumps(destination)},
    )
    assert not (tmp_path / "pushed").exists()
    assert pushed.get_int_custom_property("pushed") == 0


# TFMA takes 13 seconds; tests/e2e/test_demo.py has a model that it blesses.
@pytest.mark.long
def test_a_model_is_measured_by_label_and_column_and_compared(evaluate, model, tmp_path):
    """The new one finds no blue."""
    # The one before finds all colors; the oldest is as good as the new one.
    for folder in (path_utils.serving_model_dir(model.uri), tmp_path / "models" / "9"):
        _export(folder)
    _export(tmp_path / "models" / "10", blue=1.2)
    bounds = {"min_accuracy": 0.8, "min_recall": 0.5}
    drops = {"max_accuracy_drop": 0.1, "max_recall_drop": 0.0}
    evaluation, blessing = evaluate(
        str(tmp_path / "models"), slice_columns=("camera",), **bounds, **drops
    )
    failures = read_failures(evaluation.uri)
    assert set(failures) == {
        "the recall of blue is 0.0000 (needed at least 0.5)",
        "the accuracy differs by -0.1818 from the model before (needed at least -0.1)",
        "the recall of blue differs by -1.0000 from the model before (needed at least 0)",
    }
    assert blessing.get_string_custom_property("reasons") == "; ".join(failures)
    assert blessing.get_int_custom_property("blessed") == 0
    found = {
        key: outputs[""][""]["sparse_categorical_accuracy"]["doubleValue"]
        for key, outputs in tfma.load_eval_result(evaluation.uri).slicing_metrics
    }
    assert found == pytest.approx(
        {
            (): 9 / 11,
            (("image/class/text", "blue"),): 0.0,
            (("image/class/text", "green"),): 1.0,
            (("image/class/text", "red"),): 1.0,
            (("camera", "old"),): 2 / 3,
            (("camera", "new"),): 7 / 8,
        }
    )
    slices = {(each.value, each.records) for each in read_split_metrics(evaluation.uri).slices}
    assert slices == {("old", 3), ("new", 8)}


def test_a_model_with_other_labels_is_not_compared(evaluate, serving, model, tmp_path, monkeypatch):
    compared = []
    monkeypatch.setattr(
        tfx_executor.Executor,
        "Do",
        lambda _, inputs, *__: compared.append(inputs["baseline_model"]),
    )
    evaluation, _ = evaluate(artifacts=(model,), max_accuracy_drop=0.0)
    assert evaluation.get_string_custom_property("baseline") == model.uri
    evaluation, _ = evaluate(max_accuracy_drop=0.0)
    assert "none is blessed yet" in evaluation.get_string_custom_property("baseline")
    for number in (1, 2):
        shutil.copytree(serving, tmp_path / f"pushed/{number}")
        if number == 2:
            labels = tmp_path / "pushed/2/assets/target.json"
            labels.write_text(labels.read_text().replace("red", "rot"))
        evaluation, _ = evaluate(str(tmp_path / "pushed"), max_accuracy_drop=0.0)
    assert [len(each) for each in compared] == [1, 0, 1, 0]
    said = evaluation.get_string_custom_property("baseline")
    assert said.startswith("none: the model in ")
    assert said.endswith(" has other labels, or another order of them")


def test_a_column_that_the_records_lack_is_named(evaluate):
    with pytest.raises(DataError, match="The records have no column 'lens' to slice by") as error:
        evaluate(slice_columns=("camera", "lens"))
    assert "camera, image/channels" in error.value.hint


def test_the_newest_complete_version_counts(tmp_path):
    assert find_newest_model(str(tmp_path / "none")) is None
    for name in ("9", "10", "11", "notes"):
        (tmp_path / name).mkdir()
    with pytest.raises(DataError, match=r"There is no model in .*, which has 10, 11, 9, notes"):
        find_newest_model(str(tmp_path))
    for name in ("9", "10"):
        (tmp_path / name / "saved_model.pb").touch()
    assert find_newest_model(str(tmp_path)) == f"{tmp_path}/10"
    assert find_newest_model(f"{tmp_path}/9") == f"{tmp_path}/9"
    shutil.rmtree(tmp_path / "10")
    assert find_newest_model(str(tmp_path)) == f"{tmp_path}/9"


def _make_kind(folder: Path, kind: str) -> tuple[list[tuple[Any, ...]], dict[str, Any], Learned]:
    """Writes gray images; returns the rows of their list, how it is read, and what is learned."""
    rows: list[tuple[Any, ...]] = [("split", "image_uri", "a", "b")]
    for number, split in enumerate(("TRAIN", "VALIDATION", "VALIDATION", "VALIDATION") * 5):
        gray = (37 * number) % 256
        (folder / f"{number}.png").write_bytes(encode(np.full((9, 9, 3), gray, np.uint8)))
        said = (int(gray > 90), int(gray > 160)) if kind == "labels" else (gray / 255, gray / 255)
        rows.append((split, f"{number}.png", *(("", "") if number == 7 else said)))
    if kind == "labels":
        return rows, {"label_columns": ("a", "b")}, Learned("labels", ("a", "b"), (0.5, 0.5))
    return rows, {"target_columns": ("a", "b")}, Learned("numbers", ("a", "b"))


RECORDS = {
    "labels": [
        {"image/class/annotated": np.array([[1]]), "image/class/text": np.array([texts])}
        for texts in ([b"a"], [b"a", b"b"], [b"b"])
    ],
    "numbers": [{"image/target": np.array([[n, 2 * n]], np.float32)} for n in (0.1, 0.4, 0.7)],
}


@pytest.mark.parametrize("kind", RECORDS)
def test_a_model_of_another_kind_is_measured_as_on_its_page(kind: str):
    learned = Learned(kind, ("a", "b"), (0.5, 0.5) if kind == "labels" else ())
    answers = [np.array([[0.9, 0.2]]), np.array([[0.3, 0.6]]), np.array([[0.8, 0.7]])]
    measure = metrics._Measure(metrics.metric_types.MetricKey("measured"), learned)
    parts = [measure.create_accumulator() for _ in answers]
    for part, features, answer in zip(parts, RECORDS[kind], answers, strict=True):
        given = {"get_features": lambda f=features: f, "get_predictions": lambda _, a=answer: a}
        measure.add_input(part, SimpleNamespace(**given))
    [found] = measure.extract_output(measure.merge_accumulators(parts)).values()
    truth = [[1, 0], [1, 1], [0, 1]] if kind == "labels" else [[0.1, 0.2], [0.4, 0.8], [0.7, 1.4]]
    scoring = find_scoring(kind)
    expected = scoring.measure(np.concatenate(answers), np.array(truth, np.float32), learned)
    assert found[scoring.scalars[0]] == pytest.approx(scoring.get_score(expected))


# TFMA takes eight seconds for each.
@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("labels", ["the mean average precision is ", "the lowest recall of a label is "]),
        ("numbers", ["the R² is "]),
    ],
)
def test_other_kinds_are_judged_by_the_score_of_their_page(
    tmp_path, new_artifact, beam_context, kind, said
):
    rows, how, learned = _make_kind(tmp_path, kind)
    write_csv(tmp_path / "list.csv", rows)
    made = convert_source(str(tmp_path / "list.csv"), new_artifact, beam_context, **how)
    inputs = keras.Input((6, 5, 3), dtype="uint8")
    means = keras.layers.GlobalAveragePooling2D()(keras.layers.Rescaling(1 / 255)(inputs))
    # The second answer rises and falls, and so is often wrong.
    answers = keras.ops.concatenate((means[:, :1], 4 * means[:, :1] * (1 - means[:, :1])), 1)
    model = new_artifact(standard_artifacts.Model)
    folder = path_utils.serving_model_dir(model.uri)
    export_model(keras.Model(inputs, answers), learned, (6, 5), folder)
    evaluation = new_artifact(standard_artifacts.ModelEvaluation)
    blessing = new_artifact(standard_artifacts.ModelBlessing)
    bounds = {"min_recall": 1.0} if kind == "labels" else {}
    config = PipelineConfig(data="list.csv", root="run", min_accuracy=0.99, **bounds)
    executor.Executor(beam_context).Do(
        {"examples": [made["examples"]], "model": [model], "baseline_model": []},
        {"evaluation": [evaluation], "blessing": [blessing]},
        {
            "eval_config": proto_utils.proto_to_json(make_eval_config(config)),
            "example_splits": json.dumps(["eval"]),
            "baseline": "",
        },
    )
    expected = evaluate_split(folder, made["examples"].uri, "eval")
    assert 0 < expected.metrics.records < 15
    name, score = find_score(read_split_metrics(evaluation.uri).metrics)
    assert (name, score) == (find_scoring(kind).score_name, pytest.approx(expected.score, abs=1e-6))
    failures = read_failures(evaluation.uri)
    assert [each.partition(" is ")[0] + " is " for each in failures] == said
    assert blessing.get_int_custom_property("blessed") == 0


def test_numbers_have_no_recall_to_bound():
    config = make_eval_config(PipelineConfig(data="list.csv", root="run", min_recall=0.5))
    with pytest.raises(UsageError, match="numbers, which have no recall"):
        fit_config(config, Learned("numbers", ("a",)))
