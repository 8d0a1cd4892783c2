"""What is refused, or warned about, for a version of Kubeflow Pipelines."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from darkroom.errors import UsageError
from darkroom.pipelines.compilation import check
from darkroom.pipelines.compilation.check import check_config, list_warnings, parse_version
from darkroom.pipelines.compilation.files import run_compile
from darkroom.pipelines.config import PipelineConfig

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/reference/kubeflow-versions.md"


def _config(**options: Any) -> PipelineConfig:
    values = {"data": "s3://photos/images.csv", "image": "darkroom:1", **options}
    return PipelineConfig(**values)


def test_a_version_has_many_spellings():
    assert [parse_version(text) for text in ("2.5", "v2.17.0")] == [(2, 5), (2, 17)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2.4.1", "kfp is '2.4.1', which is older than the compiled file needs"),
        ("2.9", "kfp is '2.9', and there is no such version"),
        ("newest", "expected a version as in 2.17"),
    ],
)
def test_a_version_that_cannot_run_the_file_is_an_error(text: str, message: str):
    with pytest.raises(UsageError, match=re.escape(message)) as error:
        check_config(_config(kfp=text), "kubeflow")
    assert "2.5, 2.14, 2.15, 2.16, 2.17" in error.value.hint


def test_a_version_of_kubeflow_is_not_one_of_vertex():
    config = _config(kfp="2.17", root="gs://bucket/run")
    with pytest.raises(UsageError, match=r"kfp is '2.17', .* Leave it out for Vertex"):
        check_config(config, "vertex")


def test_what_a_version_cannot_do_is_a_warning():
    retried = {"resources": {"default": {"retries": 2}}}
    assert list_warnings(_config(kfp="2.16", **retried), "kubeflow") == []
    assert list_warnings(_config(**retried), "kubeflow") == []
    [warning] = list_warnings(_config(kfp="2.17", **retried), "kubeflow")
    assert "Kubeflow Pipelines 2.17 does not retry a task that failed" in warning
    [warning] = list_warnings(_config(kfp="2.18"), "kubeflow")
    assert warning == "Kubeflow Pipelines 2.18 is newer than 2.17, the newest that was tried."


def test_places_that_the_keys_of_one_user_do_not_open_are_a_warning():
    closed = _config(kfp="2.15", root="minio://mlpipeline/darkroom", push_to="s3://mlpipeline/m")
    found = list_warnings(closed, "kubeflow")
    assert [each.partition(" is ")[0] for each in found] == ["root", "push_to"]
    assert "open only artifacts, private-artifacts, private, shared in that bucket" in found[0]
    open_ = _config(kfp="2.17", root="minio://mlpipeline/shared/r", push_to="s3://mine/darkroom")
    assert list_warnings(open_, "kubeflow") == []


@pytest.mark.parametrize(
    ("target", "accelerator", "image", "number"),
    [
        ("kubeflow", "T4", "registry/darkroom:1", 1),
        ("kubeflow", "T4", "registry/darkroom:1-cuda", 0),
        ("vertex", "T4", "registry/darkroom-gpu@sha256:0", 0),
        ("kubeflow", "T4", "registry/darkroom:cuda@sha256:0", 0),
        ("kubeflow", "amd.com/gpu", "registry/darkroom:1", 0),
    ],
)
def test_an_accelerator_for_an_image_without_cuda_is_a_warning(target, accelerator, image, number):
    resources = {"Trainer": {"accelerator": accelerator}, "Evaluator": {"cpu": 2}}
    found = list_warnings(_config(image=image, resources=resources), target)
    assert len(found) == number
    assert all(f"resources.Trainer asks for {accelerator}" in each for each in found)
    assert all("make image STAGE=cuda" in each for each in found)
    assert all("NAME:cuda@sha256:DIGEST" in each for each in found)


def test_what_vertex_has_no_place_for_is_a_warning_for_each_key():
    shared = {"timeout_seconds": 60, "cpu": 2, "retries": 1, "runs_as_root": True}
    labels = {"pod_labels": {"team": "a"}, "pod_annotations": {"note": "b"}}
    nodes = {"node_selector": {"pool": "gpu"}, "tolerations": [{"operator": "Exists"}]}
    resources = {
        "default": shared,
        "Trainer": {**labels, **nodes},
        "Pusher": {"runs_as_root": False},
    }
    config = _config(root="gs://b/run", resources=resources)
    assert list_warnings(config, "vertex") == [
        f"resources.{key} is for Kubernetes, and Vertex takes no notice of it."
        for key in (
            "default.timeout_seconds",
            "default.runs_as_root",
            "Trainer.pod_labels",
            "Trainer.pod_annotations",
            "Trainer.node_selector",
            "Trainer.tolerations",
        )
    ]
    assert list_warnings(config, "kubeflow") == []


@pytest.mark.parametrize(
    ("image", "number"),
    [
        ("x", 1),
        ("registry.example.com/darkroom", 1),
        ("registry.example.com/darkroom:latest", 1),
        ("darkroom:1", 0),
        ("registry.example.com:5000/ml/darkroom:1.0", 0),
        (f"registry.example.com/darkroom:latest@sha256:{'0' * 64}", 0),
    ],
)
def test_an_image_whose_name_the_next_one_gets_is_a_warning(image, number):
    found = list_warnings(_config(image=image, root="gs://b/run"), "vertex")
    assert found == number * [
        f"image is '{image}', which is the tag latest. Name a digest, or a tag that you never "
        "reuse: the cache does not see that the image behind a name has changed."
    ]


@pytest.mark.tfx
def test_the_command_prints_warnings_and_has_them_in_its_json(tmp_path: Path, capsys):
    values = {"data": "s3://b/i.csv", "image": "darkroom:1", "kfp": "2.17", "target": "kubeflow"}
    values["resources"] = {"default": {"retries": 2}}
    assert run_compile({**values, "output": str(tmp_path / "p.yaml")}, as_json=True) == 0
    printed = capsys.readouterr()
    [warning] = json.loads(printed.out)["warnings"]
    assert "does not retry a task that failed" in warning
    assert f"Warning: {warning}" in printed.err.replace("\n", " ")


def test_the_page_has_every_version_and_the_addresses_of_its_store():
    rows = {
        cells[1].strip(): line
        for line in PAGE.read_text().splitlines()
        if len(cells := line.split("|")) > 2
    }
    for version in check.VERSIONS:
        row = rows[".".join(map(str, version))]
        right = "minio-service.kubeflow:9000" if version < (2, 16) else "seaweedfs.kubeflow:9000"
        assert right in row
