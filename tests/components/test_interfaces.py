"""Interfaces: what goes in and out of each component, and under which names."""

from __future__ import annotations

import dataclasses
import inspect
import json

import pytest
from tfx.types import standard_artifacts

import darkroom
from darkroom.components import (
    DatasetDiff,
    ImageManifest,
    ImageToTFRecord,
    ImageValidator,
    ManifestGen,
    ModelPage,
    ModelReport,
    RecordIndex,
    Rejects,
    ValidationReport,
)
from darkroom.components.system_artifacts import (
    ClassificationMetrics,
    Metrics,
)
from darkroom.dataset.splits import SplitRatios
from darkroom.errors import UsageError
from darkroom.options.conversion import ConversionFields
from darkroom.options.diff import DiffFields
from darkroom.options.source import SourceFields
from darkroom.options.validation import ValidationOptions
from darkroom.steps import diff, validate

from ..signatures import find_differences

pytestmark = pytest.mark.tfx


@pytest.fixture
def components():
    manifest = ManifestGen(
        "images.csv",
        columns={"path": "image", "age": "integer"},
        split_ratios=SplitRatios(0.5, 0.25, 0.25),
        seed=3,
        source_encoding="UTF8",
        allowed_roots=["gs://bucket/images"],
        source_fingerprint="abc",
    )
    convert = ImageToTFRecord(
        manifest.outputs["manifest"],
        manifest.outputs["list_rejects"],
        image_check="header",
        num_shards=4,
    )
    validator = ImageValidator(
        index=convert.outputs["index"],
        rejects=convert.outputs["rejects"],
        manifest=manifest.outputs["manifest"],
        anomalies=make_channel(standard_artifacts.ExampleAnomalies),
        options=ValidationOptions(policies={"leakage": "warn"}),
        examples=convert.outputs["examples"],
    )
    return {c.id: c for c in (manifest, convert, validator)}


def test_the_signatures_of_components_have_the_fields_of_the_options():
    names = [each.name for each in dataclasses.fields(SourceFields)]
    parameters = [*inspect.signature(ManifestGen).parameters]
    updates = ["base_examples", "base", "append", "allow_removals", "merge_spans"]
    assert parameters == ["source", *updates, "source_fingerprint", *names]
    assert find_differences(ImageToTFRecord.__init__, ConversionFields) == []
    assert find_differences(DatasetDiff.__init__, DiffFields) == []


@pytest.mark.parametrize("kind", [DatasetDiff, ImageValidator])
def test_what_a_component_calls_otherwise_is_an_output_of_its_step(kind):
    executor = kind.EXECUTOR_SPEC.executor_class
    assert executor.NAMES.keys() <= kind.SPEC_CLASS.OUTPUTS.keys()
    assert {*executor.NAMES.values()} <= {each.name for each in executor.STEP.outputs}


def test_the_options_of_a_component_are_those_of_its_step():
    known = {each.name for each in diff.STEP.parameters}
    assert {each.name for each in dataclasses.fields(DiffFields)} <= known
    known = {each.name for each in validate.STEP.parameters}
    assert {each.name for each in dataclasses.fields(ValidationOptions)} <= known


def make_channel(artifact):
    from tfx.types import channel_utils

    return channel_utils.as_channel([artifact()])


def test_a_report_of_a_model_has_a_page_and_needs_the_examples():
    kinds = (standard_artifacts.ModelEvaluation, ValidationReport, standard_artifacts.Model)
    evaluation, report, model = map(make_channel, kinds)
    numbers = {"metrics": Metrics, "classification_metrics": ClassificationMetrics}
    found = {key: each.type for key, each in ModelReport(evaluation, report).outputs.items()}
    assert found == numbers
    with pytest.raises(UsageError, match="ModelReport has one of model and examples"):
        ModelReport(evaluation, report, model=model)


def test_properties_are_json_text_of_the_options(components):
    properties = {name: dict(c.exec_properties) for name, c in components.items()}
    given = {
        "schema": [["path", "image"], ["age", "integer"]],
        "split_ratios": [0.5, 0.25, 0.25],
        "seed": 3,
        "source_encoding": "utf-8",
        "allowed_roots": ["gs://bucket/images"],
    }
    assert given.items() <= json.loads(properties["ManifestGen"].pop("options")).items()
    given = {"image_check": "header", "num_shards": {"train": 4, "eval": 4, "test": 4}}
    assert given.items() <= json.loads(properties["ImageToTFRecord"].pop("options")).items()
    assert json.loads(properties["ImageValidator"].pop("options"))["policies"]["leakage"] == "warn"
    assert properties == {
        "ManifestGen": {"source": "images.csv", "source_fingerprint": "abc"},
        "ImageToTFRecord": {},
        "ImageValidator": {},
    }


@pytest.mark.parametrize(
    "artifact", [ImageManifest, ModelPage, RecordIndex, Rejects, ValidationReport]
)
def test_artifact_types_are_found_by_their_names_and_declare_no_properties(artifact):
    package, _, name = artifact.TYPE_NAME.partition(".")
    assert package == "darkroom"
    assert getattr(darkroom, name) is artifact
    assert not artifact.PROPERTIES


def test_a_wrong_option_is_rejected_when_the_component_is_created(components):
    with pytest.raises(
        UsageError, match="append, allow_removals and merge_spans are for an update"
    ):
        ManifestGen("images.csv", append=True)
    outputs = components["ManifestGen"].outputs
    with pytest.raises(UsageError, match="image_check is 'some', expected one of full, header"):
        ImageToTFRecord(outputs["manifest"], outputs["list_rejects"], image_check="some")
