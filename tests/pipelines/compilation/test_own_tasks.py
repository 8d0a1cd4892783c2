"""Pipelines of one's own, compiled from examples/, run as the services run them: task by task."""

from __future__ import annotations

import argparse
import itertools
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import yaml
from PIL import Image
from tfx.dsl.io import filesystem_registry
from tfx.dsl.io.plugins.tensorflow_gfile import TensorflowFilesystem
from tfx.orchestration.kubeflow.v2.file_based_example_gen import driver
from tfx.v1.components import Trainer
from tfx.v1.dsl import Importer, Pipeline
from tfx.v1.types.standard_artifacts import Examples

from darkroom.dataset.example import decode_example
from darkroom.errors import StorageError
from darkroom.pipelines import ClusterConfig, compile_pipeline

from ..launcher import LOGS, Launcher, TaskRun, run_in_process
from .own_package import write_package

pytestmark = pytest.mark.tfx

EXAMPLES = Path(__file__).parents[3] / "examples"
IMAGE = "registry.example.com/ml/photos:1"
SPLITS = '["train", "eval"]'
# Trains nothing: what counts is that the task has this code.
RUN_FN = """
import os


def run_fn(fn_args):
    os.makedirs(fn_args.serving_model_dir)
    with open(os.path.join(fn_args.serving_model_dir, "saved_model.pb"), "w") as file:
        file.write(str(len([*fn_args.train_files, *fn_args.eval_files])))
"""
FILE_FUNCTIONS = ("copy", "exists", "isdir", "makedirs", "open", "rename")
DRIVER_ARGUMENTS = ("json_serialized_invocation_args", "json_serialized_inputs_spec_args")


@pytest.fixture(autouse=True)
def modules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Makes modules of users importable, as they are in the image of the tasks."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.fixture
def images(tmp_path: Path) -> str:
    """A folder of 24 dark and light images."""
    rng = np.random.default_rng(3)
    for number in range(24):
        split, label = "eval" if number > 15 else "train", ("dark", "light")[number % 2]
        path = tmp_path / f"images/{split}/{label}/{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 60, (12, 10, 3)) + (0, 190)[number % 2]
        Image.fromarray(pixels.astype(np.uint8)).save(path)
    return str(tmp_path / "images")


def check_green(runs: dict[str, TaskRun], capfd) -> None:
    failed = [name for name, run in runs.items() if run.state != "SUCCEEDED"]
    assert failed == [], capfd.readouterr().err[-4000:]


# It imports and runs all of TFX's own components: 20 s of processor time.
@pytest.mark.long
def test_transform_tuner_trainer_and_evaluator_run_on_kubeflow(images: str, tmp_path: Path, capfd):
    import tuned_images

    root = "minio://mlpipeline/v2/artifacts"
    pipeline = tuned_images.make_pipeline(root, images, epochs=1)
    config = ClusterConfig(image=IMAGE, volumes={images: "photos"})
    spec = next(yaml.safe_load_all(compile_pipeline(pipeline, "kubeflow", config)))
    launcher = Launcher(spec, root, tmp_path / "cluster", run_in_process)
    runs = launcher.run()
    check_green(runs, capfd)
    assert len(runs) == 8

    def find(task: str, key: str) -> Path:
        return launcher.find_bucket_path(runs[task].outputs[key]["uri"])

    best = json.loads(
        (find("Tuner", "best_hyperparameters") / "best_hyperparameters.txt").read_text()
    )
    assert best["values"]["units"] in (4, 8)
    assert (find("Trainer", "model") / "Format-Serving/saved_model.pb").exists()
    assert [*find("Transform", "transformed_examples").glob("Split-train/*.gz")]
    blessing = runs["Evaluator"].outputs["blessing"]["metadata"]
    assert blessing["current_model"] == runs["Trainer"].outputs["model"]["uri"]
    assert blessing["blessed"] in (0.0, 1.0)
    named = {each["uri"] for run in runs.values() for each in run.outputs.values()}
    assert all(uri.startswith(f"{root}/tuned-images/") for uri in named)
    assert all(LOGS in run.outputs for run in runs.values())


def run_with_driver(command: list[str], environment: dict[str, str], log: Path) -> int:
    """Runs a task as Vertex does: of a file-based ExampleGen the driver comes first."""
    if "tfx.components.example_gen.csv_example_gen.executor.Executor" in command:
        given = dict(itertools.pairwise(command))
        arguments = {name: given[f"--{name}"] for name in DRIVER_ARGUMENTS}
        task = json.loads(arguments[DRIVER_ARGUMENTS[0]])
        del task["outputs"]["artifacts"][LOGS]  # Kubeflow's alone
        arguments[DRIVER_ARGUMENTS[0]] = json.dumps(task)
        driver.main(argparse.Namespace(**arguments))
    return run_in_process(command, environment, log)


def _compile_tables() -> dict[str, Any]:
    import csv_on_vertex

    config = ClusterConfig(image=IMAGE, root="gs://artifacts/tables")
    job = json.loads(compile_pipeline(csv_on_vertex.make_pipeline(), "vertex", config))
    spec: dict[str, Any] = job["pipelineSpec"]
    return spec


def test_a_stock_example_gen_has_its_driver_on_vertex():
    executors = _compile_tables()["deploymentSpec"]["executors"]
    hook = executors["CsvExampleGen_executor"]["container"]["lifecycle"]
    assert hook["preCacheCheck"]["command"] == ["python", "-m", driver.__name__]
    assert hook["preCacheCheck"]["args"][::2] == [f"--{name}" for name in DRIVER_ARGUMENTS]


@pytest.mark.long
def test_a_stock_example_gen_reads_the_newest_span_on_vertex(tmp_path: Path, capfd):
    for span, numbers in ((1, range(5)), (2, range(40))):
        (tmp_path / f"tables/span-{span}").mkdir(parents=True)
        rows = "".join(f"{number},{'ab'[number % 2]}\n" for number in numbers)
        (tmp_path / f"tables/span-{span}/photos.csv").write_text(f"size,label\n{rows}")
    launcher = Launcher(
        _compile_tables(),
        str(tmp_path / "bucket"),  # tasks open it themselves, as they do gs:// on Vertex
        tmp_path / "cluster",
        run_with_driver,
        parameters={"tables": str(tmp_path / "tables")},
    )
    runs = launcher.run({"CsvExampleGen"})
    check_green(runs, capfd)
    examples = Path(runs["CsvExampleGen"].outputs["examples"]["uri"])
    sizes = set()
    for path in examples.glob("Split-*/*.gz"):
        for record in tf.data.TFRecordDataset(str(path), "GZIP").as_numpy_iterator():
            sizes.update(decode_example(record)["size"])
    assert sizes == set(range(40))


def test_components_of_ones_own_get_their_properties_whatever_their_names(tmp_path: Path, capfd):
    photolab = write_package(tmp_path, "phototasks")
    table = photolab.MakeTable(epochs=3, data="rows", policies="none", seed=7)
    values = photolab.KeepValues(flag=True, sizes=[16, 32])
    pipeline = photolab.make_pipeline(table, values)
    text = compile_pipeline(pipeline, "kubeflow", ClusterConfig(image=IMAGE))
    spec = next(yaml.safe_load_all(text))
    launcher = Launcher(spec, "s3://bucket/runs", tmp_path / "cluster", run_in_process)
    runs = launcher.run()
    check_green(runs, capfd)

    def read(task: str) -> object:
        folder = launcher.find_bucket_path(runs[task].outputs["table"]["uri"])
        return json.loads((folder / "table.json").read_text())

    assert read("MakeTable") == ["rows", 3, "none", 7]
    assert read("KeepValues") == [1, "[16, 32]"]  # what TFX compiles of them


def test_a_root_that_cannot_take_the_code_of_a_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    module = tmp_path / "code/training.py"
    module.parent.mkdir()
    module.write_text(RUN_FN)
    records = Importer("gs://photos/records", Examples, reimport=True)
    trainer = Trainer(examples=records.outputs["result"], module_file=str(module))
    gs = {"SUPPORTED_SCHEMES": ["gs://"], **dict.fromkeys(FILE_FUNCTIONS, staticmethod(refuse))}
    use_for_gs(monkeypatch, type("Refusing", (TensorflowFilesystem,), gs))
    config = ClusterConfig(image=IMAGE, root="gs://artifacts/filed")
    with pytest.raises(
        StorageError, match=r"root gs://artifacts/filed: no access \(403\)"
    ) as error:
        compile_pipeline(Pipeline("filed", components=[records, trainer]), "vertex", config)
    assert "run_fn='PACKAGE.MODULE.run_fn'" in error.value.hint


def use_for_gs(monkeypatch: pytest.MonkeyPatch, kind: type[TensorflowFilesystem]) -> None:
    registry = filesystem_registry.FilesystemRegistry()
    registry.register(TensorflowFilesystem, priority=1)
    registry.register(kind, priority=0)
    monkeypatch.setattr(filesystem_registry, "DEFAULT_FILESYSTEM_REGISTRY", registry)


def refuse(*_: Any, **__: Any) -> None:
    raise tf.errors.PermissionDeniedError(None, None, "no access\n\t(403)")


@pytest.fixture
def buckets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which TFX finds gs://, as `launcher.find_bucket_path` does."""
    folder = tmp_path / "cluster/buckets/gcs"

    def place(value: Any) -> Any:
        is_uri = isinstance(value, str) and value.startswith("gs://")
        return str(folder / value.removeprefix("gs://")) if is_uri else value

    def map_paths(function: Callable[..., Any]) -> Any:
        return staticmethod(lambda *given, **more: function(*map(place, given), **more))

    functions = {name: map_paths(getattr(TensorflowFilesystem, name)) for name in FILE_FUNCTIONS}
    bucket = type("Bucket", (TensorflowFilesystem,), {"SUPPORTED_SCHEMES": ["gs://"], **functions})
    use_for_gs(monkeypatch, bucket)
    return folder


@pytest.fixture
def filed(tmp_path: Path, buckets: Path) -> tuple[dict[str, Any], Path]:
    """A pipeline compiled for Vertex whose code was in a file here; and the wheel of that file."""
    module = tmp_path / "code/training.py"
    module.parent.mkdir()
    module.write_text(RUN_FN)
    records = Importer("gs://photos/records", Examples, properties={"split_names": SPLITS})
    trainer = Trainer(examples=records.outputs["result"], module_file=str(module))
    pipeline = Pipeline("filed", components=[records, trainer])
    config = ClusterConfig(image=IMAGE, root="gs://artifacts/filed")
    with pytest.warns(UserWarning, match="Importer takes the files of its URI for unchanged"):
        spec = json.loads(compile_pipeline(pipeline, "vertex", config))["pipelineSpec"]
    module.unlink()
    [wheel] = (buckets / "artifacts/filed/_wheels").iterdir()
    return spec, wheel


def test_code_in_a_file_is_in_the_root_on_vertex(filed: tuple[dict[str, Any], Path]):
    spec, wheel = filed
    given = spec["root"]["dag"]["tasks"]["Trainer"]["inputs"]["parameters"]
    assert given["module_path"]["runtimeValue"]["constant"] == (
        f"training@gs://artifacts/filed/_wheels/{wheel.name}"
    )
    assert zipfile.ZipFile(wheel).read("training.py").decode() == RUN_FN


# TFX installs it in a process of pip.
@pytest.mark.long
def test_a_task_takes_its_code_from_the_root_on_vertex(
    filed: tuple[dict[str, Any], Path], converted_jpegs: Path, tmp_path: Path, capfd
):
    spec, _ = filed
    launcher = Launcher(spec, str(tmp_path / "bucket"), tmp_path / "cluster", run_in_process)
    importer = spec["deploymentSpec"]["executors"]["Importer_executor"]["importer"]
    made = {"type": importer["typeSchema"], "metadata": {"split_names": SPLITS}}
    launcher.add_run("Importer", {"result": {"uri": str(converted_jpegs), **made}})
    runs = launcher.run({"Trainer"})
    check_green(runs, capfd)
    model = Path(runs["Trainer"].outputs["model"]["uri"])
    assert (model / "Format-Serving/saved_model.pb").read_text() == "2"
