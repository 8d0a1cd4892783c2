"""`darkroom compile -o FILE` replaces a file that it wrote, and no other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from darkroom.errors import OutputError
from darkroom.pipelines.compilation import files
from darkroom.pipelines.compilation.files import run_compile
from darkroom.pipelines.compilation.text import format_documents

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


def test_a_compiled_file_is_replaced(target: str, output: Path, monkeypatch):
    for root in ("a", "a", "b"):
        _compile(target, output, monkeypatch, root)
        assert _read(target, output) == root


def test_a_copy_elsewhere_is_replaced(target: str, output: Path, monkeypatch):
    _compile(target, output, monkeypatch)
    copy = output.with_name(f"copy-{output.name}")
    copy.write_bytes(output.read_bytes())
    _compile(target, copy, monkeypatch, "b")
    assert _read(target, copy) == "b"


@pytest.mark.parametrize("text", ["mine", "mine\n{}", "{}", " \n"])
def test_a_file_of_the_user_is_kept(target: str, output: Path, monkeypatch, text: str):
    output.write_text(text)
    with pytest.raises(OutputError, match="did not write, or that changed since") as stop:
        _compile(target, output, monkeypatch)
    assert stop.value.exit_code == 4
    assert stop.value.hint == "Move it elsewhere, or choose another file with -o."
    assert output.read_text() == text


@pytest.mark.parametrize("data", [b"\xff\xfe", b"\x89PNG"])
def test_a_file_that_is_not_text_is_kept(target: str, output: Path, monkeypatch, data: bytes):
    output.write_bytes(data)
    with pytest.raises(OutputError):
        _compile(target, output, monkeypatch)
    assert output.read_bytes() == data


def test_a_compiled_file_that_somebody_changed_is_kept(target: str, output: Path, monkeypatch):
    _compile(target, output, monkeypatch)
    text = output.read_text().replace("darkroom\n", "mine\n").replace('"darkroom"', '"mine"')
    output.write_text(text)
    with pytest.raises(OutputError):
        _compile(target, output, monkeypatch, "b")
    assert output.read_text() == text


def test_a_link_is_kept(target: str, output: Path, monkeypatch, tmp_path: Path):
    _compile(target, tmp_path / f"mine-{output.name}", monkeypatch)
    before = (tmp_path / f"mine-{output.name}").read_bytes()
    output.symlink_to(tmp_path / f"mine-{output.name}")
    with pytest.raises(OutputError):
        _compile(target, output, monkeypatch, "b")
    assert output.is_symlink()
    assert (tmp_path / f"mine-{output.name}").read_bytes() == before


@pytest.mark.parametrize("sealed", [False, True])
def test_the_same_text_without_a_seal_is_replaced(
    target: str, output: Path, monkeypatch, sealed: bool
):
    output.write_text(format_documents([_make(target, "a")], target))
    if sealed:
        _compile(target, output, monkeypatch)
    _compile(target, output, monkeypatch)
    assert _read(target, output) == "a"


def test_an_empty_file_is_replaced(target: str, output: Path, monkeypatch):
    output.touch()
    _compile(target, output, monkeypatch)
    assert _read(target, output) == "a"


def test_the_seal_of_json_is_a_label_that_vertex_allows(tmp_path: Path, monkeypatch):
    _compile("vertex", tmp_path / "p.json", monkeypatch)
    labels = json.loads((tmp_path / "p.json").read_text())["labels"]
    assert sorted(labels) == ["darkroom_sha256", "tfx_version"]
    assert len(labels["darkroom_sha256"]) <= 63
