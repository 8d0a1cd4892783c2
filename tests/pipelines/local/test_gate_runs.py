"""A run that ends at the gate: short, because nothing is trained."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from darkroom.pipelines.config import PipelineConfig
from darkroom.pipelines.local.lineage import read_run
from darkroom.pipelines.local.runner import launch
from darkroom.pipelines.pipeline import create_pipeline, make_connection_config
from darkroom.validation.gate import GateError

from ...image_set import ImageSet

pytestmark = pytest.mark.tfx


def test_a_value_only_in_eval_stops_the_run_and_the_report_stays(
    jpeg_set: ImageSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # absl, which TFX uses, must not see the arguments of the process.
    monkeypatch.setattr("sys.argv", ["darkroom", "--verbosity", "debug"])
    source = jpeg_set.csv
    header, *rows = source.read_text().splitlines()
    rows = [f"{row},{'two' if row.startswith('VALIDATION') else 'one'}" for row in rows]
    source.write_text("\n".join([f"{header},camera", *rows]))
    config = PipelineConfig(data=str(source), root=str(tmp_path / "run"))
    Path(config.root).mkdir()
    stop = launch(create_pipeline(config))
    assert isinstance(stop, GateError)
    assert re.search(r"(?s)anomalies.*camera", str(stop))
    states = {
        name: n.state
        for name, n in read_run(make_connection_config(config.root), config.name).items()
    }
    assert states["ImageValidator"] == "COMPLETE"
    assert states["ValidationGate"] == "FAILED"
    assert "Trainer" not in states
    report = Path(str(stop).rpartition("The whole report: ")[2])
    found = json.loads(report.with_name("report.json").read_text())
    [finding] = [each for each in found["findings"] if each["check"] == "anomalies"]
    assert [(row["split"], row["feature"]) for row in finding["rows"]] == [("eval", "camera")]
    assert report.read_text().startswith("<!")
