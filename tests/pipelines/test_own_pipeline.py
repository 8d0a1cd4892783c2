"""ManifestGen in a pipeline of one's own: what has changed is read again, without being asked for.

One pipeline object is run several times; what counts is what is in the records and manifests.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from absl import logging as absl_logging
from PIL import Image
from tfx.orchestration.local.local_dag_runner import LocalDagRunner
from tfx.orchestration.pipeline import Pipeline

from darkroom.components import ImageManifest, ImageToTFRecord, ManifestGen, Rejects
from darkroom.components.manifest_gen import driver, executor
from darkroom.components.state_driver import TAKEN_BY_EACH_RUN
from darkroom.dataset.example import decode_example
from darkroom.dataset.tfrecord import read_records
from darkroom.errors import DataError, StorageError
from darkroom.manifest.fingerprint import fingerprint_source
from darkroom.options.manifest import ManifestOptions
from darkroom.pipelines.local.lineage import NodeRun, read_latest_run
from darkroom.pipelines.pipeline import make_connection_config

from .service_cache import ServiceCache

pytestmark = pytest.mark.tfx

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "own-pipeline.md"
NAME = "own"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder: 10 images of two labels, listed in images.csv."""
    # TFX hands the process's arguments to absl, which would trip over pytest's.
    monkeypatch.setattr(sys, "argv", sys.argv[:1])
    monkeypatch.chdir(tmp_path)
    for number in range(10):
        _write_image(tmp_path / f"{number}.png", number)
    rows = [("eval" if n > 7 else "train", f"{n}.png", ("cat", "dog")[n % 2]) for n in range(10)]
    with (tmp_path / "images.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("split", "image_uri", "label"), *rows])
    before = absl_logging.get_verbosity()
    absl_logging.set_verbosity(absl_logging.WARNING)
    yield tmp_path
    absl_logging.set_verbosity(before)


def _write_image(path: Path, seed: int) -> bytes:
    """Writes an image of random pixels; all files have the same length."""
    pixels = np.random.default_rng(seed).integers(0, 256, (12, 10, 3), np.uint8)
    Image.fromarray(pixels).save(path, compress_level=0)
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
    (folder / "run").mkdir(exist_ok=True)
    LocalDagRunner().run(pipeline)
    return read_latest_run(f"{folder}/run", NAME)


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


def _read_manifest(nodes: dict[str, NodeRun]) -> dict[str, tuple[str, int]]:
    """Returns label and its number of each row by its id."""
    path = Path(nodes["ManifestGen"].outputs["manifest"], "manifest.parquet")
    rows = pq.read_table(path).to_pylist()
    return {row["id"]: (row["label"], row["label_id"]) for row in rows}


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
    assert first["3.png"] == ("dog", 1, (folder / "3.png").read_bytes())
    assert len(first) == 10

    nodes = _run(pipeline, folder)
    assert _states(nodes) == {"CACHED"}
    assert _read_examples(nodes) == first

    _replace(folder / "images.csv", "3.png,dog", "3.png,cat")
    nodes = _run(pipeline, folder)
    assert _states(nodes) == {"COMPLETE"}
    relabelled = _read_examples(nodes)
    assert relabelled == {**first, "3.png": ("cat", 0, first["3.png"][2])}

    image = _write_image(folder / "5.png", 99)
    assert len(image) == len(first["5.png"][2])
    assert image != first["5.png"][2]
    repainted = _read_examples(_run(pipeline, folder))
    assert repainted == {**relabelled, "5.png": ("dog", 1, image)}
    assert _states(_run(pipeline, folder)) == {"CACHED"}


def test_a_changed_label_map_numbers_the_records_again(folder: Path):
    labels = folder / "labels.txt"
    labels.write_text("dog\ncat\n")
    manifest = ManifestGen(source="images.csv", label_map="labels.txt")
    convert = ImageToTFRecord(manifest.outputs["manifest"], manifest.outputs["list_rejects"])
    pipeline = _make_pipeline(folder, manifest, convert)
    numbers = {
        label: number for label, number, _ in _read_examples(_run(pipeline, folder)).values()
    }
    assert numbers == {"dog": 0, "cat": 1}
    labels.write_text("cat\ndog\n")
    nodes = _run(pipeline, folder)
    assert {label: number for label, number, _ in _read_examples(nodes).values()} == {
        "cat": 0,
        "dog": 1,
    }
    assert _states(nodes) == {"COMPLETE"}
    assert _states(_run(pipeline, folder)) == {"CACHED"}


def _add_file_of_pattern(folder: Path) -> None:
    (folder / "images2.csv").write_text("split,image_uri,label\ntrain,10.png,owl\n")
    _write_image(folder / "10.png", 10)


def _add_to_folder(folder: Path) -> None:
    (folder / "tree/train/owl").mkdir()
    _write_image(folder / "tree/train/owl/x.png", 11)


@pytest.mark.parametrize(
    ("options", "change", "added", "gone"),
    [
        ({"source": "images*.csv"}, _add_file_of_pattern, {"10.png": ("owl", 2)}, set()),
        ({"source": "tree"}, _add_to_folder, {"train/owl/x.png": ("owl", 2)}, set()),
        (
            {"source": "images.csv", "exclude": "list.txt"},
            lambda folder: (folder / "list.txt").write_text("0.png\n1.png\n"),
            {},
            {"1.png"},
        ),
        (
            {"source": "images.csv", "columns": {"split": "split", "image_uri": "image"}},
            lambda folder: _replace(folder / "images.csv", "train,7.png,dog\n", ""),
            {},
            {"7.png"},
        ),
    ],
    ids=["pattern", "folder", "exclusions", "rows"],
)
def test_every_file_that_manifest_gen_reads_is_read_again(
    folder: Path,
    options: dict[str, Any],
    change: Callable[[Path], object],
    added: dict[str, tuple[str, int]],
    gone: set[str],
):
    (folder / "list.txt").write_text("0.png\n")
    for label in ("cat", "dog"):
        (folder / "tree/train" / label).mkdir(parents=True)
        _write_image(folder / "tree/train" / label / "a.png", len(label) + ord(label[0]))
    pipeline = _make_pipeline(folder, ManifestGen(**options))
    before = _read_manifest(_run(pipeline, folder))
    assert gone <= {*before}
    assert _states(_run(pipeline, folder)) == {"CACHED"}
    change(folder)
    after = _read_manifest(_run(pipeline, folder))
    assert after == {name: row for name, row in {**before, **added}.items() if name not in gone}


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []

    def warn(text: str, *more: Any) -> None:
        if "ManifestGen" in text % more:  # TFX warns by the same function
            found.append(text % more)

    monkeypatch.setattr(absl_logging, "warning", warn)
    return found


def test_an_unreadable_source_is_read_in_each_run(folder, warnings, monkeypatch):
    def fail(*_: Any) -> str:
        raise StorageError("s3://photos/images.csv: nobody answers.")

    pipeline = _make_pipeline(folder, ManifestGen(source="images.csv"))
    with monkeypatch.context() as patch:
        patch.setattr(driver, "read_source_state", fail)
        assert [_states(_run(pipeline, folder)) for _ in range(2)] == [{"COMPLETE"}] * 2
    assert len(warnings) == 2
    assert warnings[0].startswith("ManifestGen cannot use the cache, because ")
    assert warnings[0].endswith("s3://photos/images.csv: nobody answers.")
    # Nor does a run that sees it take what those made: it may have been another list.
    assert _states(_run(pipeline, folder)) == {"COMPLETE"}
    assert _states(_run(pipeline, folder)) == {"CACHED"}
    assert len(warnings) == 2


def test_an_image_without_permission_has_an_unknown_state(folder, warnings, monkeypatch):
    from darkroom import storage

    hidden, stat_file = str(folder / "4.png"), storage.stat_file

    def refuse(path: str) -> Any:
        if path == hidden:
            raise PermissionError(13, "Permission denied", path)
        return stat_file(path)

    monkeypatch.setattr(
        "darkroom.manifest.entries._look_up_local", lambda uris: [(None, None)] * len(uris)
    )
    monkeypatch.setattr(storage, "stat_file", refuse)
    pipeline = _make_pipeline(folder, ManifestGen(source="images.csv"))
    assert [_states(_run(pipeline, folder)) for _ in range(2)] == [{"COMPLETE"}] * 2
    assert f"{hidden} cannot be read or written: Permission denied." in warnings[0]


def test_a_missing_image_has_a_known_state(folder, warnings):
    (folder / "4.png").unlink()
    pipeline = _make_pipeline(folder, ManifestGen(source="images.csv"))
    assert _states(_run(pipeline, folder)) == {"COMPLETE"}
    assert _states(_run(pipeline, folder)) == {"CACHED"}
    _write_image(folder / "4.png", 4)
    assert _states(_run(pipeline, folder)) == {"COMPLETE"}
    assert warnings == []


@pytest.mark.parametrize("make", [lambda: "", lambda: fingerprint_source("images.csv")])
def test_a_given_fingerprint_is_used_unchanged(folder, make, monkeypatch):
    monkeypatch.setattr(driver, "read_source_state", None)  # not called
    component = ManifestGen(source="images.csv", source_fingerprint=make())
    pipeline = _make_pipeline(folder, component)
    first = _read_manifest(_run(pipeline, folder))
    _replace(folder / "images.csv", "3.png,dog", "3.png,cat")
    nodes = _run(pipeline, folder)
    assert _states(nodes) == {"CACHED"}
    assert _read_manifest(nodes) == first
    # As users of before do it: a new pipeline for each run.
    again = ManifestGen(source="images.csv", source_fingerprint=make())
    changed = again.exec_properties != component.exec_properties
    assert changed == bool(make())
    rows = _read_manifest(_run(_make_pipeline(folder, again), folder))
    assert rows["3.png"] == (("cat", 0) if changed else ("dog", 1))


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("absent.csv", FileNotFoundError, r"/absent.csv does not exist"),
        ("bad.csv", DataError, r"row 1: unknown split 'tran'"),
    ],
)
def test_an_error_of_the_source_is_reported_once_by_the_node(
    folder, warnings, source, error, message
):
    (folder / "bad.csv").write_text("split,image_uri,label\ntran,0.png,cat\n")
    pipeline = _make_pipeline(folder, ManifestGen(source=source))
    with pytest.raises(error, match=message):
        _run(pipeline, folder)
    assert _states(read_latest_run(f"{folder}/run", NAME)) == {"FAILED"}
    assert warnings == []


def test_making_a_component_reads_nothing(monkeypatch):
    monkeypatch.setattr("builtins.open", None)
    component = ManifestGen(source="absent.csv", label_map="absent.txt", exclude="absent.txt")
    assert component.exec_properties["source"] == "absent.csv"


def test_a_notebook_cell_that_runs_again_reads_the_source_again(folder: Path, monkeypatch):
    pytest.importorskip("nbformat")  # of Jupyter; TFX 1.21 does without
    from tfx.orchestration.experimental.interactive.interactive_context import InteractiveContext

    monkeypatch.setattr("builtins.__IPYTHON__", True, raising=False)
    (folder / "run").mkdir()
    context = InteractiveContext(
        pipeline_name=NAME,
        pipeline_root=f"{folder}/run/artifacts",
        metadata_connection_config=make_connection_config(f"{folder}/run"),
    )
    component = ManifestGen(source="images.csv")

    def run_cell() -> tuple[int, dict[str, tuple[str, int]]]:
        context.run(component)
        [manifest] = component.outputs["manifest"].get()
        rows = pq.read_table(Path(manifest.uri, "manifest.parquet")).to_pylist()
        return manifest.id, {row["id"]: (row["label"], row["label_id"]) for row in rows}

    number, rows = run_cell()
    assert run_cell() == (number, rows)
    _replace(folder / "images.csv", "3.png,dog", "3.png,cat")
    other, changed = run_cell()
    assert other != number
    assert changed == {**rows, "3.png": ("cat", 0)}


def test_a_backend_without_drivers_reads_the_source_in_each_run():
    """Compiled by TFX alone, for Kubeflow Pipelines or Vertex AI."""
    from tfx.orchestration.kubeflow.v2 import kubeflow_v2_dag_runner

    names = _exec_guide()
    config = kubeflow_v2_dag_runner.KubeflowV2DagRunnerConfig(
        default_image="own:1", use_pipeline_spec_2_1=True
    )
    pipeline = Pipeline(NAME, "gs://b/root", components=[names["manifest"], names["examples"]])
    pipeline.enable_cache = True
    runner = kubeflow_v2_dag_runner.KubeflowV2DagRunner(config=config)
    spec = runner.run(pipeline, write_out=False)["pipelineSpec"]
    cache = ServiceCache()
    both = {"ManifestGen", "ImageToTFRecord"}
    assert cache.run(spec, {}, run_id="1") == both
    assert cache.run(spec, {}, run_id="2") == both
    # An attempt of the same run, for one that the cache is asked for.
    assert cache.run(spec, {}, run_id="2") == set()


def test_a_runner_without_drivers_or_run_ids_gets_a_warning(folder, warnings):
    artifacts = {"manifest": [ImageManifest()], "list_rejects": [Rejects()]}
    for name, [artifact] in artifacts.items():
        artifact.uri = str(folder / name)
    properties = {"source": "images.csv", "options": ManifestOptions().to_json()}
    for value, count in (("0.1.0-abc", 0), (TAKEN_BY_EACH_RUN, 1)):
        executor.Executor().Do({}, artifacts, {**properties, "source_fingerprint": value})
        assert len(warnings) == count
    assert "its cache cannot notice that images.csv has changed" in warnings[0]
