"""What would make a trained model better, said at the end of its training; without TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from darkroom.options.recipe.fields import NO_BALANCE, PRIOR
from darkroom.options.training import EFFICIENTNET_LITE, SMALL_CNN, TrainingOptions
from darkroom.training.history import History

if TYPE_CHECKING:
    from darkroom.training.recipe.label_counts import Counts

_ACCURACY = "val_accuracy"
# More epochs help where a third of them is so much better than the third before it, and where the
# model does not know the training images by heart yet.
_RISE, _KNOWN = 0.02, 0.97
# A label with fewer images is rare, if another one has several times as many.
_FEW_OF_LABEL, _TIMES = 50, 5
# Fewer images are few for a model that has learned nothing before; better than that is good enough.
_FEW, _GOOD = 10_000, 0.95


def list_hints(
    options: TrainingOptions,
    history: History,
    num_images: int,
    labels: Sequence[str],
    counts: Counts | None,
) -> list[str]:
    """Returns what to try next, a sentence each, the most helpful first.

    Args:
        options: What was trained, and how.
        history: The epochs of the training.
        num_images: Number of training images.
        labels: The labels in the order of their numbers; empty where they are not known.
        counts: Number of training images of each label, int64 [C]; None where it is not known.
    """
    accuracies = [entry[_ACCURACY] for entry in history if _ACCURACY in entry]
    found = [
        _suggest_network(options, accuracies, num_images),
        _suggest_epochs(options, accuracies, history),
        _suggest_balance(options, labels, counts),
    ]
    return [hint for hint in found if hint]


def format_hints(hints: Sequence[str]) -> str:
    """Returns hints as lines to put below the result of a training."""
    return "".join(f"\n{'' if n else 'Next':<11}{hint}" for n, hint in enumerate(hints))


def _suggest_network(options: TrainingOptions, accuracies: Sequence[float], num_images: int) -> str:
    is_good = max(accuracies, default=1.0) >= _GOOD
    if options.model != SMALL_CNN or options.weights or num_images >= _FEW or is_good:
        return ""
    return (
        f"{num_images:,} images are few for a model that starts from nothing: "
        f"--model {EFFICIENTNET_LITE}"
    )


def _suggest_epochs(options: TrainingOptions, accuracies: Sequence[float], history: History) -> str:
    third = len(accuracies) // 3
    # One that stopped early would not go on.
    if not third or len(accuracies) < options.epochs or history[-1].get("accuracy", 1) >= _KNOWN:
        return ""
    if fmean(accuracies[-third:]) - fmean(accuracies[-2 * third : -third]) < _RISE:
        return ""
    return f"accuracy on the eval split still rises: --epochs {2 * options.epochs}"


def _suggest_balance(options: TrainingOptions, labels: Sequence[str], counts: Counts | None) -> str:
    if options.balance != NO_BALANCE or counts is None or not labels:
        return ""
    present = {label: int(n) for label, n in zip(labels, counts, strict=True) if n}
    rare = sorted((n, label) for label, n in present.items() if n < _FEW_OF_LABEL)
    if not rare or max(present.values()) < _TIMES * rare[0][0]:
        return ""
    number, label = rare[0]
    which = f"{len(rare)} of {len(labels)} labels have" if len(rare) > 1 else "a label has"
    return f"{which} fewer than {_FEW_OF_LABEL} images, {label} has {number}: --balance {PRIOR}"
