from __future__ import annotations

import pytest

from darkroom.errors import UsageError
from darkroom.pipelines.config import PipelineConfig
from darkroom.pipelines.evaluation import make_eval_config
from darkroom.pipelines.pipeline import create_pipeline

pytestmark = pytest.mark.tfx


@pytest.fixture
def config(tmp_path) -> PipelineConfig:
    return PipelineConfig(data="images.csv", root=str(tmp_path / "run"))


def test_creating_the_pipeline_writes_nothing(config, tmp_path):
    create_pipeline(config)
    assert list(tmp_path.iterdir()) == []


def test_in_a_cluster_no_records_are_downloaded_for_the_pictures_of_the_report(config):
    for beam_args, expected in ((None, True), ([], False)):
        nodes = {n.id: n for n in create_pipeline(config, beam_args=beam_args).components}
        assert ("examples" in nodes["ImageValidator"].inputs) == expected


def test_policies_are_properties_of_image_validator_only(tmp_path):
    def properties(**options) -> dict[str, dict[str, object]]:
        config = PipelineConfig(data="images.csv", root=str(tmp_path), **options)
        return {c.id: dict(c.exec_properties) for c in create_pipeline(config).components}

    strict, mild = properties(), properties(policies={"leakage": "warn"}, max_rejects=0.5)
    assert [name for name in strict if strict[name] != mild[name]] == ["ImageValidator"]


def test_a_run_on_this_machine_needs_a_root():
    with pytest.raises(UsageError, match="A run on this machine needs a root"):
        create_pipeline(PipelineConfig(data="images.csv"))


def _make_config(**options) -> PipelineConfig:
    return PipelineConfig(data="images.csv", root="/runs/first", **options)


def test_evaluation_uses_the_signature_on_examples_and_the_thresholds():
    config = make_eval_config(_make_config(min_accuracy=0.97, min_recall=0.5))
    [model] = config.model_specs
    assert (model.signature_name, model.label_key) == ("serving_examples", "image/class/label")
    [metrics] = config.metrics_specs
    accuracy = metrics.metrics[1]
    assert accuracy.class_name == "SparseCategoricalAccuracy"
    # TFMA would check it in every slice.
    assert not accuracy.HasField("threshold")
    whole, of_class = accuracy.per_slice_thresholds
    assert [list(each.feature_keys) for each in whole.slicing_specs] == [[]]
    assert whole.threshold.value_threshold.lower_bound.value == 0.97
    assert not whole.threshold.HasField("change_threshold")
    assert [list(each.feature_keys) for each in of_class.slicing_specs] == [["image/class/text"]]
    assert of_class.threshold.value_threshold.lower_bound.value == 0.5


def test_slices_are_the_whole_each_class_and_the_named_columns():
    config = make_eval_config(_make_config(slice_columns=["camera", "site", "camera"]))
    slices = [list(each.feature_keys) for each in config.slicing_specs]
    assert slices == [[], ["image/class/text"], ["camera"], ["site"]]


def test_a_limit_on_what_may_be_lost_brings_a_resolver():
    nodes = {n.id: n for n in create_pipeline(_make_config(max_recall_drop=0.1)).components}
    baseline = nodes["Evaluator"].inputs["baseline_model"]
    assert nodes["latest_blessed_model"].outputs["model"] == baseline
    [metrics] = make_eval_config(_make_config(max_recall_drop=0.1)).metrics_specs
    whole, of_class = metrics.metrics[1].per_slice_thresholds
    assert not whole.threshold.HasField("change_threshold")
    assert of_class.threshold.change_threshold.absolute.value == -0.1


def test_with_the_place_of_the_other_model_there_is_no_resolver():
    config = _make_config(max_accuracy_drop=0.1, baseline_model="/models/pushed")
    nodes = {n.id: n for n in create_pipeline(config).components}
    assert "latest_blessed_model" not in nodes
    assert nodes["Evaluator"].exec_properties["baseline"] == "/models/pushed"
    assert "baseline_model" not in nodes["Evaluator"].inputs
