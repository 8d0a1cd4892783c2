"""What a run reads besides artifacts must change a property when it changes."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from darkroom.components.state_driver import StateDriver
from darkroom.manifest.fingerprint import read_source_state
from darkroom.pipelines.config import PipelineConfig
from darkroom.pipelines.model_state import fingerprint_model
from darkroom.pipelines.pipeline import create_pipeline

pytestmark = pytest.mark.tfx

SCHEMA = 'feature { name: "image/height" type: INT int_domain { min: %d } }'


@pytest.fixture
def config(tmp_path: Path) -> PipelineConfig:
    (tmp_path / "images").mkdir()
    for label in ("cat", "dog"):
        (tmp_path / "images" / label).mkdir()
        (tmp_path / "images" / label / "1.png").write_bytes(label.encode())
    return PipelineConfig(data=f"{tmp_path}/images", root=f"{tmp_path}/run")


def _properties(config: PipelineConfig) -> dict[str, dict[str, object]]:
    """Returns what TFX's cache compares, by node."""
    found = {}
    for node in create_pipeline(config).components:
        given = dict(node.exec_properties)
        if issubclass(node.driver_class, StateDriver):
            given = node.driver_class(None).resolve_exec_properties(given, None, None)
        found[node.id] = given
    return found


def test_a_given_fingerprint_is_used_unchanged(config):
    given = dataclasses.replace(config, source_fingerprint="1", model_fingerprint="2")
    properties = _properties(given)
    assert properties["ManifestGen"]["source_fingerprint"] == "1"
    assert json.loads(properties["Trainer"]["custom_config"])["model_fingerprint"] == "2"


def test_an_allowed_folder_may_be_a_link(config, tmp_path):
    everywhere = _properties(config)
    (tmp_path / "link").symlink_to("images")
    allowed = dataclasses.replace(config, allowed_roots=(f"{tmp_path}/link",))
    seen = []
    read_source_state(allowed.data, allowed.manifest, seen.append)
    assert [len(chunk.columns["uri"]) for chunk in seen] == [2]
    (tmp_path / "link").unlink()
    (tmp_path / "link").mkdir()
    seen.clear()
    read_source_state(allowed.data, allowed.manifest, seen.append)
    assert [reject.reason for chunk in seen for reject in chunk.rejects] == ["outside_root"] * 2
    assert _properties(allowed)["ManifestGen"] != everywhere["ManifestGen"]


def test_a_changed_schema_changes_the_properties_of_its_node(config, tmp_path):
    path = tmp_path / "schema.pbtxt"
    path.write_text(SCHEMA % 200)
    config = dataclasses.replace(config, schema=str(path))
    before = _properties(config)
    path.write_text(SCHEMA % 20)
    after = _properties(config)
    assert [name for name in before if before[name] != after[name]] == ["ImportSchemaGen"]


def test_changed_weights_or_model_code_change_the_properties_of_the_trainer(
    config, tmp_path, monkeypatch
):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_models.py").write_text("def build(n, size): ...\n")
    weights = tmp_path / "w.weights.h5"
    weights.write_bytes(b"1")
    config = dataclasses.replace(config, model="own_models:build", weights=str(weights))
    first = _properties(config)
    (tmp_path / "own_models.py").write_text("import own_nets\n\ndef build(n, size): return 1\n")
    (tmp_path / "own_nets.py").write_text("WIDTH = 8\n")
    second = _properties(config)
    (tmp_path / "own_nets.py").write_text("WIDTH = 16\n")
    imported = _properties(config)
    assert [name for name in second if second[name] != imported[name]] == ["Trainer"]
    second = imported
    weights.write_bytes(b"22")
    third = _properties(config)
    for before, after in ((first, second), (second, third)):
        assert [name for name in before if before[name] != after[name]] == ["Trainer"]


@pytest.mark.parametrize("model", ["small_cnn", "keras.applications:MobileNetV3Small", "no.such:x"])
def test_a_model_without_own_files_has_no_state(model):
    assert fingerprint_model(model, None) == ""
