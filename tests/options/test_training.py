from __future__ import annotations

import pytest

from darkroom.errors import UsageError
from darkroom.options.training import TrainingOptions
from darkroom.pipelines.config import PipelineConfig

LITE, RESNET = "efficientnet-lite0", "keras.applications:ResNet50"


def test_the_model_decides_the_image_size_where_none_is_given():
    assert TrainingOptions().image_size == (64, 64)
    assert TrainingOptions(model=LITE).image_size == (224, 224)
    assert TrainingOptions(model=LITE, image_size=(96, 64)).image_size == (96, 64)
    assert TrainingOptions.from_dict({"image_size": None, "model": LITE}).image_size == (224, 224)
    assert PipelineConfig(data="d", root="r", model=LITE).image_size == (224, 224)
    assert PipelineConfig(data="d", root="r").image_size == (64, 64)


def test_a_base_with_weights_is_frozen():
    assert TrainingOptions(model=LITE).is_frozen
    assert TrainingOptions(model=RESNET, weights="w.h5").is_frozen
    assert not TrainingOptions(model=RESNET).is_frozen
    assert not TrainingOptions(weights="w.h5").is_frozen
    assert not TrainingOptions(model=LITE, freeze="none").is_frozen


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"freeze": "base"}, "freeze is 'base', but small_cnn has no base with weights"),
        ({"freeze": "base", "model": RESNET}, "ResNet50 has no base with weights"),
        ({"feature_cache": ""}, "feature_cache is '', expected none or a folder"),
        ({"feature_cache": "a\0b"}, "feature_cache is "),
        ({"model": LITE, "augment": "flip,mixup"}, "only flip and crop are possible"),
        ({"model": LITE, "augment": "color"}, "only flip and crop are possible"),
    ],
)
def test_what_cannot_be_frozen_is_an_error(values, message):
    with pytest.raises(UsageError, match=message):
        TrainingOptions(**values)
    assert TrainingOptions(model=LITE, augment="flip,mixup", freeze="none").freeze == "none"
    assert TrainingOptions(model=LITE, augment="crop=0.5,flip=0.3").is_frozen
