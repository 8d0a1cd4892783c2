"""What of its options a training that goes on must find as they were, and what it may change."""

from __future__ import annotations

from typing import Any

from darkroom.options.training import NO_CACHE, TrainingOptions

# What the model is, and what it sees: with another one the weights would be those of two models.
_FIXED = ("model", "weights", "image_size", "resize")
_LEARNED = ("augment", "batch_size", "learning_rate", "precision", "seed")
_ORDER = ("batch_size", "shuffle_records", "shuffle_bytes", "ram_budget_bytes", "seed")


def describe_options(options: TrainingOptions) -> dict[str, dict[str, Any]]:
    """Returns options as values that JSON knows, by `TrainingRun`'s names for what they decide."""
    described = {
        part: {name: getattr(options, name) for name in names}
        for part, names in (("fixed", _FIXED), ("learned", _LEARNED), ("order", _ORDER))
    }
    # What comes out of a cache comes in the order of the files; which cache it is plays no part.
    described["order"]["cache"] = options.cache != NO_CACHE
    return described
