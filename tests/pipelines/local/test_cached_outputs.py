"""Outputs of an earlier run that may be used again, and those whose files are gone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from tensorflow.core.protobuf import saved_model_pb2
from tfx.types import standard_artifacts
from tfx.types.artifact import Artifact

from darkroom.pipelines.local.cached_outputs import check_outputs

pytestmark = pytest.mark.tfx


class OwnArtifact(Artifact):
    """That of a user's own component."""

    TYPE_NAME = "OwnArtifact"


GRAPH = saved_model_pb2.SavedModel(saved_model_schema_version=1).SerializeToString()


def make(folder: Path, kind: type[Any], *names: str, **properties: Any) -> Any:
    artifact = kind()
    artifact.uri = str(folder)
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(GRAPH if name.endswith(".pb") else b"")
    for name, value in properties.items():
        if isinstance(value, int):
            artifact.set_int_custom_property(name, value)
        else:
            artifact.set_string_custom_property(name, value)
    return artifact


GRAPH_FILE = "Format-Serving/saved_model.pb"


@pytest.mark.parametrize(
    ("kind", "names", "properties", "message"),
    [
        (standard_artifacts.Examples, ["Split-train/data"], {}, "/a has no files"),
        (
            standard_artifacts.Model,
            [GRAPH_FILE, "Format-Serving/fingerprint.pb"],
            {},
            "model.pb does not exist",
        ),
        (
            standard_artifacts.PushedModel,
            ["17/saved_model.pb"],
            {"pushed": 1, "pushed_destination": "17"},
            "/a/17 has no files",
        ),
    ],
)
def test_outputs_that_lost_a_file_are_made_again(
    tmp_path: Path, kind: type[Any], names: list[str], properties: dict[str, Any], message: str
):
    artifact = make(tmp_path / "a", kind, *names, **properties)
    check_outputs({"a": [artifact], "b": []})
    os.unlink(tmp_path / "a" / names[0])
    with pytest.raises(RuntimeError, match=message):
        check_outputs({"a": [artifact]})


@pytest.mark.parametrize("kind", [standard_artifacts.ModelRun, OwnArtifact])
def test_outputs_that_may_be_empty_are_reused(tmp_path: Path, kind: type[Any]):
    artifact = make(tmp_path / "a", kind)
    check_outputs({"a": [artifact]})
    (tmp_path / "a").rmdir()
    with pytest.raises(RuntimeError, match=f"{tmp_path}/a has no files"):
        check_outputs({"a": [artifact]})


@pytest.mark.parametrize("is_relative", [False, True])
def test_a_pushed_model_is_at_its_destination(tmp_path: Path, monkeypatch, is_relative: bool):
    """A destination is relative where the root of the pipeline is: it is the same model there."""
    monkeypatch.chdir(tmp_path)
    graph, kind = "saved_model.pb", standard_artifacts.PushedModel
    place = make(tmp_path / "models/17", standard_artifacts.Model, graph).uri
    destination = "models/17" if is_relative else place
    pushed = make(tmp_path / "a", kind, graph, pushed=1, pushed_destination=destination)
    check_outputs({"a": [pushed]})
    shutil.rmtree(place)
    with pytest.raises(RuntimeError, match="models/17 has no files"):
        check_outputs({"a": [pushed]})


@pytest.mark.parametrize("place", ["models/17", "a"])
def test_a_pushed_model_that_lost_a_file_is_pushed_again(tmp_path: Path, place: str):
    graph, data = "saved_model.pb", "variables/variables.data-00000-of-00001"
    files = (graph, "variables/variables.index", data)
    make(tmp_path / "models/17", standard_artifacts.Model, *files)
    destination = str(tmp_path / "models/17")
    kind = standard_artifacts.PushedModel
    pushed = make(tmp_path / "a", kind, *files, pushed=1, pushed_destination=destination)
    check_outputs({"a": [pushed]})
    os.unlink(tmp_path / place / data)
    with pytest.raises(RuntimeError, match=f"{place} has no variables/variables.data"):
        check_outputs({"a": [pushed]})
    os.unlink(tmp_path / place / graph)
    with pytest.raises(RuntimeError, match=f"{place}/{graph} does not exist"):
        check_outputs({"a": [pushed]})


def test_examples_without_a_shard_are_converted_again(jpeg_records: Path):
    examples = standard_artifacts.Examples()
    examples.uri = str(jpeg_records)
    check_outputs({"b": [examples]})
    next(jpeg_records.glob("Split-*/*")).unlink()
    with pytest.raises(RuntimeError, match="shards are missing"):
        check_outputs({"b": [examples]})


def test_a_model_that_was_not_pushed_has_no_files(tmp_path: Path):
    check_outputs({"a": [make(tmp_path / "a", standard_artifacts.PushedModel, pushed=0)]})
