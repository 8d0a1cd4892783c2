"""The way of a label map into the tasks: in the compiled file, or as the path of a file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from darkroom.dataset.manifest import read_manifest
from darkroom.errors import UsageError
from darkroom.pipelines.config import PipelineConfig, make_config

from ..compiled import compile_pipeline
from ..launcher import Launcher, run_in_process

pytestmark = pytest.mark.tfx

VALUES = {"data": "gs://photos/images.csv", "root": "minio://mlpipeline/run", "image": "darkroom:1"}
ODD = [
    "$$cash",
    "$(KFP_POD_NAME)",
    "$",
    "{{workflow.name}}",
    "{{$.inputs.parameters['x']}}",
    'a "quoted" one',
    "a\\back\\\\slash",
    "it's",
    "caf\u00e9",
    "\u6f22\u5b57",
    "\U0001f431",
    "<b>&amp;</b>",
    "1e-3",
    "# no comment",
    "null",
    "%d {} \\n",
]
# Linux: MAX_ARG_STRLEN.
LONGEST_ARGUMENT = 131_072


def _write_labels(folder: Path, labels: list[str]) -> Path:
    path = folder / "labels.txt"
    path.write_text("".join(f"{label}\n" for label in labels))
    return path


def _find_options(spec: Mapping[str, Any]) -> str:
    inputs = spec["root"]["dag"]["tasks"]["ManifestGen"]["inputs"]["parameters"]
    return inputs["options"]["runtimeValue"]["constant"]


def _expand(text: str, environment: Mapping[str, str]) -> str:
    """Replaces as Kubernetes does in the arguments of a container: `$$`, and a known `$(NAME)`."""
    return re.sub(
        r"\$\$|\$\((\w+)\)",
        lambda found: "$" if found[0] == "$$" else environment.get(found[1], found[0]),
        text,
    )


def _run_manifest_gen(spec: Mapping[str, Any], folder: Path) -> tuple[list[str], int]:
    """Runs ManifestGen; returns the labels of its manifest, and the length of its argument."""
    lengths = []

    def run(command: list[str], environment: dict[str, str], log: Path) -> int:
        for _ in range(2):  # of the driver's pod, then of the task's own
            command = [_expand(each, {"KFP_POD_NAME": "pod-1"}) for each in command]
        assert "{{" not in " ".join(command)
        lengths.append(max(len(each.encode()) for each in command))
        return run_in_process(command, environment, log)

    Image.new("RGB", (8, 8)).save(folder / "a.png")
    label = (folder / "labels.txt").read_text().split("\n")[0]
    rows = [{"image_uri": "a.png", "label": label}]
    (folder / "images.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    parameters = {"data": str(folder / "images.jsonl")}
    launcher = Launcher(spec, "minio://mlpipeline/run", folder, run, parameters=parameters)
    done = launcher.run({"ManifestGen"})["ManifestGen"]
    assert done.code == 0
    uri = done.outputs["manifest"]["uri"]
    return read_manifest(str(launcher.find_bucket_path(uri))).labels, lengths[0]


def test_labels_of_a_file_here_are_compiled_in_and_arrive_whatever_they_hold(tmp_path):
    path = _write_labels(tmp_path, ODD)
    spec = compile_pipeline(PipelineConfig(**VALUES, label_map=str(path)), "kubeflow")
    text = _find_options(spec)
    assert "$" not in text
    assert "{{" not in text
    assert str(tmp_path) not in text
    assert json.loads(text)["labels"] == ODD
    labels, _ = _run_manifest_gen(spec, tmp_path)
    assert labels == ODD


def test_a_hundred_thousand_labels_are_read_by_the_task(mounted):
    labels = [*ODD, *(f"species {number}" for number in range(100_000 - len(ODD)))]
    path = _write_labels(mounted, labels)
    volumes = {str(mounted): "photos"}
    config = PipelineConfig(**VALUES, label_map=str(path), volumes=volumes)
    spec = compile_pipeline(config, "kubeflow")
    assert json.loads(_find_options(spec))["label_map"] == str(path)
    assert len(json.dumps(spec["root"])) < LONGEST_ARGUMENT / 2
    found, length = _run_manifest_gen(spec, mounted)
    assert found == labels
    assert length < LONGEST_ARGUMENT / 10


@pytest.mark.parametrize(
    ("target", "place"),
    [
        ("kubeflow", "s3://photos/labels.txt"),
        ("kubeflow", "/mnt/photos/labels.txt"),
        ("vertex", "/gcs/photos/labels.txt"),
    ],
)
def test_a_file_that_tasks_can_see_is_not_read_when_compiling(target: str, place: str):
    volumes = {"/mnt/photos": "photos"} if target == "kubeflow" else {}
    values = {**VALUES, "root": "gs://artifacts/run", "label_map": place, "volumes": volumes}
    compiled = compile_pipeline(make_config(values, target), target)
    options = json.loads(_find_options(compiled.get("pipelineSpec", compiled)))
    assert (options["label_map"], options["labels"]) == (place, None)


def test_a_label_map_that_no_task_can_open_is_an_error():
    config = PipelineConfig(**VALUES, label_map="minio://mlpipeline/labels.txt")
    with pytest.raises(UsageError, match=r"Write s3://mlpipeline/labels\.txt"):
        compile_pipeline(config, "kubeflow")


@pytest.mark.parametrize(
    "labels",
    [
        [f"species {number:04}" for number in range(2_400)],
        # Each takes more bytes with every text of JSON that is a text in another one.
        [f"\u6f22{number}" for number in range(2_000)],
    ],
)
def test_a_long_label_map_is_an_error_before_any_version_of_kubeflow_refuses_it(tmp_path, labels):
    path = _write_labels(tmp_path, labels)
    with pytest.raises(UsageError, match=r"The options of ManifestGen need") as error:
        compile_pipeline(PipelineConfig(**VALUES, label_map=str(path)), "kubeflow")
    assert "Put a long label map into a store or a volume" in error.value.hint
    _write_labels(tmp_path, labels[:1_000])
    compile_pipeline(PipelineConfig(**VALUES, label_map=str(path)), "kubeflow")


def test_vertex_takes_as_many_labels_as_fit_into_one_argument(tmp_path):
    labels = [f"species {number:04}" for number in range(9_000)]
    path = _write_labels(tmp_path, labels[:6_000])
    config = PipelineConfig(**{**VALUES, "root": "gs://artifacts/run"}, label_map=str(path))
    spec = compile_pipeline(config, "vertex")["pipelineSpec"]
    text = _find_options(spec)
    assert json.loads(text)["labels"] == labels[:6_000]
    assert len(json.dumps(text)) < LONGEST_ARGUMENT
    _write_labels(tmp_path, labels)
    with pytest.raises(UsageError, match=r"The options of ManifestGen need .* Linux") as error:
        compile_pipeline(config, "vertex")
    assert "Kubeflow" not in str(error.value)
    assert "gs://BUCKET/labels.txt" in error.value.hint


def test_options_that_are_too_long_together_are_an_error():
    # A text below the limit of one task, in the properties of each.
    resources = {"default": {"runs_as_root": True}}
    slices = tuple(f"column_{number}" for number in range(600))
    config = PipelineConfig(**VALUES, resources=resources, slice_columns=slices)
    with pytest.raises(UsageError, match=r"need .* bytes where the service passes them"):
        compile_pipeline(config, "kubeflow")
