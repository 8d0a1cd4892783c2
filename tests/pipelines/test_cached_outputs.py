"""Outputs of an earlier run that may be used again, and those whose files are gone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from tfx.types import standard_artifacts

from darkroom.pipelines.cached_outputs import check_outputs


def make(folder: Path, kind: type[Any], *names: str, **properties: Any) -> Any:
    artifact = kind()
    artifact.uri = str(folder)
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    for name, value in properties.items():
        if isinstance(value, int):
            artifact.set_int_custom_property(name, value)
        else:
            artifact.set_string_custom_property(name, value)
    return artifact


def test_outputs_with_files_are_used_again(tmp_path: Path):
    blessing = make(tmp_path / "a", standard_artifacts.ModelBlessing, "BLESSED")
    examples = make(tmp_path / "b", standard_artifacts.Examples, "Split-train/data")
    check_outputs({"a": [blessing], "b": [examples], "c": []})


@pytest.mark.parametrize("kind", ["folder", "files"])
def test_outputs_without_files_are_not(tmp_path: Path, kind: str):
    examples = make(tmp_path / "b", standard_artifacts.Examples, "Split-train/data")
    if kind == "folder":
        shutil.rmtree(tmp_path / "b")
    else:
        os.unlink(tmp_path / "b/Split-train/data")
    with pytest.raises(RuntimeError, match=f"{tmp_path}/b has no files"):
        check_outputs({"b": [examples]})


def test_a_pushed_model_is_where_it_was_pushed_and_in_its_artifact(tmp_path: Path):
    graph = "saved_model.pb"
    place = make(tmp_path / "models/17", standard_artifacts.Model, graph).uri
    kind = standard_artifacts.PushedModel
    pushed = make(tmp_path / "a", kind, graph, pushed=1, pushed_destination=place)
    inside = make(tmp_path / "b", kind, f"17/{graph}", pushed=1, pushed_destination="17")
    check_outputs({"a": [pushed], "b": [inside]})
    shutil.rmtree(place)
    with pytest.raises(RuntimeError, match="models/17 has no files"):
        check_outputs({"a": [pushed]})
    os.unlink(tmp_path / f"b/17/{graph}")
    with pytest.raises(RuntimeError, match="b has no files"):
        check_outputs({"b": [inside]})


def test_a_model_that_was_not_pushed_has_no_files(tmp_path: Path):
    check_outputs({"a": [make(tmp_path / "a", standard_artifacts.PushedModel, pushed=0)]})
