"""Trainer and ImportSchemaGen in a pipeline of one's own: changed code and files are noticed.

The `run_fn` of these tests trains nothing: its model is a text that its code and files make.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from absl import logging as absl_logging
from PIL import Image
from tfx.dsl.components.common.resolver import Resolver
from tfx.dsl.input_resolution.strategies.latest_artifact_strategy import LatestArtifactStrategy
from tfx.orchestration.data_types import RuntimeParameter
from tfx.orchestration.local.local_dag_runner import LocalDagRunner
from tfx.orchestration.pipeline import Pipeline
from tfx.types import Channel, standard_artifacts

from darkroom.components import ImageToTFRecord, ImportSchemaGen, ManifestGen, Trainer
from darkroom.errors import UsageError
from darkroom.pipelines.local.lineage import read_latest_run
from darkroom.pipelines.pipeline import make_connection_config

from .service_cache import ServiceCache

pytestmark = pytest.mark.tfx

NAME = "own"
RUN_FN = """
import os
from own_layers import TEXT

def run_fn(fn_args):
    config = fn_args.custom_config or {}
    weights = open(config["weights"]).read() if "weights" in config else ""
    base = fn_args.base_model and "+" or ""
    os.makedirs(fn_args.serving_model_dir)
    with open(os.path.join(fn_args.serving_model_dir, "model.txt"), "w") as file:
        file.write(f"{'%s'} {TEXT} {weights}{base}")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, on `sys.path`: a tree of images, and a module with a `run_fn`."""
    monkeypatch.setattr(sys, "argv", sys.argv[:1])  # TFX hands the process's arguments to absl
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for number in range(4):
        path = tmp_path / f"images/{('train', 'eval')[number % 2]}/{'ab'[number // 2]}/{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(number).integers(0, 256, (8, 8, 3), np.uint8)
        Image.fromarray(pixels).save(path)
    (tmp_path / "own_model.py").write_text(RUN_FN % "first")
    (tmp_path / "own_layers.py").write_text("TEXT = 'layers'\n")
    before = absl_logging.get_verbosity()
    absl_logging.set_verbosity(absl_logging.WARNING)
    yield tmp_path
    absl_logging.set_verbosity(before)
    for name in ("own_model", "own_layers"):
        sys.modules.pop(name, None)


def _make_pipeline(folder: Path, *more: Any, **options: Any) -> Pipeline:
    """Makes a pipeline that ends with a Trainer; `more` are nodes that it takes something of."""
    manifest = ManifestGen("images")
    convert = ImageToTFRecord(manifest.outputs["manifest"], manifest.outputs["list_rejects"])
    trainer = Trainer(convert.outputs["examples"], **options)
    return Pipeline(
        pipeline_name=NAME,
        pipeline_root=f"{folder}/run/artifacts",
        components=[manifest, convert, *more, trainer],
        enable_cache=True,
        metadata_connection_config=make_connection_config(f"{folder}/run"),
        beam_pipeline_args=["--runner=FnApiRunner", "--sdk_container_image=local"],
    )


def _find_manifest(pipeline: Pipeline) -> Any:
    return next(each for each in pipeline.components if each.id == "ManifestGen")


def _train(folder: Path, pipeline: Pipeline) -> tuple[str, str]:
    """Runs a pipeline; returns the state of its Trainer, and the text that is its model."""
    (folder / "run").mkdir(exist_ok=True)
    LocalDagRunner().run(pipeline)
    trainer = read_latest_run(f"{folder}/run", NAME)["Trainer"]
    return trainer.state, Path(trainer.outputs["model"], "Format-Serving/model.txt").read_text()


def _change_module(folder: Path) -> None:
    (folder / "own_model.py").write_text(RUN_FN % "a second")


def _change_import(folder: Path) -> None:
    (folder / "own_layers.py").write_text("TEXT = 'other layers'\n")


@pytest.mark.parametrize(
    "options", [{"run_fn": "own_model.run_fn"}, {"module_file": "own_model.py"}]
)
def test_changed_code_trains_again_by_that_code(folder: Path, options: dict[str, Any]):
    pipeline = _make_pipeline(folder, **options)
    assert _train(folder, pipeline) == ("COMPLETE", "first layers ")
    assert _train(folder, pipeline) == ("CACHED", "first layers ")
    _change_module(folder)
    assert _train(folder, pipeline) == ("COMPLETE", "a second layers ")
    _change_import(folder)
    assert _train(folder, pipeline) == ("COMPLETE", "a second other layers ")
    assert _train(folder, pipeline) == ("CACHED", "a second other layers ")


def test_code_that_is_not_imported_may_change(folder: Path):
    pipeline = _make_pipeline(folder, run_fn="own_model.run_fn")
    _train(folder, pipeline)
    (folder / "pipeline.py").write_text("import own_model\n")
    assert _train(folder, pipeline)[0] == "CACHED"


def _change_weights(folder: Path) -> None:
    (folder / "start.weights").write_text("other weights")


def _add_to_vocabulary(folder: Path) -> None:
    (folder / "words/more.txt").write_text("owl")


@pytest.mark.parametrize(
    ("options", "change"),
    [
        ({"custom_config": {"weights": "start.weights"}}, _change_weights),
        ({"files": ["words"]}, _add_to_vocabulary),
        ({"custom_config": {"darkroom": {"model": "own_nets:build"}}}, None),
    ],
    ids=["warm-start", "files", "model"],
)
def test_a_file_that_the_training_reads_is_looked_at(folder: Path, options, change):
    (folder / "start.weights").write_text("weights")
    (folder / "words").mkdir()
    (folder / "own_nets.py").write_text("def build(): ...\n")
    pipeline = _make_pipeline(folder, run_fn="own_model.run_fn", **options)
    _, before = _train(folder, pipeline)
    assert _train(folder, pipeline) == ("CACHED", before)
    change = change or (lambda _: (folder / "own_nets.py").write_text("def build(n): ...\n"))
    change(folder)
    state, after = _train(folder, pipeline)
    assert state == "COMPLETE"
    assert after == ("first layers other weights" if change is _change_weights else before)
    assert _train(folder, pipeline) == ("CACHED", after)


def test_a_file_that_does_not_exist_is_an_error_at_once(folder: Path):
    (folder / "words.txt").touch()
    with pytest.raises(UsageError) as caught:
        _make_pipeline(folder, run_fn="own_model.run_fn", files=["words.txt", "wrods.txt"])
    assert str(caught.value) == (
        f"files has 'wrods.txt', which does not exist. Did you mean {folder}/words.txt?"
    )


def test_a_folder_that_the_options_name_may_change(folder: Path):
    (folder / "checkpoints").mkdir()
    options = {"checkpoint_dir": f"{folder}/checkpoints", "none": "", "odd": "a\0b", "n": [1]}
    pipeline = _make_pipeline(folder, run_fn="own_model.run_fn", custom_config=options)
    _train(folder, pipeline)
    (folder / "checkpoints/1.ckpt").write_text("1")
    assert _train(folder, pipeline)[0] == "CACHED"


def test_a_given_fingerprint_is_used_unchanged(folder: Path):
    pipeline = _make_pipeline(folder, run_fn="own_model.run_fn", fingerprint="version 1")
    _train(folder, pipeline)
    _change_module(folder)
    assert _train(folder, pipeline) == ("CACHED", "first layers ")


def test_files_that_cannot_be_looked_at_train_in_each_run(folder: Path, monkeypatch):
    from darkroom.components import state_driver

    original = state_driver.storage.stat_file

    def refuse(path: str) -> Any:
        if path.endswith("words.txt"):
            raise PermissionError(13, "Permission denied", path)
        return original(path)

    warned = []
    monkeypatch.setattr(
        state_driver.logging, "warning", lambda text, *said: warned.append(text % said)
    )
    monkeypatch.setattr(state_driver.storage, "stat_file", refuse)
    (folder / "words.txt").touch()
    pipeline = _make_pipeline(folder, run_fn="own_model.run_fn", files=["words.txt"])
    assert [_train(folder, pipeline)[0] for _ in range(2)] == ["COMPLETE"] * 2
    said = "Trainer cannot use the cache, because its files cannot be read: words.txt cannot be"
    assert [each[: len(said)] for each in warned if each.startswith("Trainer")] == [said] * 2


def test_run_time_parameters_have_the_state_of_the_files_that_they_name(folder: Path):
    function = RuntimeParameter("run_fn", str, default="own_model.run_fn")
    pipeline = _make_pipeline(folder, run_fn=function)
    source = RuntimeParameter("data", str, default="images")
    _find_manifest(pipeline).exec_properties["source"] = source
    assert _train(folder, pipeline)[0] == "COMPLETE"
    assert _train(folder, pipeline)[0] == "CACHED"
    _change_import(folder)
    assert _train(folder, pipeline) == ("COMPLETE", "first other layers ")
    (folder / "images/train/a/0.jpg").unlink()
    assert _train(folder, pipeline)[0] == "COMPLETE"
    assert read_latest_run(f"{folder}/run", NAME)["ManifestGen"].state == "COMPLETE"


def test_a_resolver_does_not_keep_a_change_from_the_nodes_around_it(folder: Path):
    """The latest model is an input: the first run has none, and each new one trains again."""
    latest = Resolver(
        strategy_class=LatestArtifactStrategy, model=Channel(type=standard_artifacts.Model)
    ).with_id("latest_model")
    options = {"run_fn": "own_model.run_fn", "base_model": latest.outputs["model"]}
    pipeline = _make_pipeline(folder, latest, **options)
    assert _train(folder, pipeline) == ("COMPLETE", "first layers ")
    assert _train(folder, pipeline) == ("COMPLETE", "first layers +")
    _change_import(folder)
    assert _train(folder, pipeline) == ("COMPLETE", "first other layers +")
    (folder / "images/train/a/0.jpg").unlink()
    _train(folder, pipeline)
    nodes = read_latest_run(f"{folder}/run", NAME)
    assert {nodes[name].state for name in ("ManifestGen", "ImageToTFRecord")} == {"COMPLETE"}


SCHEMA = 'feature {\n  name: "image/width"\n  type: INT\n}\n'


def _read_schema(folder: Path, make: Callable[..., Any] = ImportSchemaGen) -> tuple[str, str]:
    (folder / "run").mkdir(exist_ok=True)
    LocalDagRunner().run(
        Pipeline(
            pipeline_name=NAME,
            pipeline_root=f"{folder}/run/artifacts",
            components=[make("schema.pbtxt")],
            enable_cache=True,
            metadata_connection_config=make_connection_config(f"{folder}/run"),
        )
    )
    node = read_latest_run(f"{folder}/run", NAME)["ImportSchemaGen"]
    return node.state, Path(node.outputs["schema"], "schema.pbtxt").read_text()


def test_a_changed_schema_is_imported_again(folder: Path):
    (folder / "schema.pbtxt").write_text(SCHEMA)
    assert _read_schema(folder) == ("COMPLETE", SCHEMA)
    assert _read_schema(folder) == ("CACHED", SCHEMA)
    (folder / "schema.pbtxt").write_text(SCHEMA.replace("width", "height"))
    assert _read_schema(folder) == ("COMPLETE", SCHEMA.replace("width", "height"))


def test_a_missing_schema_fails_the_node(folder: Path):
    with pytest.raises(Exception, match=r"schema\.pbtxt"):
        _read_schema(folder)


def test_a_notebook_cell_that_runs_again_looks_at_code_and_files_again(folder, monkeypatch):
    pytest.importorskip("nbformat")  # of Jupyter; TFX 1.21 does without
    from tfx.orchestration.experimental.interactive.interactive_context import InteractiveContext

    monkeypatch.setattr("builtins.__IPYTHON__", True, raising=False)
    (folder / "run").mkdir()
    (folder / "schema.pbtxt").write_text(SCHEMA)
    (folder / "labels.txt").write_text("a\nb\n")
    (folder / "list.txt").write_text("train/a/0.jpg\n")
    context = InteractiveContext(
        pipeline_name=NAME,
        pipeline_root=f"{folder}/run/artifacts",
        metadata_connection_config=make_connection_config(f"{folder}/run"),
        beam_pipeline_args=["--runner=FnApiRunner", "--sdk_container_image=local"],
    )
    manifest = ManifestGen("images", label_map="labels.txt", exclude="list.txt")
    convert = ImageToTFRecord(manifest.outputs["manifest"], manifest.outputs["list_rejects"])
    trainer = Trainer(convert.outputs["examples"], run_fn="own_model.run_fn")
    schema = ImportSchemaGen("schema.pbtxt")

    def run_cell() -> list[int]:
        for component in (manifest, convert, trainer, schema):
            context.run(component)
        outputs = (manifest.outputs["manifest"], trainer.outputs["model"], schema.outputs["schema"])
        return [channel.get()[0].id for channel in outputs]

    def run_changed(name: str, text: str) -> list[bool]:
        (folder / name).write_text(text)
        before = ids.copy()
        ids[:] = run_cell()
        return [old != new for old, new in zip(before, ids, strict=True)]

    ids = run_cell()
    assert run_cell() == ids
    assert run_changed("own_layers.py", "TEXT = 'other layers'\n") == [False, True, False]
    [model] = trainer.outputs["model"].get()
    text = Path(model.uri, "Format-Serving/model.txt").read_text()
    assert text == "first other layers "
    assert run_changed("schema.pbtxt", SCHEMA * 2) == [False, False, True]
    assert run_changed("labels.txt", "b\na\n") == [True, True, False]
    assert run_changed("list.txt", "train/b/2.jpg\n") == [True, True, False]


def test_a_backend_without_drivers_runs_the_nodes_in_each_run(folder: Path):
    """Compiled by TFX alone, for Kubeflow Pipelines or Vertex AI."""
    from tfx.orchestration.kubeflow.v2 import kubeflow_v2_dag_runner

    config = kubeflow_v2_dag_runner.KubeflowV2DagRunnerConfig(
        default_image="own:1", use_pipeline_spec_2_1=True
    )

    def compile_with(fingerprint: str | None) -> Any:
        schema = ImportSchemaGen("gs://bucket/schema.pbtxt", fingerprint=fingerprint)
        pipeline = _make_pipeline(
            folder, schema, run_fn="own_model.run_fn", fingerprint=fingerprint
        )
        _find_manifest(pipeline).exec_properties["source_fingerprint"] = "given"
        runner = kubeflow_v2_dag_runner.KubeflowV2DagRunner(config=config)
        return runner.run(pipeline, write_out=False)["pipelineSpec"]

    cache, spec = ServiceCache(), compile_with(None)
    cache.run(spec, {}, run_id="1")
    assert cache.run(spec, {}, run_id="2") == {"ImportSchemaGen", "Trainer"}
    cache, spec = ServiceCache(), compile_with("given")
    cache.run(spec, {}, run_id="1")
    assert cache.run(spec, {}, run_id="2") == set()
