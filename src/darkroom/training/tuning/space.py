"""The search space of `--tune`, around the options that were given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from darkroom.options.input import MOST_IN_BATCH
from darkroom.options.training import APPLICATIONS_PREFIX, OWN_MODELS, TrainingOptions
from darkroom.targets.kind import USUAL_AUGMENTATION

# Of an option: its choices, or the least and greatest number, which are tried on a scale.
Space = Mapping[str, Mapping[str, Any]]

_FROZEN_AUGMENTATIONS = ("none", "flip", "crop,flip")
_AUGMENTATIONS = ("none", "flip", "crop,flip", "flip,color=0.2", "flip,rotate=10")
# A function of the user's may come compiled with a loss that does not take vectors.
_MIXUP = "flip,mixup=0.2"
_SMOOTHINGS = (0.0, 0.05, 0.1)
_DECAYS = (0.0, 0.001, 0.01, 0.1)


def make_space(options: TrainingOptions) -> Space:
    """Returns the search space of a training: by option, its choices or its range.

    The user's values are in the space, too. `balance` is not: it gives up accuracy for rare
    labels, and the score is the accuracy.
    """
    # The features of a frozen base are computed once, so fewer changes are possible there.
    augmentations: tuple[str, ...] = _FROZEN_AUGMENTATIONS
    if not options.is_frozen:
        is_ours = options.model in OWN_MODELS or options.model.startswith(APPLICATIONS_PREFIX)
        augmentations = (*_AUGMENTATIONS, *([_MIXUP] if is_ours else []))
    batches = {options.batch_size * factor // 2 for factor in (1, 2, 4)}
    return {
        "learning_rate": {
            "least": options.learning_rate / 10,
            "greatest": min(options.learning_rate * 10, 99.0),
            "scale": "log",
        },
        "augment": {"choices": sorted({*augmentations, options.augment or USUAL_AUGMENTATION})},
        "label_smoothing": {"choices": sorted({*_SMOOTHINGS, options.label_smoothing})},
        "weight_decay": {"choices": sorted({*_DECAYS, options.weight_decay})},
        "batch_size": {"choices": sorted(n for n in batches if 1 <= n <= MOST_IN_BATCH)},
    }
