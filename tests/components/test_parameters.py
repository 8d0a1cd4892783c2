from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from darkroom.components.parameters import PARAMETERS, apply_parameters
from darkroom.errors import UsageError
from darkroom.options.conversion import RecordOptions
from darkroom.options.manifest import ManifestOptions
from darkroom.options.training import TrainingOptions
from darkroom.options.validation import ValidationOptions
from darkroom.pipelines.config import PipelineConfig
from darkroom.pipelines.pipeline import create_pipeline

pytestmark = pytest.mark.tfx

MANIFEST = {
    "source": "gs://b/a.csv",
    "options": ManifestOptions().to_json(),
    "source_fingerprint": "",
}
CONVERSION = {"options": RecordOptions().to_json()}
VALIDATION = {"options": ValidationOptions().to_json()}
TRAINING = {
    "run_fn": "darkroom.training.run_fn",
    "custom_config": json.dumps(
        {"darkroom": TrainingOptions(image_size=(8, 8)).to_dict(), "checkpoint_dir": None}
    ),
}

# One other value for every parameter.
CHANGED: dict[str, Any] = {
    "data": "gs://other/images.csv",
    "source_fingerprint": "1234",
    "split_ratios": "70/20/10",
    "seed": 5,
    "image_check": "header",
    "resize_short_side": 64,
    "encoding": "raw",
    "jpeg_quality": 80,
    "find_decoded_copies": "always",
    "compression": "gzip",
    "policies": {"leakage": "warn"},
    "max_rejects": 0.25,
    "min_class_images": 3,
    "model": "keras.applications:MobileNetV2",
    "weights": "gs://b/weights.h5",
    "image_size": (32, 24),
    "freeze": "none",
    "resize": "center_crop",
    "batch_size": 7,
    "epochs": 3,
    "fit_minutes": 2.5,
    "export": "last",
    "learning_rate": 0.5,
    "schedule": "constant",
    "warmup_ratio": 0.25,
    "weight_decay": 0.5,
    "clip_norm": 2.5,
    "label_smoothing": 0.25,
    "balance": "weights",
    "augment": "none",
    "early_stopping_patience": 2,
    "checkpoint_steps": 50,
    "strategy": "one",
    "loop": "custom",
    "precision": "mixed_bfloat16",
    "steps_per_execution": 4,
    "record_cache": "memory",
    "ram_budget_bytes": 1 << 28,
    "model_fingerprint": "abcd",
    "checkpoint_dir": "/mnt/checkpoints",
    "min_accuracy": 0.9,
    "min_recall": 0.3,
    "baseline_model": "gs://b/models/3",
    "push_to": "gs://b/models",
}


def _plain(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except json.JSONDecodeError:
        return value


def _plain_values(properties: dict[str, Any]) -> dict[str, Any]:
    return {name: _plain(value) for name, value in properties.items()}


def _properties(config: PipelineConfig) -> dict[str, dict[str, Any]]:
    return {c.id: dict(c.exec_properties) for c in create_pipeline(config).components}


def test_every_parameter_does_what_the_field_of_the_configuration_does():
    base = PipelineConfig(data="gs://b/images.csv", root="gs://b/root")
    config = PipelineConfig(**{"data": "", "root": "gs://b/root", **CHANGED})
    wanted, properties = _properties(config), _properties(base)
    assert {parameter.name for parameter in PARAMETERS} == set(CHANGED)
    for component in {parameter.component for parameter in PARAMETERS}:
        values = {
            p.name: p.encode(getattr(config, p.name))
            for p in PARAMETERS
            if p.component == component
        }
        # Pipelines carry every number as a float.
        carried = {n: float(v) if isinstance(v, int) else v for n, v in values.items()}
        found = apply_parameters({**properties[component], **carried})
        if component == "ImageValidator":
            # Only policies that differ from the default travel; the options fill in the rest.
            found["options"] = ValidationOptions.from_json(found["options"]).to_json()
        assert _plain_values(found) == _plain_values(wanted[component])


def test_the_defaults_change_nothing():
    config = PipelineConfig(data="gs://b/images.csv", root="gs://b/root", push_to="gs://b/p")
    # None is for drivers, which a compiled pipeline does not have.
    config = dataclasses.replace(config, source_fingerprint="")
    for component, properties in _properties(config).items():
        values = {
            p.name: p.encode(getattr(config, p.name))
            for p in PARAMETERS
            if p.component == component
        }
        found = apply_parameters({**properties, **values})
        if component == "ImageValidator":
            found["options"] = ValidationOptions.from_json(found["options"]).to_json()
        assert _plain_values(found) == _plain_values(properties)


def test_a_structure_may_come_as_values():
    properties = {"options": json.loads(VALIDATION["options"])}
    found = apply_parameters({**properties, "policies": {"leakage": "off"}, "max_rejects": "0.5"})
    options = ValidationOptions.from_json(found["options"])
    assert (options.policies["leakage"], options.max_rejects) == ("off", 0.5)
    assert options.policies["label_conflicts"] == "fail"


@pytest.mark.parametrize(
    ("properties", "values", "message"),
    [
        (MANIFEST, {"split_ratios": "80/10"}, "three numbers"),
        (MANIFEST, {"seed": 1.5}, "seed is 1.5, expected a whole number"),
        (MANIFEST, {"epochs": 3}, "takes no parameter 'epochs'"),
        (
            CONVERSION,
            {"image_check": "some"},
            "image_check is 'some', expected one of full, header",
        ),
        (VALIDATION, {"policies": "leakage=warn"}, "policies is not JSON"),
        (VALIDATION, {"policies": '{"leak": "warn"}'}, "Unknown check 'leak'"),
        (TRAINING, {"image_size": "5"}, "image_size is 5, expected a list"),
        (VALIDATION, {"max_rejects": True}, "max_rejects is True, expected a number"),
        (TRAINING, {"epochs": 0}, "epochs is 0"),
    ],
)
def test_a_wrong_value_is_named(properties, values, message: str):
    with pytest.raises(UsageError) as error:
        apply_parameters({**properties, **values})
    assert message in str(error.value)


def test_a_bound_outside_of_its_range_is_named():
    config = PipelineConfig(data="gs://b/images.csv", root="gs://b/root")
    evaluator = _properties(config)["Evaluator"]
    with pytest.raises(UsageError, match=r"min_recall is 1.5, expected a number from 0 to 1."):
        apply_parameters({**evaluator, "min_recall": 1.5})
