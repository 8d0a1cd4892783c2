"""What users of Kubeflow met: runs of one pipeline after another, with its cache and its metadata.

Without `from __future__ import annotations`: kfp reads the types of a user's component as they are.
"""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import yaml
from kfp import compiler, dsl

from darkroom.kfp import make_component, make_pipeline

from ..image_set import ImageSet
from ..pipelines.launcher import Launcher, TaskRun, run_in_process

pytestmark = pytest.mark.tfx

convert_images, validate_dataset, verify_dataset = (
    make_component(name, "registry.example.com/darkroom:1")
    for name in ("convert_images", "validate_dataset", "verify_dataset")
)


@dsl.pipeline(name="by-uri")
def name_by_uri(data: str, place: str):
    """The dataset is at one place, and the tasks read it there."""
    made = convert_images(data=data, output_dir=place, overwrite=True)
    uri = made.outputs["dataset_uri"]
    verify_dataset(dataset_uri=uri).after(validate_dataset(dataset_uri=uri))


@dataclasses.dataclass
class Kubeflow:
    """A cluster with its store and cache.

    Attributes:
        folder: Where all of it is.
    """

    folder: Path
    count: int = 0
    cache: dict[str, TaskRun] = dataclasses.field(default_factory=dict)

    def run(self, pipeline: Any, **parameters: str) -> dict[str, TaskRun]:
        """Runs a pipeline, and returns what became of its tasks by name."""
        self.count += 1
        path = self.folder / "pipeline.yaml"
        compiler.Compiler().compile(pipeline, str(path))
        launcher = Launcher(
            yaml.safe_load(path.read_text()), "minio://mlpipeline/v2", self.folder, run_in_process,
            parameters, cache=self.cache, run_id=f"run-{self.count}",
        )  # fmt: skip
        return launcher.run()


@pytest.fixture
def kubeflow(tmp_path: Path) -> Kubeflow:
    return Kubeflow(tmp_path)


def list_states(runs: dict[str, TaskRun]) -> list[str]:
    return [run.state for run in runs.values()]


def add_leak(images: ImageSet) -> None:
    """Adds an image of the train split to the eval split, with another label."""
    images.add("VALIDATION", "leaked.jpg", "owl", (images.folder / "00.jpg").read_bytes())
    assert images.csv.exists()  # it is written with its rows of now


def test_the_cache_does_not_answer_for_other_data_at_the_same_place(
    kubeflow: Kubeflow, jpeg_set: ImageSet, tmp_path: Path, capfd
):
    given = {"data": str(jpeg_set.csv), "place": str(tmp_path / "kept")}
    assert list_states(kubeflow.run(name_by_uri, **given)) == ["SUCCEEDED"] * 3
    assert list_states(kubeflow.run(name_by_uri, **given)) == ["SUCCEEDED", "CACHED", "CACHED"]
    add_leak(jpeg_set)
    capfd.readouterr()
    runs = kubeflow.run(name_by_uri, **given)
    assert list_states(runs) == ["SUCCEEDED", "FAILED", "NOT_TRIGGERED"]
    assert runs["convert-images"].parameters["written"] == 41
    assert "label_conflicts" in capfd.readouterr().err


def test_a_gate_stops_the_default_pipeline_and_the_report_is_kept(
    kubeflow: Kubeflow, jpeg_set: ImageSet, tmp_path: Path, capfd
):
    add_leak(jpeg_set)
    pipeline = make_pipeline("registry.example.com/darkroom:1", epochs=1)
    runs = kubeflow.run(pipeline, data=str(jpeg_set.csv))
    assert {name: run.state for name, run in runs.items()} == {
        "convert-images": "SUCCEEDED",
        "validate-dataset": "SUCCEEDED",
        "validation-gate": "FAILED",
        "train-classifier": "NOT_TRIGGERED",
        "evaluate-classifier": "NOT_TRIGGERED",
    }
    uri = runs["validate-dataset"].outputs["validation_page"]["uri"]
    page = tmp_path / "buckets" / uri.replace("://", "/")
    assert "Stopped" in page.read_text()
    said = capfd.readouterr().err
    assert "\nThe report: output validation_page of the task that made it.\n{" in said
