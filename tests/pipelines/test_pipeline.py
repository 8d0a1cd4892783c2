from __future__ import annotations

import pytest

from darkroom.pipelines.config import PipelineConfig
from darkroom.pipelines.pipeline import create_pipeline, make_eval_config

pytestmark = pytest.mark.tfx


@pytest.fixture
def config(tmp_path) -> PipelineConfig:
    return PipelineConfig(data="images.csv", root=str(tmp_path / "run"))


def _ids(pipeline) -> list[str]:
    return [component.id for component in pipeline.components]


def test_the_pipeline_has_all_nodes(config):
    assert sorted(_ids(create_pipeline(config))) == sorted(
        [
            "ManifestGen",
            "ImageToTFRecord",
            "ImageStatisticsGen",
            "SchemaGen",
            "ExampleValidator",
            "ImageValidator",
            "ValidationGate",
            "Trainer",
            "Evaluator",
            "ModelReport",
            "Pusher",
        ]
    )


def test_creating_the_pipeline_writes_nothing(config, tmp_path):
    create_pipeline(config)
    assert list(tmp_path.iterdir()) == []


def test_the_trainer_waits_for_the_gate(config):
    nodes = {component.id: component for component in create_pipeline(config).components}
    assert {node.id for node in nodes["Trainer"].upstream_nodes} == {
        "ImageToTFRecord",
        "ValidationGate",
    }


def test_the_schema_comes_from_the_training_split_only(config):
    nodes = {component.id: component for component in create_pipeline(config).components}
    assert nodes["SchemaGen"].exec_properties["exclude_splits"] == '["eval", "test"]'


def test_a_given_schema_is_imported(tmp_path):
    config = PipelineConfig(data="images.csv", root=str(tmp_path), schema="/schema.pbtxt")
    nodes = {component.id: component for component in create_pipeline(config).components}
    assert "SchemaGen" not in nodes
    assert nodes["ImportSchemaGen"].exec_properties["schema_file"] == "/schema.pbtxt"


def test_policies_are_properties_of_image_validator_only(tmp_path):
    def properties(**options) -> dict[str, dict[str, object]]:
        config = PipelineConfig(data="images.csv", root=str(tmp_path), **options)
        return {c.id: dict(c.exec_properties) for c in create_pipeline(config).components}

    strict, mild = properties(), properties(policies={"leakage": "warn"}, max_rejects=0.5)
    assert [name for name in strict if strict[name] != mild[name]] == ["ImageValidator"]


def test_evaluation_uses_the_signature_on_examples_and_the_threshold():
    config = make_eval_config(0.97)
    [model] = config.model_specs
    assert (model.signature_name, model.label_key) == ("serving_examples", "image/class/label")
    [metrics] = config.metrics_specs
    accuracy = metrics.metrics[1]
    assert accuracy.class_name == "SparseCategoricalAccuracy"
    assert accuracy.threshold.value_threshold.lower_bound.value == 0.97
