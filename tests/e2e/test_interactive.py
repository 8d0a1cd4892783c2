"""TFX's InteractiveContext in a kernel of Jupyter: what it shows of the artifacts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

# tests/components/test_notebook.py looks at each view without a kernel.
pytestmark = [pytest.mark.tfx, pytest.mark.e2e, pytest.mark.long]

CELLS = [
    """
from tfx.orchestration.experimental.interactive.interactive_context import InteractiveContext
from tfx.v1.components import ExampleValidator, SchemaGen
from darkroom.components import (
    ImageStatisticsGen, ImageToTFRecord, ImageValidator, ManifestGen, ValidationGate
)

context = InteractiveContext(
    pipeline_root="run", beam_pipeline_args=["--runner=FnApiRunner", "--sdk_container_image=local"]
)
manifest = ManifestGen("images")
records = ImageToTFRecord(manifest.outputs["manifest"], manifest.outputs["list_rejects"])
statistics = ImageStatisticsGen(records.outputs["index"])
schema = SchemaGen(statistics.outputs["statistics"], exclude_splits=["eval", "test"])
anomalies = ExampleValidator(statistics.outputs["statistics"], schema.outputs["schema"])
validator = ImageValidator(
    records.outputs["index"],
    records.outputs["rejects"],
    manifest.outputs["manifest"],
    anomalies.outputs["anomalies"],
)
""",
    """
for component in (manifest, records, statistics, schema, anomalies, validator):
    context.run(component)
""",
    'context.show(statistics.outputs["statistics"])',
    'context.show(validator.outputs["report"])',
    'context.show(validator.outputs["validation_html"])',
    """
from tfx.v1.dsl import Pipeline
from tfx.v1.orchestration.metadata import sqlite_metadata_connection_config
from darkroom.pipelines import LocalRunner

summary = LocalRunner().run(
    Pipeline(
        "own",
        "runner",
        components=[ManifestGen("images")],
        metadata_connection_config=sqlite_metadata_connection_config("runner/metadata.sqlite"),
    )
)
print(summary.root)
""",
]


def _show(cell: dict[str, Any]) -> str:
    """Returns the HTML that a cell shows."""
    return "".join(each["data"]["text/html"] for each in cell["outputs"] if "data" in each)


def test_a_notebook_shows_what_is_in_the_artifacts(tmp_path: Path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    for number in range(12):
        split, label = ("train", "eval")[number % 2], ("cat", "dog")[number // 2 % 2]
        path = tmp_path / f"images/{split}/{label}/{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(number).integers(0, 256, (9, 9, 3), np.uint8)
        Image.fromarray(pixels).save(path)
    (tmp_path / "images/train/cat/empty.png").touch()
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in CELLS])
    client = nbclient.NotebookClient(notebook, resources={"metadata": {"path": str(tmp_path)}})
    client.create_kernel_manager().kernel_spec.argv[0] = sys.executable
    client.execute()
    *shown, runner = notebook.cells[2:]
    statistics, report, page = map(_show, shown)
    assert statistics.count("split:</b>") == 2
    assert "facets-overview" in statistics
    for frame in (report, page):
        assert "srcdoc=" in frame
        assert "darkroom · validation report" in frame
    assert {(each["output_type"], each.get("name")) for each in runner["outputs"]} == {
        ("stream", "stdout")
    }
    text = "".join(each["text"] for each in runner["outputs"])
    node, log, time, root = filter(None, text.splitlines())
    assert root == "runner"
    assert node.startswith("ManifestGen [1/1] done in ")
    assert log == f"Log        {tmp_path}/runner/log.txt"
    assert time.startswith("Time ")
