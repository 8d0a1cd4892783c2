"""The phases of a training: the head of a frozen base, then the last blocks, then all."""

from __future__ import annotations

from typing import NamedTuple

from darkroom.options.training import LAST, TrainingOptions
from darkroom.training.devices.placement import Placement
from darkroom.training.features.views import list_views
from darkroom.training.state.history import ALL, HEAD, PHASE, TOP, WHOLE, History

# A head has its lowest eval loss after few epochs, and all that follow are for nothing.
_HEAD_PATIENCE = 10


class Phase(NamedTuple):
    """A part of a training, with a separate optimizer.

    Attributes:
        name: Its name in the history.
        epochs: Number of its epochs.
    """

    name: str
    epochs: int


def plan_phases(options: TrainingOptions, fine_tune_epochs: int = 0) -> list[Phase]:
    """Returns the phases of a training in their order; one may have no epochs.

    Args:
        options: The options of the training.
        fine_tune_epochs: Epochs after those of a frozen base.
    """
    if not options.is_frozen:
        return [Phase(WHOLE, options.epochs)]
    # The last layers bring most of the gain, and cost half as much as all.
    every = fine_tune_epochs // 2
    return [Phase(HEAD, options.epochs), Phase(TOP, fine_tune_epochs - every), Phase(ALL, every)]


def count_epochs(history: History, phase: str) -> int:
    """Returns how many epochs of a phase are done."""
    return sum(entry.get(PHASE, WHOLE) == phase for entry in history)


def count_steps(options: TrainingOptions, placement: Placement, num_images: int, phase: str) -> int:
    """Returns the number of batches in an epoch of a phase; the head sees each view of an image."""
    views = len(list_views(options.input_options)) if is_head(phase) else 1
    return placement.count_steps(num_images * views, options.batch_size)


def choose_patience(options: TrainingOptions, phase: str) -> int:
    """Returns after how many epochs without a lower eval loss a phase ends; 0 for never."""
    is_default = not options.early_stopping_patience and options.export != LAST
    if is_head(phase) and is_default:
        return _HEAD_PATIENCE
    return options.early_stopping_patience


def is_head(phase: str) -> bool:
    """Tells whether a phase trains the head alone, on features."""
    return phase == HEAD
