"""What a task is told by Kubeflow: values of the right kind, and one sentence for what is wrong."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys

import pytest

import darkroom
from darkroom.errors import UsageError
from darkroom.kfp.execution import parse_execution, parse_parameters
from darkroom.kfp.task import main
from darkroom.options.conversion import ConversionOptions
from darkroom.options.fields import list_options
from darkroom.options.training import TrainingFields
from darkroom.steps.known import STEPS
from darkroom.steps.places import find_artifact_place
from darkroom.training.train import make_options

CONVERT, TRAIN = STEPS["convert_images"], STEPS["train_classifier"]
VALIDATE = STEPS["validate_dataset"]


def test_numbers_come_as_floats_and_what_is_empty_stands_for_none():
    values = {
        "data": "a.csv",
        "seed": 4.0,
        "resize_short_side": 0.0,
        "columns": {},
        "label_map": "",
    }
    found = parse_parameters(values, CONVERT)
    assert (found["seed"], type(found["seed"])) == (4, int)
    assert (found["resize_short_side"], found["columns"], found["label_map"]) == (None, None, None)
    assert (found["max_rejects"], found["split_ratios"]) == (0.01, None)
    assert found.keys() == {each.name for each in CONVERT.parameters}


def test_what_the_sdk_adds_is_ignored():
    values = {"data": "b/a.csv", "pipelinechannel--folder": "b", "pipelinechannel--each-Output": 3}
    assert parse_parameters(values, CONVERT) == parse_parameters({"data": "b/a.csv"}, CONVERT)


def test_a_text_is_a_number_only_where_one_is_expected():
    values = {"image_size": ["24", 32.0], "epochs": "3", "learning_rate": "1e-05", "weights": "7"}
    found = parse_parameters({**values, "fit_minutes": "0"}, TRAIN)
    assert {name: found[name] for name in values} == {
        "image_size": [24, 32], "epochs": 3, "learning_rate": 1e-05, "weights": "7",
    }  # fmt: skip
    assert (type(found["epochs"]), found["fit_minutes"]) == (int, None)
    assert parse_parameters({"expected_labels": ["7", "007"]}, VALIDATE)["expected_labels"] == [
        "7",
        "007",
    ]


@pytest.mark.parametrize(
    ("text", "number"),
    [("12345678901234567", 12345678901234567), ("-7", -7), (" 8", 8), ("+3.0", 3)],
)
def test_a_text_is_exactly_its_whole_number(text, number):
    assert parse_parameters({"data": "a.csv", "seed": text}, CONVERT)["seed"] == number


@pytest.mark.parametrize("text", ["", "nan", "1e999", "9" * 5000, "0x3", "3.5"])
def test_a_text_that_is_not_a_whole_number_is_refused(text):
    with pytest.raises(UsageError, match=r"The parameter epochs is .*, expected a whole number"):
        parse_parameters({"epochs": text}, TRAIN)


def test_a_zero_that_is_a_value_stays():
    found = parse_parameters({"fine_tune_epochs": 0.0, "fit_minutes": 0.0}, TRAIN)
    assert (found["fine_tune_epochs"], found["fit_minutes"]) == (0, None)
    assert parse_parameters({"fine_tune_epochs": -1.0}, TRAIN)["fine_tune_epochs"] is None
    assert parse_parameters({}, TRAIN)["fine_tune_epochs"] is None


def list_defaults(function) -> dict:
    """The defaults of a function of the core; what `options` has instead of its arguments."""
    known = {n: each.default for n, each in inspect.signature(function).parameters.items()}
    if "options" not in known:
        return known
    del known["options"]
    return known | {each.name: each.default for each in list_options(ConversionOptions)}


def test_the_defaults_are_those_of_the_core():
    """The core has the defaults, so a parameter that is not given is what the core would take."""
    for function, step in ((darkroom.convert, CONVERT), (darkroom.validate, VALIDATE)):
        known = list_defaults(function)
        names = known.keys() - {"output_dir", "overwrite"}
        shared = [each for each in step.parameters if each.name in names]
        assert len(shared) > 5
        for each in shared:
            default = known[each.name]
            # The core takes None for an empty table, too.
            default = {} if each.name == "policies" else default
            default = list(default) if isinstance(default, tuple) else default
            # The core takes None for what the conversion allowed, which is this in most cases.
            default = 0.01 if each.name == "max_rejects" else default
            assert each.parse(each.default) == default


def test_every_option_of_the_core_is_a_parameter():
    left_out = {
        # Not of one task, or what the artifacts are instead.
        "convert": {"source", "runner", "project", "region", "wait", "beam_options", "describe",
                    "more"},
        "validate": {"directory", "report_dir", "results", "annotations"},
    }  # fmt: skip
    for function, step in ((darkroom.convert, CONVERT), (darkroom.validate, VALIDATE)):
        options = set(list_defaults(function)) - left_out[function.__name__]
        assert options <= {each.name for each in step.parameters}
    options = {each.name for each in list_options(TrainingFields)}
    assert options <= {each.name for each in TRAIN.parameters}
    values = parse_parameters({}, TRAIN)
    assert make_options({name: values[name] for name in options}) == make_options({})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "The task needs the parameter data."),
        ({"data": 3.0}, "The parameter data is 3.0, expected text."),
        ({"data": "a", "seed": 1.5}, "The parameter seed is 1.5, expected a whole number."),
        (
            {"data": "a", "overwrite": "no"},
            "The parameter overwrite is 'no', expected true or false.",
        ),
        (
            {"data": "a", "allowed_roots": "x"},
            "The parameter allowed_roots is 'x', expected a list.",
        ),
        ({"data": "a", "columns": ["x"]}, "The parameter columns is ['x'], expected a table."),
        ({"data": "a", "sed": 1.0}, "convert_images of this version has no parameter 'sed'."),
    ],
)
def test_a_wrong_parameter_is_named(values, message):
    with pytest.raises(UsageError) as caught:
        parse_parameters(values, CONVERT)
    assert caught.value.message == message


@pytest.mark.parametrize("text", ["", "[]", '{"outputs": {}}', '{"outputs": {"outputFile": 3}}'])
def test_what_is_not_an_executor_input(text):
    with pytest.raises(UsageError):
        parse_execution(text, STEPS["inspect_dataset"])


def test_a_component_of_another_version(cluster):
    given, _ = cluster.make_input("verify_dataset", {}, {"dataset_uri": "x"})
    del given["outputs"]["parameters"]["passed"]
    with pytest.raises(
        UsageError, match="verify_dataset of this version has passed, which the task"
    ):
        parse_execution(json.dumps(given), STEPS["verify_dataset"])


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("verify_dataset", {}, "The task was given neither dataset nor dataset_uri."),
        ("convert_images", {"data": "a.csv", "transfer": "both"},
         "transfer is 'both', expected one of launcher, direct."),
        ("train_classifier", {"dataset_uri": "x", "epochs": 0.0}, "epochs is 0"),
        ("evaluate_clasifier", {}, "There is no component 'evaluate_clasifier'."),
    ],
)  # fmt: skip
def test_bad_input_is_a_sentence_and_exit_code_2(cluster, capfd, name, values, message):
    if name in STEPS:
        done = cluster.run(name, **values)
        code, error = done.code, done.error
    else:
        code = main([name, "--executor_input", "{}"])
        error = json.loads(capfd.readouterr().err.splitlines()[-1])["error"]
    assert (code, error["code"], error["component"]) == (2, "usage", name)
    assert error["message"].startswith(message)


def test_a_task_loads_neither_kfp_nor_tfx_nor_tensorflow():
    code = (
        "import sys, darkroom.kfp.task\n"
        "print({'kfp', 'tfx', 'tensorflow', 'apache_beam', 'yaml'} & {*sys.modules})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_on_vertex_nothing_is_copied(monkeypatch):
    for name in ("DARKROOM_MOUNTS", "KFP_POD_NAME"):
        monkeypatch.delenv(name, raising=False)
    assert find_artifact_place("gs://bucket/run/dataset") == "gs://bucket/run/dataset"
    assert find_artifact_place("minio://bucket/run/dataset") == "/minio/bucket/run/dataset"
    assert find_artifact_place("/here/dataset") == "/here/dataset"
    monkeypatch.setenv("KFP_POD_NAME", "pod-1")
    assert find_artifact_place("gs://bucket/run/dataset") == "/gcs/bucket/run/dataset"
