"""An engine in the configuration of a run: which arguments Beam gets."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions

from darkroom.errors import StorageError, UsageError
from darkroom.options.pipeline import LOCAL_BEAM_ARGS
from darkroom.pipelines.beam_arguments import find_engine_args, list_other_args
from darkroom.pipelines.config import PipelineConfig
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
    assert (find_engine_args(config), list_other_args(config)) == ([], list(LOCAL_BEAM_ARGS))
    config = _config(beam_args=("--runner=PrismRunner",))
    assert (find_engine_args(config), list_other_args(config)) == ([], ["--runner=PrismRunner"])


def test_an_engine_becomes_arguments_of_beam(flink):
    given = ("--job_endpoint=embed", "--parallelism=2")
    workers = "command=/opt/my boot.sh"
    config = _config(engine="flink", engine_url=flink.url, engine_workers=workers, beam_args=given)
    assert find_engine_args(config) == [
        "--runner=FlinkRunner",
        f"--flink_master={flink.url}",
        "--flink_version=1.19",
        "--environment_type=PROCESS",
        '--environment_config={"command": "/opt/my boot.sh"}',
        *given,
    ]
    # The machines of the engine need darkroom, not TFX.
    assert list_other_args(config) == list(LOCAL_BEAM_ARGS)


def test_dataflow_needs_an_image_and_what_it_always_needs():
    given = ("--project=p", "--region=r", "--temp_location=gs://b/t")
    image = {"engine": "dataflow", "engine_workers": "image=me/darkroom:1"}
    args = find_engine_args(_config(**image, beam_args=given))
    assert args == ["--runner=DataflowRunner", "--sdk_container_image=me/darkroom:1", *given]
    with pytest.raises(UsageError, match="Dataflow needs sdk_container_image"):
        find_engine_args(_config(engine="dataflow", beam_args=given))
    with pytest.raises(UsageError, match="needs project and region and temp_location"):
        find_engine_args(_config(**image))


@pytest.mark.tfx
def test_only_the_component_that_writes_the_dataset_uses_the_engine(flink):
    from darkroom.pipelines.pipeline import create_pipeline

    beam_args = ("--job_endpoint=embed",)
    config = _config(engine="flink", engine_url=flink.url, beam_args=beam_args)
    runners = {}
    for component in create_pipeline(config).components:
        if args := getattr(component.executor_spec, "beam_pipeline_args", None):
            options = PipelineOptions(args).view_as(StandardOptions)
            runners.setdefault(options.runner, []).append(component.id)
    assert runners["FlinkRunner"] == ["ImageToTFRecord"]
    assert "ImageStatisticsGen" in runners["FnApiRunner"]


def test_an_engine_and_a_runner_cannot_be_used_together():
    with pytest.raises(UsageError, match="the runner of beam_args cannot be used together"):
        find_engine_args(_config(engine="prism", beam_args=("--runner=PrismRunner",)))


@pytest.mark.skipif(not importlib.util.find_spec("tfx"), reason="needs the extra [tfx]")
def test_a_run_whose_engine_has_no_workers_does_not_start(flink, tmp_path: Path):
    (tmp_path / "images.csv").write_text("a.png,a\n")
    flink.slots = 0
    values = {"data": str(tmp_path / "images.csv"), "root": str(tmp_path / "run")}
    engine = {"engine": "flink", "engine_url": flink.url}
    with pytest.raises(StorageError, match="has no task manager"):
        run_pipeline({**values, **engine}, as_json=True, overwrite=False)
    assert not (tmp_path / "run").exists()
