"""Pipelines of one's own on this machine: what has changed is read again, without being asked for.

One pipeline object is run several times. tests/components/test_state_drivers.py has all that a node
looks at; the `run_fn` of these tests trains nothing: its model is a text.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from absl import logging as absl_logging
from PIL import Image
from tfx.dsl.components.common.resolver import Resolver
from tfx.dsl.input_resolution.strategies.latest_artifact_strategy import LatestArtifactStrategy
from tfx.orchestration.local.local_dag_runner import LocalDagRunner
from tfx.orchestration.pipeline import Pipeline
from tfx.types import Channel, standard_artifacts

from darkroom.components import ImageToTFRecord, ImportSchemaGen, ManifestGen, Trainer
from darkroom.dataset.example import decode_example
from darkroom.dataset.tfrecord import read_records
from darkroom.pipelines.local.lineage import NodeRun, read_run
from darkroom.pipelines.pipeline import make_connection_config

from .service_cache import ServiceCache

pytestmark = pytest.mark.tfx

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "own-pipeline.md"
NAME = "own"
RUN_FN = """
import os
from own_layers import TEXT

def run_fn(fn_args):
    base = "+" if fn_args.base_model else ""
    os.makedirs(fn_args.serving_model_dir)
    with open(os.path.join(fn_args.serving_model_dir, "model.txt"), "w") as file:
        file.write(f"{'%s'} {TEXT}{base}")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, on `sys.path`: a list of six JPEGs, and a module with a `run_fn`."""
    # TFX hands the process's arguments to absl, which would trip over pytest's.
    monkeypatch.setattr(sys, "argv", sys.argv[:1])
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    rows = [("split", "image_uri", "label")]
    for number in range(6):
        _write_image(tmp_path / f"{number}.jpg", number)
        split, label = ("train", "eval")[number > 3], ("cat", "dog")[number % 2]
        rows.append((split, f"{number}.jpg", label))
    with (tmp_path / "images.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    (tmp_path / "own_model.py").write_text(RUN_FN % "first")
    (tmp_path / "own_layers.py").write_text("TEXT = 'layers'\n")
    (tmp_path / "run").mkdir()
    before = absl_logging.get_verbosity()
    absl_logging.set_verbosity(absl_logging.WARNING)
    yield tmp_path
    absl_logging.set_verbosity(before)
    for name in ("own_model", "own_layers"):
        sys.modules.pop(name, None)


def _write_image(path: Path, seed: int) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (12, 10, 3), np.uint8)
    Image.fromarray(pixels).save(path)
    return path.read_bytes()


def _replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def _make_pipeline(folder: Path, *components: Any) -> Pipeline:
    return Pipeline(
        pipeline_name=NAME,
        pipeline_root=f"{folder}/run/artifacts",
        components=list(components),
        enable_cache=True,
        metadata_connection_config=make_connection_config(f"{folder}/run"),
        beam_pipeline_args=["--runner=FnApiRunner", "--sdk_container_image=local"],
    )


def _run(pipeline: Pipeline, folder: Path) -> dict[str, NodeRun]:
    LocalDagRunner().run(pipeline)
    return read_run(make_connection_config(f"{folder}/run"), NAME)


def _states(nodes: dict[str, NodeRun]) -> set[str]:
    return {node.state for node in nodes.values()}


def _read_examples(nodes: dict[str, NodeRun]) -> dict[str, tuple[str, int, bytes]]:
    """Returns label, its number and the image of each record, by its image's name."""
    found = {}
    for path in Path(nodes["ImageToTFRecord"].outputs["examples"]).glob("Split-*/*"):
        for record in read_records(str(path)):
            example: Any = decode_example(record)
            found[example["image/filename"][0].decode()] = (
                example["image/class/text"][0].decode(),
                example["image/class/label"][0],
                example["image/encoded"][0],
            )
    return found


def _exec_guide(blocks: int = 1) -> dict[str, Any]:
    """Returns the names that the first snippets of the guide make."""
    found = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.S)[:blocks]
    assert len(found) == blocks
    names: dict[str, Any] = {}
    for block in found:
        exec(block, names)
    return names


def test_the_guides_checks_make_a_pipeline(folder: Path):
    components = _make_pipeline(folder, *_exec_guide(blocks=2)["components"]).components
    assert [each.id for each in components] == [
        "ManifestGen",
        "ImageToTFRecord",
        "ImageStatisticsGen",
        "SchemaGen",
        "ExampleValidator",
        "ImageValidator",
        "ValidationGate",
    ]
    assert list(components[-1].upstream_nodes) == [components[-2]]


def test_the_pipeline_of_the_docs_notices_a_changed_label_and_image(folder: Path):
    names = _exec_guide()
    pipeline = _make_pipeline(folder, names["manifest"], names["examples"])
    first = _read_examples(_run(pipeline, folder))
    assert first["3.jpg"] == ("dog", 1, (folder / "3.jpg").read_bytes())
    assert len(first) == 6

    nodes = _run(pipeline, folder)
    assert _states(nodes) == {"CACHED"}
    assert _read_examples(nodes) == first

    _replace(folder / "images.csv", "3.jpg,dog", "3.jpg,cat")
    nodes = _run(pipeline, folder)
    assert _states(nodes) == {"COMPLETE"}
    relabelled = _read_examples(nodes)
    assert relabelled == {**first, "3.jpg": ("cat", 0, first["3.jpg"][2])}

    image = _write_image(folder / "5.jpg", 99)
    assert _read_examples(_run(pipeline, folder)) == {**relabelled, "5.jpg": ("dog", 1, image)}


def _make_training(folder: Path, *more: Any, **options: Any) -> Pipeline:
    """Makes a pipeline that ends with a Trainer; `more` are nodes that it takes something of."""
    manifest = ManifestGen("images.csv")
    convert = ImageToTFRecord(manifest.outputs["manifest"], manifest.outputs["list_rejects"])
    trainer = Trainer(convert.outputs["examples"], **options)
    return _make_pipeline(folder, manifest, convert, *more, trainer)


def _train(folder: Path, pipeline: Pipeline) -> tuple[str, str]:
    """Runs a pipeline; returns the state of its Trainer, and the text that is its model."""
    trainer = _run(pipeline, folder)["Trainer"]
    return trainer.state, Path(trainer.outputs["model"], "Format-Serving/model.txt").read_text()


def _change_code(folder: Path) -> None:
    (folder / "own_model.py").write_text(RUN_FN % "a second")
    (folder / "own_layers.py").write_text("TEXT = 'other layers'\n")


@pytest.mark.parametrize(
    "options",
    [
        {"run_fn": "own_model.run_fn"},
        # TFX makes a package of it in a process.
        pytest.param({"module_file": "own_model.py"}, marks=pytest.mark.long),
    ],
)
def test_changed_code_trains_again_by_that_code(folder: Path, options: dict[str, Any]):
    pipeline = _make_training(folder, **options)
    assert _train(folder, pipeline) == ("COMPLETE", "first layers")
    assert _train(folder, pipeline) == ("CACHED", "first layers")
    _change_code(folder)
    assert _train(folder, pipeline) == ("COMPLETE", "a second other layers")


def test_a_resolver_does_not_keep_a_change_from_the_nodes_around_it(folder: Path):
    """The latest model is an input: the first run has none, and each new one trains again."""
    latest = Resolver(
        strategy_class=LatestArtifactStrategy, model=Channel(type=standard_artifacts.Model)
    ).with_id("latest_model")
    options = {"run_fn": "own_model.run_fn", "base_model": latest.outputs["model"]}
    pipeline = _make_training(folder, latest, **options)
    assert _train(folder, pipeline) == ("COMPLETE", "first layers")
    _change_code(folder)
    (folder / "0.jpg").unlink()
    assert _train(folder, pipeline) == ("COMPLETE", "a second other layers+")
    nodes = read_run(make_connection_config(f"{folder}/run"), NAME)
    assert {nodes[name].state for name in ("ManifestGen", "ImageToTFRecord")} == {"COMPLETE"}


def test_a_notebook_cell_that_runs_again_looks_at_code_and_files_again(folder, monkeypatch):
    pytest.importorskip("nbformat")  # of Jupyter; TFX 1.21 does without
    from tfx.orchestration.experimental.interactive.interactive_context import InteractiveContext

    monkeypatch.setattr("builtins.__IPYTHON__", True, raising=False)
    (folder / "schema.pbtxt").write_text("feature {}\n")
    context = InteractiveContext(
        pipeline_name=NAME,
        pipeline_root=f"{folder}/run/artifacts",
        metadata_connection_config=make_connection_config(f"{folder}/run"),
        beam_pipeline_args=["--runner=FnApiRunner", "--sdk_container_image=local"],
    )
    manifest = ManifestGen("images.csv")
    convert = ImageToTFRecord(manifest.outputs["manifest"], manifest.outputs["list_rejects"])
    trainer = Trainer(convert.outputs["examples"], run_fn="own_model.run_fn")
    schema = ImportSchemaGen("schema.pbtxt")

    def run_cell() -> list[int]:
        for component in (manifest, convert, trainer, schema):
            context.run(component)
        outputs = (manifest.outputs["manifest"], trainer.outputs["model"], schema.outputs["schema"])
        return [channel.get()[0].id for channel in outputs]

    def run_changed() -> list[bool]:
        before = ids.copy()
        ids[:] = run_cell()
        return [old != new for old, new in zip(before, ids, strict=True)]

    ids = run_cell()
    assert run_changed() == [False, False, False]
    _change_code(folder)
    (folder / "schema.pbtxt").write_text("feature {}\n" * 2)
    assert run_changed() == [False, True, True]
    [model] = trainer.outputs["model"].get()
    assert Path(model.uri, "Format-Serving/model.txt").read_text() == "a second other layers"
    _replace(folder / "images.csv", "3.jpg,dog", "3.jpg,cat")
    assert run_changed() == [True, True, False]


@pytest.mark.parametrize("fingerprint", [None, "given"])
def test_a_backend_without_drivers_runs_the_nodes_in_each_run(fingerprint: str | None):
    """Compiled by TFX alone, for Kubeflow Pipelines or Vertex AI."""
    from tfx.orchestration.kubeflow.v2 import kubeflow_v2_dag_runner

    config = kubeflow_v2_dag_runner.KubeflowV2DagRunnerConfig(
        default_image="own:1", use_pipeline_spec_2_1=True
    )
    schema = ImportSchemaGen("gs://bucket/schema.pbtxt", fingerprint=fingerprint)
    manifest = ManifestGen("gs://bucket/images.csv", source_fingerprint=fingerprint)
    convert = ImageToTFRecord(manifest.outputs["manifest"], manifest.outputs["list_rejects"])
    trainer = Trainer(convert.outputs["examples"], run_fn="a.run_fn", fingerprint=fingerprint)
    nodes = [schema, manifest, convert, trainer]
    pipeline = Pipeline(NAME, "gs://b/root", components=nodes, enable_cache=True)
    runner = kubeflow_v2_dag_runner.KubeflowV2DagRunner(config=config)
    spec = runner.run(pipeline, write_out=False)["pipelineSpec"]
    cache = ServiceCache()
    everything = {node.id for node in nodes}
    assert cache.run(spec, {}, run_id="1") == everything
    again = everything if fingerprint is None else set()
    assert cache.run(spec, {}, run_id="2") == again
    # An attempt of the same run, for one that the cache is asked for.
    assert cache.run(spec, {}, run_id="2") == set()
