"""A whole run of the TFX pipeline for the kinds that TFMA has no metrics for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from darkroom.cli import main

from .conftest import OPTIONS

pytestmark = [pytest.mark.tfx, pytest.mark.long]


@pytest.mark.parametrize(
    ("kind", "score"), [("labels", "mean average precision"), ("numbers", "R²")]
)
def test_a_list_becomes_a_pushed_model_with_a_page(kind, score, listed, tmp_path, capfd):
    [(name, value)] = OPTIONS[kind].items()
    given = value if isinstance(value, str) else ",".join(value)
    flags = [
        f"--{name.replace('_', '-')}",
        given,
        "--image-size",
        "8x8",
        "--epochs",
        "1",
        "--policy",
        "anomalies=warn",
    ]
    places = ["--root", str(tmp_path / "run"), "--push-to", str(tmp_path / "pushed")]
    # Noise, of which a model learns nothing: no bound is set.
    assert main(["run", "--data", str(listed(kind)), *places, *flags, "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["score"] <= 1
    learned = json.loads(Path(found["pushed"], "assets", "target.json").read_text())
    assert learned["kind"] == kind
    assert score in Path(found["page"]).read_text()
