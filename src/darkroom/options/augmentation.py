"""Augmentation of training images, as a value and as the text that travels; without TensorFlow."""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass
from typing import Any

from darkroom.errors import UsageError
from darkroom.options.checks import is_number
from darkroom.runtime.text import suggest

NO_AUGMENTATION = "none"
# The two parts that may be left out with True and False, and the names of their strengths.
_SWITCHES = {"crop": "crop_area", "flip": "flip_share"}
# The strength of a part without one, and the greatest.
_DEFAULTS = {"color": 0.4, "rotate": 10.0, "cutout": 0.25, "mixup": 0.2}
_MAXIMA = {"flip_share": 1, "color": 1, "rotate": 180, "cutout": 1, "mixup": 10}
_HINT = "An example: crop=0.5-1,flip,color=0.4,rotate=15,cutout=0.25,mixup=0.2."


@dataclass(frozen=True)
class Augmentation:
    """Augmentation of training images; checked when made. Nothing, unless told.

    Attributes:
        crop: Cut out a random window.
        flip: Mirror images left to right.
        crop_area: Least and greatest share of the image's area that a window has.
        crop_ratio: Least and greatest width of a window divided by its height.
        flip_share: Share of the images that are mirrored, 0 to 1.
        color: Strength s, 0 to 1: brightness, contrast and saturation are each multiplied by a
            factor from 1 - s to 1 + s.
        rotate: Degrees, 0 to 180: images are turned by an angle from -rotate to +rotate.
        cutout: Side of a gray square divided by the image's shorter side, 0 to 1.
        mixup: Alpha of the Beta distribution from which the shares of two images come, 0 to 10.
    """

    crop: bool = False
    flip: bool = False
    _: KW_ONLY
    crop_area: tuple[float, float] = (0.08, 1.0)
    crop_ratio: tuple[float, float] = (3 / 4, 4 / 3)
    flip_share: float = 0.5
    color: float = 0.0
    rotate: float = 0.0
    cutout: float = 0.0
    mixup: float = 0.0

    def __post_init__(self) -> None:
        """Checks the values.

        Raises:
            UsageError: A value has the wrong type or is out of its range.
        """
        for name in _SWITCHES:
            if not isinstance(getattr(self, name), bool):
                raise UsageError(f"{name} is {getattr(self, name)!r}, expected True or False.")
        _check_range("crop_area", self.crop_area, 1.0)
        _check_range("crop_ratio", self.crop_ratio, float("inf"))
        for name, greatest in _MAXIMA.items():
            value = getattr(self, name)
            if not is_number(value) or not 0 <= value <= greatest:
                raise UsageError(f"{name} is {value!r}, expected a number from 0 to {greatest}.")


# Of a mark that is not a type, `typing.get_type_hints` of Python 3.10 makes an error.
del Augmentation.__annotations__["_"]


def parse_augmentation(text: str) -> Augmentation:
    """Parses parts joined by `,` or `_`, each with a strength after `=` if it takes one.

    Without a strength, parts take usual values: windows of 8 to 100 % of the area with ratios
    from 3/4 to 4/3 (Szegedy et al., "Going deeper with convolutions", 2014), color=0.4
    (`color_jitter` of timm's training script), rotate=10 (`aug_transforms` of fastai), cutout=0.25
    (DeVries and Taylor, "Improved regularization", 2017, for CIFAR-100), mixup=0.2 (Zhang et al.,
    "mixup", 2017, for ImageNet).

    The strength of a crop is the least share of the area, or the least and the greatest one.

    Args:
        text: As "crop_flip" or "crop=0.5-1,flip,color=0.4,rotate=15"; "none" for nothing.

    Raises:
        UsageError: A part is unknown, there twice, or its strength is wrong.
    """
    if not isinstance(text, str):
        raise UsageError(f"augment is {text!r}, expected text.", _HINT)
    if text == NO_AUGMENTATION:
        return UNCHANGED
    values: dict[str, Any] = {}
    for part in re.split("[,_]", text):
        name, found = _parse_part(part.strip(), text)
        if name in values:
            raise UsageError(f"augment is {text!r}, expected {name} once.")
        values |= found
    try:
        return Augmentation(**values)
    except UsageError as error:
        raise UsageError(f"augment is {text!r}, but {error.message}", error.hint) from error


def _parse_part(part: str, text: str) -> tuple[str, dict[str, Any]]:
    """Returns the name of a part, and its values by their names."""
    name, equals, strength = part.partition("=")
    if name not in _SWITCHES and name not in _DEFAULTS:
        raise _build_name_error(name, text)
    try:
        if name == "crop" and equals:
            # The least share of an area, or as in 0.5-1 the least and the greatest one.
            least, dash, greatest = strength.partition("-")
            area = float(least), float(greatest) if dash else 1.0
            return name, {name: True, _SWITCHES[name]: area}
        value = float(strength) if equals else _DEFAULTS.get(name)
    except ValueError:
        raise UsageError(f"augment is {text!r}, expected a number after {name}=.", _HINT) from None
    if name not in _SWITCHES:
        return name, {name: value}
    return name, {name: True} if value is None else {name: value != 0, _SWITCHES[name]: value}


def _build_name_error(name: str, text: str) -> UsageError:
    """Returns the error for a part that does not exist, or for `none` beside other parts."""
    names = [*_SWITCHES, *_DEFAULTS]
    if name == NO_AUGMENTATION:
        return UsageError(f"augment is {text!r}, expected {name} alone.")
    which = "" if name == text else f"; there is no {name!r}"
    return UsageError(
        f"augment is {text!r}, expected {NO_AUGMENTATION}, or some of {', '.join(names)}{which}.",
        suggest(name, [*names, NO_AUGMENTATION], _HINT),
    )


def _check_range(name: str, value: Any, greatest: float) -> None:
    is_pair = isinstance(value, tuple) and len(value) == 2 and all(map(is_number, value))
    if not is_pair or not 0 < value[0] <= value[1] <= greatest:
        limit = "" if greatest == float("inf") else f", at most {greatest:g}"
        raise UsageError(
            f"{name} is {value!r}, expected two numbers above 0{limit}, the lesser one first."
        )


# It leaves images as they are.
UNCHANGED = Augmentation()
