from __future__ import annotations

import pytest

from darkroom.errors import UsageError
from darkroom.options.augmentation import Augmentation, parse_augmentation
from darkroom.options.input import InputOptions, choose_augmentation
from darkroom.options.training import TrainingOptions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("none", Augmentation()),
        ("crop", Augmentation(crop=True)),
        ("crop_flip", Augmentation(crop=True, flip=True)),
        ("color", Augmentation(color=0.4)),
        ("crop=0.5", Augmentation(crop=True, crop_area=(0.5, 1.0))),
        ("crop=0.3-0.8", Augmentation(crop=True, crop_area=(0.3, 0.8))),
        ("crop=0.5-1.0_flip=0.2", Augmentation(True, True, crop_area=(0.5, 1), flip_share=0.2)),
        ("flip=0", Augmentation(flip_share=0.0)),
        ("color=0", Augmentation()),
        ("mixup=1e-3", Augmentation(mixup=0.001)),
        (
            "crop_flip, color=0.3_rotate=15,cutout=.5,mixup=0.4",
            Augmentation(True, True, color=0.3, rotate=15, cutout=0.5, mixup=0.4),
        ),
    ],
)
def test_parts_become_values(text, expected):
    assert parse_augmentation(text) == expected


def test_training_mirrors_images_and_does_nothing_else_unless_told():
    for make in (InputOptions, TrainingOptions):
        options = make(image_size=(8, 8))
        assert options.augment is None
        assert choose_augmentation(options, "label").augment == "flip"
        assert choose_augmentation(options, "numbers").augment == "none"
    assert parse_augmentation("flip") == Augmentation(flip=True)


def test_windows_have_the_usual_sizes():
    augmentation = parse_augmentation("crop")
    assert augmentation.crop_area == (0.08, 1.0)
    assert augmentation.crop_ratio == (0.75, pytest.approx(1.3333333))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("spin", "expected none, or some of crop, flip, color, rotate, cutout, mixup. An example:"),
        ("crop=", "expected a number after crop="),
        ("crop=0.5-", "expected a number after crop="),
        ("crop=0.5-0.4", "crop_area is (0.5, 0.4), expected two numbers above 0"),
        ("", "expected none, or some of crop, flip"),
        ("colour=0.4", "there is no 'colour'. Did you mean color?"),
        ("crop,", "there is no ''. An example: crop=0.5-1,flip,color=0.4"),
        ("Crop", "Did you mean crop?"),
        ("none,flip", "expected none alone"),
        ("flip,crop,flip", "expected flip once"),
        ("color=strong", "expected a number after color="),
        ("color=0.4=0.5", "expected a number after color="),
        ("color=nan", "color is nan, expected a number from 0 to 1."),
        ("rotate=181", "rotate is 181.0, expected a number from 0 to 180."),
        ("mixup=inf", "mixup is inf, expected a number from 0 to 10."),
    ],
)
def test_a_wrong_text_is_named(text, message):
    with pytest.raises(UsageError) as caught:
        parse_augmentation(text)
    assert str(caught.value).startswith(f"augment is {text!r}, ")
    assert message in str(caught.value)


@pytest.mark.parametrize("value", [None, ["crop"]])
def test_only_text_is_accepted(value):
    with pytest.raises(UsageError, match="expected text"):
        parse_augmentation(value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"crop": 1}, "crop is 1, expected True or False."),
        ({"color": True}, "color is True, expected a number"),
        ({"mixup": None}, "mixup is None, expected a number"),
        ({"crop_area": 0.5}, "crop_area is 0.5, expected two numbers above 0, at most 1,"),
        ({"crop_area": (0, 1)}, "crop_area is (0, 1), expected two numbers above 0"),
        ({"crop_area": (0.5, 0.4)}, "the lesser one first"),
        ({"crop_ratio": (1.0, 0.5)}, "crop_ratio is (1.0, 0.5), expected two numbers above 0, the"),
    ],
)
def test_a_wrong_value_is_named(values, message):
    with pytest.raises(UsageError) as caught:
        Augmentation(**values)
    assert message in str(caught.value)


@pytest.mark.parametrize("make", [InputOptions, TrainingOptions])
def test_options_check_the_text_and_keep_it(make):
    text = "crop_flip,color=0.2"
    assert make(image_size=(8, 8), augment=text).augment == text
    with pytest.raises(UsageError, match=r"augment is 'crop,colr', .* Did you mean color"):
        make(image_size=(8, 8), augment="crop,colr")


def test_the_text_reaches_the_input():
    options = TrainingOptions(image_size=(8, 8), augment="flip,mixup=0.3")
    restored = TrainingOptions.from_dict(options.to_dict()).input_options
    assert restored.augmentation == Augmentation(flip=True, mixup=0.3)
    assert restored.augmentation == Augmentation(flip=True, mixup=0.3)
