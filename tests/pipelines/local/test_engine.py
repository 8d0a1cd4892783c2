"""An engine in the configuration of a run: which arguments Beam gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from darkroom.errors import StorageError, UsageError
from darkroom.options.pipeline import LOCAL_BEAM_ARGS
from darkroom.pipelines.config import PipelineConfig
from darkroom.pipelines.local.engine import resolve_engine
from darkroom.pipelines.local.run import run_pipeline

from ...flink_rest import serve_flink


@pytest.fixture
def flink():
    with serve_flink() as rest:
        yield rest


def _config(**options: object) -> PipelineConfig:
    return PipelineConfig(data="/d", root="/r", **options)


def test_a_run_without_an_engine_stays_as_it_is():
    config = _config()
    assert resolve_engine(config) is config
    assert config.beam_args == LOCAL_BEAM_ARGS


def test_an_engine_becomes_arguments_of_beam(flink):
    given = ("--job_endpoint=embed", "--parallelism=2")
    workers = "command=/opt/my boot.sh"
    config = resolve_engine(
        _config(engine="flink", engine_url=flink.url, engine_workers=workers, beam_args=given)
    )
    assert config.beam_args == (
        "--runner=FlinkRunner",
        f"--flink_master={flink.url}",
        "--flink_version=1.19",
        "--environment_type=PROCESS",
        '--environment_config={"command": "/opt/my boot.sh"}',
        "--sdk_container_image=local",
        *given,
    )
    assert resolve_engine(config) is config


def test_the_image_of_dataflow_is_its_workers():
    config = resolve_engine(_config(engine="dataflow", engine_workers="image=me/darkroom:1"))
    assert config.beam_args == ("--runner=DataflowRunner", "--sdk_container_image=me/darkroom:1")


def test_an_engine_and_a_runner_exclude_each_other():
    with pytest.raises(UsageError, match="engine and the runner of beam_args exclude each other"):
        resolve_engine(_config(engine="prism", beam_args=("--runner=PrismRunner",)))


def test_a_run_whose_engine_has_no_workers_does_not_start(flink, tmp_path: Path):
    (tmp_path / "images.csv").write_text("a.png,a\n")
    flink.slots = 0
    values = {"data": str(tmp_path / "images.csv"), "root": str(tmp_path / "run")}
    engine = {"engine": "flink", "engine_url": flink.url}
    with pytest.raises(StorageError, match="has no task manager"):
        run_pipeline({**values, **engine}, as_json=True, overwrite=False)
    assert not (tmp_path / "run").exists()
