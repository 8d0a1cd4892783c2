"""`darkroom submit` of a file that `darkroom compile --pipeline` wrote."""

from __future__ import annotations

from pathlib import Path

import pytest
from tfx.v1.components import StatisticsGen
from tfx.v1.dsl import Pipeline
from tfx.v1.dsl.experimental import RuntimeParameter

from darkroom.cli import main
from darkroom.components import ImageToTFRecord, ManifestGen
from darkroom.pipelines import ClusterConfig, compile_pipeline

from ..kubeflow_server import Server

pytestmark = pytest.mark.tfx

CONFIG = 'pipeline = "flowers.own:make_pipeline"\n'


@pytest.fixture
def compiled(tmp_path: Path) -> str:
    manifest = ManifestGen("s3://photos/images.csv")
    records = ImageToTFRecord(manifest.outputs["manifest"], manifest.outputs["list_rejects"])
    statistics = StatisticsGen(records.outputs["examples"])
    pipeline = Pipeline("own", components=[manifest, records, statistics], enable_cache=True)
    path = tmp_path / "own.yaml"
    path.write_text(compile_pipeline(pipeline, "kubeflow", ClusterConfig(image="registry/own:1")))
    return str(path)


def submit(server: Server, *arguments: str) -> int:
    return main(["submit", "--target=kubeflow", f"--host={server.url}", *arguments])


def list_cached(server: Server) -> dict[str, bool]:
    [run] = server.runs.values()
    documents = run["pipeline_spec"]
    tasks = documents.get("pipeline_spec", documents)["root"]["dag"]["tasks"]
    return {name: bool(task["cachingOptions"].get("enableCache")) for name, task in tasks.items()}


def test_a_pipeline_of_ones_own_is_submitted_as_it_was_compiled(
    server: Server, compiled: str, capsys
):
    assert submit(server, f"--pipeline={compiled}", "--set=root=s3://artifacts/own") == 0
    [run] = server.runs.values()
    assert run["runtime_config"]["pipeline_root"] == "s3://artifacts/own"
    assert list_cached(server) == {
        "ManifestGen": False,
        "ImageToTFRecord": True,
        "StatisticsGen": True,
    }
    assert (
        "Cache      Compiled without a cache: ManifestGen. These tasks and all that follows them "
        "run each time." in capsys.readouterr().out
    )


def test_a_run_time_parameter_without_a_default_cannot_be_submitted(
    server: Server, tmp_path: Path, capsys
):
    parameter = RuntimeParameter("images", str)
    pipeline = Pipeline("own", components=[ManifestGen(parameter)])
    path = tmp_path / "own.yaml"
    with pytest.warns(UserWarning, match="'images' of ManifestGen has no default") as warnings:
        path.write_text(compile_pipeline(pipeline, "kubeflow", ClusterConfig(image="own:1")))
    assert "`darkroom submit` refuses the file" in str(warnings[0].message)
    assert submit(server, f"--pipeline={path}") == 2
    said = capsys.readouterr().err
    assert f"The run-time parameter 'images' of {path} has no default" in said
    assert 'Give it one in your code, as RuntimeParameter("images", str, default=...)' in said
    assert server.requests == []


def test_its_cache_can_be_switched_off(server: Server, compiled: str):
    assert submit(server, f"--pipeline={compiled}", "--set=cache=false") == 0
    assert not any(list_cached(server).values())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--pipeline={compiled}", "--set=epochs=3"],
            "epochs is not an option of own, your own",
        ),
        (
            ["--pipeline={compiled}", "--set=root=runs"],
            "root is 'runs', which kubeflow cannot keep",
        ),
        (["--pipeline=flowers.own:make"], "--pipeline is 'flowers.own:make', expected a compiled"),
        (["--config={config}"], "pipeline in the configuration is your own function"),
    ],
)
def test_what_cannot_be_submitted_is_an_error_before_a_request(
    server: Server, compiled: str, tmp_path: Path, capsys, arguments: list[str], message: str
):
    config = tmp_path / "own.toml"
    config.write_text(CONFIG)
    given = [each.format(compiled=compiled, config=config) for each in arguments]
    assert submit(server, *given) == 2
    assert message in capsys.readouterr().err
    assert server.runs == {}
