"""`darkroom compile -o FILE` writes that file, and replaces what is there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from darkroom.pipelines.compilation import files
from darkroom.pipelines.compilation.files import run_compile

pytestmark = pytest.mark.tfx

SPEC = {"pipelineInfo": {"name": "darkroom"}, "sdkVersion": "tfx-1"}
NAMES = {"kubeflow": "p.yaml", "vertex": "p.json"}


@pytest.fixture(params=["kubeflow", "vertex"])
def target(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def output(target: str, tmp_path: Path) -> Path:
    return tmp_path / NAMES[target]


def _make(target: str, root: str) -> dict[str, object]:
    spec = {**SPEC, "root": root}
    labels = {"tfx_version": "1"}
    return spec if target == "kubeflow" else {"labels": labels, "pipelineSpec": spec}


def _compile(target: str, output: Path, monkeypatch: pytest.MonkeyPatch, root: str = "a") -> None:
    monkeypatch.setattr(
        "darkroom.pipelines.compilation.spec.make_documents", lambda *_: [_make(target, root)]
    )
    monkeypatch.setattr(files, "check_for_target", lambda *_: None)
    values = {"data": "gs://photos/images.csv", "root": "gs://artifacts/run", "image": "i:1"}
    run_compile({**values, "target": target, "output": str(output)}, as_json=True)


def _read(target: str, output: Path) -> str:
    found = yaml.safe_load(output.read_text())
    spec = found if target == "kubeflow" else found["pipelineSpec"]
    return str(spec["root"])


def test_the_steps_are_shown(target: str, output: Path, monkeypatch, capsys):
    _compile(target, output, monkeypatch)
    printed = capsys.readouterr()
    assert json.loads(printed.out)["output"] == str(output)
    steps = [line.partition(" in ")[0] for line in printed.err.splitlines()]
    assert steps == ["Loading TFX done", "Compiling done"]


@pytest.mark.parametrize("before", ["", "mine", "compiled"])
def test_a_file_is_replaced(target: str, output: Path, monkeypatch, before: str):
    if before == "compiled":
        _compile(target, output, monkeypatch)
    else:
        output.write_text(before)
    _compile(target, output, monkeypatch, "b")
    assert _read(target, output) == "b"


def test_a_link_is_replaced_and_not_written_through(
    target: str, output: Path, monkeypatch, tmp_path: Path
):
    (tmp_path / "mine").write_text("mine")
    output.symlink_to(tmp_path / "mine")
    _compile(target, output, monkeypatch)
    assert _read(target, output) == "a"
    assert (tmp_path / "mine").read_text() == "mine"
