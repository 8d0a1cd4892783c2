"""`darkroom compile --pipeline package.module:function`: the function, and what it may be."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from darkroom.errors import UsageError
from darkroom.pipelines import ClusterConfig, compile_pipeline
from darkroom.pipelines.compilation.files import run_compile

pytestmark = pytest.mark.tfx

IMAGE = "registry.example.com/ml/photos:1"
MODULE = """
from tfx.v1.dsl import Pipeline
from tfx.v1.dsl.components import component
from tfx.v1.orchestration.metadata import sqlite_metadata_connection_config

from darkroom.components import ManifestGen


def make_pipeline(root, epochs=3):
    print("on standard output")
    assert root == "s3://artifacts/run"
    return Pipeline("flowers", pipeline_root=root, components=[ManifestGen("s3://photos/i.csv")])


def make_without_root():
    return Pipeline("flowers", components=[ManifestGen("s3://photos/i.csv")])


def make_of_images(root, images):
    return make_pipeline(root)


def make_nothing():
    return None


def make_with_metadata(root):
    sqlite_metadata_connection_config("minio://artifacts/metadata.sqlite")


def fail():
    raise KeyError("no images")


def leave():
    raise SystemExit(3)
"""


LINE = MODULE[: MODULE.index("sqlite_metadata_connection_config(")].count("\n") + 1
PLACE = f"{Path('flowershop') / 'own.py'}:{LINE})"


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package `flowershop` whose module `own` has functions that make pipelines."""
    folder = tmp_path / "flowershop"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "own.py").write_text(MODULE)
    (folder / "half.py").write_text("import flowershop.own\nimport absent_package\n")
    (folder / "unfinished.py").write_text("\ndef make()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.partition(".")[0] == "flowershop"]:
        monkeypatch.delitem(sys.modules, name)
    return folder


def run(tmp_path: Path, function: Any, **options: Any) -> int:
    values = {"target": "kubeflow", "output": str(tmp_path / "p.yaml"), "image": IMAGE, **options}
    return run_compile({"pipeline": function, **values}, as_json=True)


def test_the_command_compiles_what_a_function_returns(tmp_path: Path, capsys):
    assert run(tmp_path, "flowershop.own:make_pipeline", root="s3://artifacts/run") == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {
        "output": str(tmp_path / "p.yaml"),
        "target": "kubeflow",
        "root": "s3://artifacts/run",
        "warnings": [],
    }
    assert "on standard output" in printed.err
    text = (tmp_path / "p.yaml").read_text()
    from flowershop import own  # type: ignore[import-not-found]

    config = ClusterConfig(image=IMAGE, root="s3://artifacts/run")
    assert text == compile_pipeline(own.make_pipeline(config.root), "kubeflow", config)
    spec = next(yaml.safe_load_all(text))
    assert spec["defaultPipelineRoot"] == "s3://artifacts/run"
    assert [*spec["root"]["dag"]["tasks"]] == ["ManifestGen"]


def test_a_configuration_file_may_name_the_function(tmp_path: Path, capsys):
    path = tmp_path / "own.toml"
    path.write_text(
        'pipeline = "flowershop.own:make_without_root"\n'
        '[resources.ManifestGen]\ncpu = 3\n[volumes]\n"/mnt/photos" = "photos"\n'
    )
    values = {"target": "kubeflow", "output": str(tmp_path / "p.yaml"), "config": str(path)}
    assert run_compile({**values, "image": IMAGE}, as_json=True) == 0
    spec, platform = yaml.safe_load_all((tmp_path / "p.yaml").read_text())
    container = spec["deploymentSpec"]["executors"]["ManifestGen_executor"]["container"]
    assert container["resources"] == {"cpuLimit": 3.0}
    executors = platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    assert executors["ManifestGen_executor"]["pvcMount"][0]["constant"] == "photos"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("make_pipeline", "pipeline is 'make_pipeline', expected package.module:function."),
        ("pipeline.yaml", "A compiled file is for `darkroom submit --pipeline FILE`."),
        ("absent:make", "Install the package and its imports, or add its folder to PYTHONPATH"),
        ("flowershop.half:make", "No module named 'absent_package' (FOLDER/half.py:2)."),
        ("flowershop.unfinished:make", "SyntaxError: expected ':' (FOLDER/unfinished.py:2)."),
        ("flowershop.own:make_pipelin", "flowershop.own has no function 'make_pipelin'."),
        ("flowershop.own:make_of_images", "darkroom passes nothing but root, where the function"),
        ("flowershop.own:make_nothing", "which returned NoneType, expected a pipeline of TFX."),
        ("flowershop.own:fail", "which failed: KeyError: 'no images' ("),
        # The place in the user's code, not that in TensorFlow's.
        ("flowershop.own:make_with_metadata", PLACE),
        ("flowershop.own:leave", "which failed: SystemExit: 3 ("),
    ],
)
def test_what_is_not_a_function_of_a_pipeline_is_an_error_that_says_why(
    tmp_path: Path, package: Path, function: Any, message: str
):
    with pytest.raises(UsageError) as error:
        run(tmp_path, function, root="s3://artifacts/run")
    assert message.replace("FOLDER", str(package)) in str(error.value)
    assert not (tmp_path / "p.yaml").exists()


def test_options_of_darkrooms_own_pipeline_are_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="Your own pipeline has no option 'data'"):
        run(tmp_path, "flowershop.own:make_without_root", data="1")


def test_a_function_in_the_place_of_its_pipeline_is_an_error_that_says_so():
    from flowershop import own

    with pytest.raises(UsageError, match="pipeline is a function, expected a tfx"):
        compile_pipeline(own.make_pipeline, "kubeflow", ClusterConfig(image=IMAGE))
