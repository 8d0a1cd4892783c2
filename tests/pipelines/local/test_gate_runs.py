"""Runs that end at the gate: short, because nothing is trained."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from darkroom.pipelines.config import PipelineConfig
from darkroom.pipelines.local.lineage import read_latest_run
from darkroom.pipelines.local.runner import run_locally
from darkroom.validation.gate import GateError

pytestmark = pytest.mark.tfx

SCHEMA = """
feature { name: "image/height" type: INT int_domain { min: 8 max: 16 } }
feature { name: "image/width" type: INT }
feature { name: "image/channels" type: INT }
feature { name: "image/size_bytes" type: INT }
feature { name: "image/luminance" type: FLOAT }
feature { name: "image/format" type: BYTES }
feature { name: "image/class/text" type: BYTES }
feature { name: "camera" type: BYTES }
"""


def _write_images(folder: Path, eval_height: int = 12, eval_camera: str = "one") -> Path:
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(5)
    rows = [("split", "image_uri", "label", "camera")]
    for number in range(60):
        split = ("train", "eval")[number % 5 == 4]
        height, camera = (eval_height, eval_camera) if split == "eval" else (12, "one")
        pixels = rng.integers(0, 256, (height, 10, 3), np.uint8)
        path = folder / f"{number:02d}.jpg"
        if not path.exists():
            Image.fromarray(pixels).save(path)
        rows.append((split, path.name, ("cat", "dog")[number % 2], camera))
    with (folder / "images.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return folder / "images.csv"


def _config(source: Path, root: Path, **options) -> PipelineConfig:
    return PipelineConfig(data=str(source), root=str(root), **options)


def _run_to_gate(config: PipelineConfig) -> tuple[str, dict[str, str]]:
    """Returns the gate's message and the state of every node that ran."""
    with pytest.raises(GateError) as error:
        run_locally(config)
    nodes = read_latest_run(config.root, config.name)
    return str(error.value), {name: node.state for name, node in nodes.items()}


def _stop(**options) -> dict[str, object]:
    # No data set has ten million images of a class: a gate that is sure to hold.
    return {"policies": {"small_classes": "fail"}, "min_class_images": 10_000_000, **options}


def test_a_value_only_in_eval_stops_the_run_and_the_report_stays(tmp_path: Path):
    source = _write_images(tmp_path / "images", eval_camera="two")
    config = _config(source, tmp_path / "run")
    message, states = _run_to_gate(config)
    assert "anomalies" in message
    assert "camera" in message
    assert states["ImageValidator"] == "COMPLETE"
    assert states["ValidationGate"] == "FAILED"
    assert "Trainer" not in states
    report = message.rpartition("The whole report: ")[2]
    found = json.loads(Path(report).with_name("report.json").read_text())
    [finding] = [each for each in found["findings"] if each["check"] == "anomalies"]
    assert [(row["split"], row["feature"]) for row in finding["rows"]] == [("eval", "camera")]
    assert Path(report).read_text().startswith("<!")


@pytest.mark.long
def test_a_value_of_eval_outside_the_given_schema_stops_the_run(tmp_path: Path):
    schema = tmp_path / "schema.pbtxt"
    schema.write_text(SCHEMA)
    source = _write_images(tmp_path / "images", eval_height=20)
    message, states = _run_to_gate(_config(source, tmp_path / "run", schema=str(schema)))
    assert "image/height" in message
    assert "Out-of-range" in message
    assert "Trainer" not in states


# The demo's tests run it again unchanged, and the next test with a changed image.
@pytest.mark.long
def test_unchanged_nodes_are_reused_and_changed_nodes_run_again(tmp_path: Path):
    source, root = _write_images(tmp_path / "images"), tmp_path / "run"
    _, first = _run_to_gate(_config(source, root, **_stop()))
    assert set(first.values()) == {"COMPLETE", "FAILED"}

    _, same = _run_to_gate(_config(source, root, **_stop()))
    assert [name for name, state in same.items() if state != "CACHED"] == ["ValidationGate"]

    # Another policy of the gate: everything before the judge is reused.
    _, milder = _run_to_gate(_config(source, root, **_stop(max_rejects=0.5)))
    assert [name for name, state in milder.items() if state != "CACHED"] == [
        "ImageValidator",
        "ValidationGate",
    ]

    # Another image at the same path: nothing may come from before.
    Image.fromarray(np.zeros((12, 10, 3), np.uint8)).save(source.parent / "00.jpg")
    _, changed = _run_to_gate(_config(source, root, **_stop()))
    assert "CACHED" not in changed.values()

    # Another label in the same CSV.
    source.write_text(source.read_text().replace("00.jpg,cat", "00.jpg,dog"))
    _, relabelled = _run_to_gate(_config(source, root, **_stop()))
    assert "CACHED" not in relabelled.values()


def test_lost_outputs_and_those_of_another_image_are_made_again(tmp_path: Path, monkeypatch):
    source, root = _write_images(tmp_path / "images"), tmp_path / "run"
    # absl, which TFX uses, must not see the arguments of the process.
    monkeypatch.setattr("sys.argv", ["darkroom", "--verbosity", "debug"])
    message, _ = _run_to_gate(_config(source, root, **_stop()))
    assert "small_classes" in message
    # As a cleaner of temporary files does: folders stay.
    for path in (root / "artifacts/ManifestGen/manifest").rglob("*"):
        _ = path.is_file() and path.unlink()
    # Other options of the conversion, so that it reads the manifest.
    _, states = _run_to_gate(_config(source, root, **_stop(jpeg_quality=80)))
    assert "CACHED" not in states.values()
    assert states["ImageValidator"] == "COMPLETE"
    manifest = read_latest_run(str(root), "darkroom")["ManifestGen"].outputs["manifest"]
    assert json.loads(Path(manifest, "manifest.json").read_text())["rows"] == 60
    # Another image at the same path.
    Image.fromarray(np.zeros((12, 10, 3), np.uint8)).save(source.parent / "00.jpg")
    _, states = _run_to_gate(_config(source, root, **_stop(jpeg_quality=80)))
    assert "CACHED" not in states.values()
