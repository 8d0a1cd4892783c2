"""Pipelines as users of KFP write them: values that the SDK builds, pipelines in pipelines, loops.

Without `from __future__ import annotations`: kfp reads the types of a user's component as they are.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import darkroom

from ..trees import read_files

pytest.importorskip("kfp", reason="needs the extra [kfp]")

from kfp import compiler, dsl

from darkroom.kfp import make_component
from darkroom.kfp.execution import parse_execution
from darkroom.options.conversion import ConversionOptions
from darkroom.steps.known import STEPS

from ..pipelines.backend.driver import Task, find_parameters, make_input
from ..pipelines.backend.process import format_command
from ..pipelines.backend.release import V2_17

IMAGE = "registry.example.com/darkroom:1"
convert_images, validate_dataset, inspect_dataset, verify_dataset, train_with_function = (
    make_component(name, IMAGE)
    for name in (
        "convert_images", "validate_dataset", "inspect_dataset", "verify_dataset",
        "train_with_function",
    )
)  # fmt: skip
OWN_TRAINING = """
import json

import darkroom

def train(records, output_dir, **arguments):
    batches = darkroom.load(records, image_size=(9, 7), framework="numpy")["eval"]
    arguments["read"] = sum(len(labels) for _, labels in batches)
    with open(f"{output_dir}/arguments.json", "w") as file:
        json.dump(arguments, file)
    return {"epochs": arguments["epochs"]}
"""


@dsl.component(base_image="python:3.12", install_kfp_package=False)
def count_different(texts: list) -> int:
    return len(set(texts))


@dsl.component(base_image="python:3.12", install_kfp_package=False)
def count_records(dataset: dsl.Input[dsl.Dataset]) -> int:
    return int(dataset.metadata["records"])


@dsl.pipeline(name="records")
def make_records(folder: str, stem: str, short_side: int) -> dsl.Dataset:
    made = convert_images(data=f"{folder}/{stem}.csv", resize_short_side=short_side)
    return made.outputs["dataset"]


def make_check() -> Any:
    """Returns a pipeline with what kfp 2.5 cannot compile: parameters in a list and in a table."""

    @dsl.pipeline(name="check")
    def check(
        folder: str, stem: str, level: str = "warn", split: str = "train", least: int = 20
    ) -> int:
        made = make_records(folder=folder, stem=stem, short_side=4)
        validate_dataset(
            dataset=made.output,
            policies={"small_classes": level, "leakage": "fail"},
            required_splits=[split, "eval"],
            min_class_images=least,
            fail=False,
        )
        with dsl.ParallelFor(items=["train", "eval"]) as each:
            checked = verify_dataset(dataset=made.output)
            inspect_dataset(dataset=made.output, split=each, num_records=3).after(checked)
        count_records(dataset=made.output)
        return count_different(texts=dsl.Collected(checked.outputs["fingerprint"])).output

    return check


@dsl.component(base_image="python:3.12", install_kfp_package=False)
def list_files_of(model: dsl.Input[dsl.Model], metrics: dsl.Input[dsl.Metrics]) -> str:
    import os

    return (
        f"{model.metadata['function']} {os.listdir(model.path)} {int(metrics.metadata['epochs'])}"
    )


def make_training() -> Any:
    """Returns a pipeline in a pipeline that trains by a function."""

    @dsl.pipeline(name="inner")
    def inner(
        dataset: dsl.Input[dsl.Dataset], module: str, epochs: int, rate: float, is_fast: bool
    ) -> str:
        arguments = {
            "epochs": epochs,
            "name": f"run of {epochs}",
            "nested": [{"rate": rate, "is_fast": is_fast}, 3, "3"],
        }
        made = train_with_function(
            dataset=dataset, function=f"{module}:train", arguments=arguments
        ).outputs
        return list_files_of(model=made["trained_model"], metrics=made["training_metrics"]).output

    @dsl.pipeline(name="training")
    def training(
        folder: str, module: str = "own_training", epochs: int = 2, rate: float = 1e-7
    ) -> str:
        made = make_records(folder=folder, stem="images", short_side=0)
        return inner(
            dataset=made.output, module=module, epochs=epochs, rate=rate, is_fast=True
        ).output

    return training


@pytest.fixture
def newer():
    pytest.importorskip("kfp.local.orchestrator", reason="kfp 2.5 has no channels in lists")


def compile_spec(pipeline: Any, folder: Path) -> dict[str, Any]:
    path = folder / "pipeline.yaml"
    compiler.Compiler().compile(pipeline, str(path))
    spec: dict[str, Any] = yaml.safe_load(path.read_text())
    return spec


def list_our_tasks(spec: dict[str, Any], dag: dict[str, Any]) -> Iterator[Task]:
    """Yields the tasks that are darkroom's, also those inside of other tasks."""
    for name, each in dag["tasks"].items():
        component = spec["components"][each["componentRef"]["name"]]
        if "dag" in component:
            yield from list_our_tasks(spec, component["dag"])
        elif name.replace("-", "_") in STEPS:
            executor = spec["deploymentSpec"]["executors"][component["executorLabel"]]
            yield Task(name, each, component, executor["container"])


def find_given(spec: dict[str, Any], name: str, **values: Any) -> dict[str, Any]:
    """Returns the parameters of a task, from the ExecutorInput that it gets in a cluster.

    Args:
        spec: The pipeline.
        name: The task.
        values: What the pipelines that it is in were given, by the names of their inputs.
    """
    [task] = [each for each in list_our_tasks(spec, spec["root"]["dag"]) if each.name == name]

    def find_artifact(**_: str) -> dict[str, Any]:
        return {"name": "7", "type": {"instanceSchema": ""}, "uri": "minio://b/d", "metadata": {}}

    sources = task.spec["inputs"].get("artifacts", {})
    for key in sources:
        sources[key] = {"taskOutputArtifact": {"producerTask": "earlier", "outputArtifactKey": key}}
    given = make_input(task, find_parameters(spec, values), find_artifact, "minio://b/r", V2_17)
    text = format_command(task, given)[-1]
    return parse_execution(text, STEPS[name.replace("-", "_")]).parameters


def test_a_text_that_the_sdk_puts_together_reaches_the_task(tmp_path):
    values = {"folder": "s3://hands/in box", "stem": "images", "short_side": 4}
    found = find_given(compile_spec(make_records, tmp_path), "convert-images", **values)
    assert found["data"] == "s3://hands/in box/images.csv"
    assert found["resize_short_side"] == 4


@pytest.mark.usefixtures("newer")
def test_values_in_a_table_and_in_a_list_reach_the_task(tmp_path):
    spec = compile_spec(make_check(), tmp_path)
    found = find_given(spec, "validate-dataset", folder="x", stem="y", level="off")
    assert found["policies"] == {"small_classes": "off", "leakage": "fail"}
    assert found["required_splits"] == ["train", "eval"]
    assert found["min_class_images"] == 20


@pytest.mark.usefixtures("newer")
def test_arguments_of_a_function_have_their_types_again(tmp_path):
    spec = compile_spec(make_training(), tmp_path)
    values = {"module": "own_training", "epochs": 2, "rate": 1e-7, "is_fast": True}
    found = find_given(spec, "train-with-function", **values)
    assert found["function"] == "own_training:train"
    expected = {
        "epochs": 2,
        "name": "run of 2",
        "nested": [{"rate": 1e-7, "is_fast": True}, 3, "3"],
    }
    # Not by ==: True is 1.
    assert json.dumps(found["arguments"], sort_keys=True) == json.dumps(expected, sort_keys=True)


@pytest.mark.newest
def test_a_training_in_a_pipeline_in_a_pipeline_is_run_by_kfp(
    run_here, jpeg_set, tmp_path, monkeypatch
):
    (tmp_path / "own_training.py").write_text(OWN_TRAINING)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    run = make_training()(folder=str(jpeg_set.csv.parent))
    assert run.output == "own_training:train ['arguments.json'] 2"
    [path] = run_here.glob("*/**/trained_model/arguments.json")
    assert json.loads(path.read_text()) == {
        "epochs": 2,
        "name": "run of 2.0",  # so kfp writes it here, and 2 on Kubeflow
        "nested": [{"rate": 1e-7, "is_fast": True}, 3, "3"],
        "read": 8,
    }


@pytest.mark.newest
def test_a_pipeline_of_such_tasks_is_run_by_kfp(run_here, jpeg_set, tmp_path):
    run = make_check()(folder=str(jpeg_set.csv.parent), stem=jpeg_set.csv.stem)
    assert run.output == 1  # both tasks of the loop verified the same dataset
    [folder] = run_here.iterdir()
    darkroom.convert(
        jpeg_set.csv, tmp_path / "here", options=ConversionOptions(resize_short_side=4)
    )
    assert read_files(folder / "convert-images/dataset") == read_files(tmp_path / "here")
    report = json.loads((folder / "validate-dataset/validation_report/report.json").read_text())
    assert [each["check"] for each in report["findings"]] == ["small_classes"]
    for number, split in enumerate(("train", "eval")):
        page = folder / f"for-loop-2-iteration-{number}/inspect-dataset/inspection_page"
        assert f"A sample of {split}: 3 records" in page.read_text()


@pytest.mark.newest
def test_a_dataset_that_an_importer_names_is_read(run_here, jpeg_set, tmp_path):
    made = darkroom.convert(jpeg_set.csv, tmp_path / "here")

    @dsl.pipeline(name="imported")
    def imported(place: str) -> str:
        given = dsl.importer(artifact_uri=place, artifact_class=dsl.Dataset, reimport=False)
        return verify_dataset(dataset=given.output).outputs["fingerprint"]

    assert imported(place=made.output_dir).output == made.fingerprint
