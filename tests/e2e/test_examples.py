"""The pipelines in examples/ as a user runs them, all on one small set of images."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ..warm_python import WarmPython

pytestmark = [pytest.mark.tfx, pytest.mark.e2e]

EXAMPLES = Path(__file__).parents[2] / "examples"
SCOPE = (
    "Looked for: equal pixels and small changes; crops and turned copies need features: option "
    "embed, or darkroom embed. Without perceptual hash: 52 images, plain, tiny or damaged, or of "
    "an old dataset."
)
DATA_NODES = [
    *("ImportSchemaGen", "ManifestGen", "ImageToTFRecord", "ImageStatisticsGen"),
    *("ExampleValidator", "ImageValidator", "ValidationGate"),
]
Run = Callable[..., "Lines"]


class Lines:
    """What an example printed.

    Attributes:
        code: Its exit code.
        text: Its standard output.
        error: Its standard error.
        nodes: Whether each node came from the cache, by its name and in the order of the run.
        summary: The lines of the summary by their first word.
    """

    def __init__(self, code: int, text: str, error: str) -> None:
        self.code, self.text, self.error = code, text, error
        found = re.findall(r"^(\w+) \[\d+/\d+\] done in [\d.]+ s(.*)$", text, re.M)
        self.nodes = {name: "reused" in more for name, more in found}
        self.summary = dict(re.findall(r"^([A-Z]\w+(?: in| to)?)  +(\S.*)$", text, re.M))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the examples, and dark and light images."""
    folder = tmp_path_factory.mktemp("examples")
    shutil.copytree(EXAMPLES, folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    rng = np.random.default_rng(0)
    for number in range(52):
        split, label = "train" if number < 40 else "eval", ("dark", "light")[number % 2]
        path = folder / f"images/{split}/{label}/{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(-30, 30, (24, 20, 3)) + (40, 200)[number % 2]
        Image.fromarray(pixels.astype(np.uint8)).save(path)
    return folder


@pytest.fixture(scope="module")
def run(folder: Path, warm_python: WarmPython) -> Run:
    """Runs an example by its name."""

    def run_example(name: str) -> Lines:
        script = folder / "examples" / f"{name}.py"
        done = warm_python.run(script, folder / "images", folder / "runs" / name, cwd=folder)
        return Lines(done.returncode, done.stdout, done.stderr)

    return run_example


@pytest.mark.long
def test_data_is_checked_by_a_schema_and_policies_of_ones_own(folder: Path, run: Run):
    first = run("checked_data")
    assert (first.code, first.nodes) == (0, dict.fromkeys(DATA_NODES, False)), first.error
    counts = {"Rows in": "52", "Written": "52  (train 40, eval 12)", "Rejected": "0"}
    assert counts.items() <= first.summary.items()
    assert first.summary["Gate"] == f"Passed. {SCOPE}"
    assert {"Epoch", "Accuracy", "Pushed to", "Model"}.isdisjoint(first.summary)
    log = Path(first.summary["Log"])
    assert log.parent == folder / "runs/checked_data/artifacts"
    assert not any(word in first.text + first.error for word in ("absl", "INFO"))

    # All images are 24 pixels high, so a schema that wants more stops the run.
    schema = folder / "examples/schema.pbtxt"
    before = schema.read_text()
    schema.write_text(before.replace("min: 16", "min: 32"))
    again = run("checked_data")
    schema.write_text(before)
    assert again.code == 1
    assert again.nodes["ImportSchemaGen"] is False
    assert again.nodes["ImageToTFRecord"] is True
    assert again.summary["Gate"] == f"Stopped by 1 finding. {SCOPE}"
    assert "anomalies" not in again.text
    assert "GateError" in again.error
    assert again.error.count("FAIL  anomalies") == 1


# tests/pipelines/test_own_pipeline.py runs such pipelines with models that are texts.
@pytest.mark.long
def test_only_changed_code_trains_again(folder: Path, run: Run):
    nodes = [*DATA_NODES, "Trainer", "Pusher"]
    first = run("own_training")
    assert (first.code, first.nodes) == (0, dict.fromkeys(nodes, False)), first.error
    assert Path(first.summary["Pushed to"], "saved_model.pb").exists()
    assert "val_accuracy" in Path(first.summary["Log"]).read_text()

    second = run("own_training")
    assert (second.code, second.nodes) == (0, dict.fromkeys(nodes, True)), second.error
    assert second.summary["Pushed to"] == first.summary["Pushed to"]

    script = folder / "examples/own_training.py"
    script.write_text(script.read_text().replace("Conv2D(16", "Conv2D(8"))
    third = run("own_training")
    assert [name for name, is_reused in third.nodes.items() if not is_reused] == nodes[-2:]
    assert third.summary["Pushed to"] != first.summary["Pushed to"]


@pytest.mark.long
def test_each_run_trains_on_from_the_last_good_model(folder: Path, run: Run):
    nodes = [*DATA_NODES, "last_good_model", "Trainer", "Evaluator", "Pusher"]
    first = run("warm_start")
    assert float(first.summary["Accuracy"].split()[0]) >= 0.6  # or the second has nothing to load
    second = run("warm_start")
    assert (first.code, second.code) == (0, 0), first.error + second.error
    assert first.nodes == dict.fromkeys(nodes, False)
    assert [name for name, is_reused in second.nodes.items() if not is_reused] == nodes[-4:]
    assert "Trains on from" in Path(second.summary["Log"]).read_text()
    for each in (first, second):
        assert float(each.summary["Accuracy"].split()[0]) >= 0.6
        assert Path(each.summary["Pushed to"], "assets.extra/model.weights.h5").exists()
    assert first.summary["Pushed to"] != second.summary["Pushed to"]
