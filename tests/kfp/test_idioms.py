"""Pipelines as users of KFP write them: values that the SDK builds, pipelines in pipelines, loops.

Without `from __future__ import annotations`: kfp reads the types of a user's component as they are.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import darkroom

from .tasks import list_files

pytest.importorskip("kfp", reason="needs the extra [kfp]")

from kfp import compiler, dsl

from darkroom.kfp import make_component
from darkroom.kfp.execution import parse_execution
from darkroom.kfp.interfaces import INTERFACES
from darkroom.options.conversion import ConversionOptions

from ..pipelines.backend.driver import Task, find_parameters, make_input
from ..pipelines.backend.process import format_command
from ..pipelines.backend.release import V2_17

IMAGE = "registry.example.com/darkroom:1"
convert_images, validate_dataset, inspect_dataset, verify_dataset = (
    make_component(name, IMAGE)
    for name in ("convert_images", "validate_dataset", "inspect_dataset", "verify_dataset")
)


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
        elif name.replace("-", "_") in INTERFACES:
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
    return parse_execution(text, INTERFACES[name.replace("-", "_")]).parameters


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


@pytest.mark.newest
def test_a_pipeline_of_such_tasks_is_run_by_kfp(run_here, jpeg_set, tmp_path):
    run = make_check()(folder=str(jpeg_set.csv.parent), stem=jpeg_set.csv.stem)
    assert run.output == 1  # both tasks of the loop verified the same dataset
    [folder] = run_here.iterdir()
    darkroom.convert(
        jpeg_set.csv, tmp_path / "here", options=ConversionOptions(resize_short_side=4)
    )
    assert list_files(folder / "convert-images/dataset") == list_files(tmp_path / "here")
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
