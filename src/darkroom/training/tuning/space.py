"""What `--tune` tries: the search space, around the options that were given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from darkroom.options.training import TrainingOptions

# Of an option: its choices, or the least and greatest number, which are tried on a scale.
Space = Mapping[str, Mapping[str, Any]]

_FROZEN_AUGMENTATIONS = ("none", "flip", "crop,flip")
_AUGMENTATIONS = ("none", "flip", "crop,flip", "flip,color=0.2", "flip,rotate=10", "flip,mixup=0.2")


def make_space(options: TrainingOptions) -> Space:
    """Returns the search space of a training: by option, its choices or its range.

    The features of a frozen base are computed once, so fewer changes of the images are possible
    there. What the user has set is in the space, too.
    """
    choices = _FROZEN_AUGMENTATIONS if options.is_frozen else _AUGMENTATIONS
    return {
        "learning_rate": {
            "least": options.learning_rate / 10,
            "greatest": min(options.learning_rate * 10, 99.0),
            "scale": "log",
        },
        "augment": {"choices": sorted({*choices, options.augment})},
    }
