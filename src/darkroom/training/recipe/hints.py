"""Hints at the end of a training how to improve the model; without TensorFlow."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import fmean

from darkroom.options.fields import FIXED, list_options
from darkroom.options.recipe import NO_BALANCE, PRIOR
from darkroom.options.training import (
    APPLICATIONS_PREFIX,
    EFFICIENTNET_LITE,
    SMALL_CNN,
    TrainingOptions,
)
from darkroom.training.state.history import ALL_PHASE, PHASE, TOP_PHASE, History, find_best_epoch

_OPTION = re.compile(r"--([a-z-]+)(?: (\S+))?")
# With another of these, the checkpoint belongs to another training.
_FIXED = {each.flag for each in list_options(TrainingOptions) if each.option.resume == FIXED}
_RISES = "{} on the eval split still rises"
_EPOCHS_FLAG = "--fine-tune-epochs"
# More epochs help where a third of them is so much better than the third before it, and where the
# model does not overfit yet.
_RISE, _KNOWN = 0.02, 0.97
# A label with fewer images is rare, if another one has several times as many.
_FEW_OF_LABEL, _TIMES = 50, 5
# Fewer images are few for a model that has learned nothing before; better than that is good enough.
_FEW, _GOOD = 10_000, 0.95
# A model with this score on the eval split has nothing to gain there.
_SOLVED = 0.995


def list_hints(
    options: TrainingOptions,
    history: History,
    metric: str,
    num_images: int,
    labels: Sequence[str],
    counts: Sequence[int] | None,
    fine_tuning: str = "",
) -> list[str]:
    """Returns what to try next, the most helpful first; nothing for a perfect model.

    Args:
        options: The options of the training.
        history: The epochs of the training.
        metric: The metric that is judged, 1 for a perfect model.
        num_images: Number of training images.
        labels: The labels in the order of their numbers; empty where they are not known.
        counts: Number of training images of each of the labels; None where it is not known.
        fine_tuning: The cost of fine-tuning, where it was left out.
    """
    scores = _list_scores(history, f"val_{metric}")
    if max(scores, default=0.0) >= _SOLVED:
        return []
    found = [
        _suggest_network(options, scores, num_images),
        fine_tuning,
        _suggest_epochs(options, history, metric),
        _suggest_balance(options, labels, counts),
    ]
    return [hint for hint in found if hint]


def name_other_folder(hint: str) -> str:
    """Returns a hint for who names the folder of a training, where it cannot be the same one."""
    is_other = any(f"--{option[1]}" in _FIXED for option in _OPTION.finditer(hint))
    return f"{hint} with another --checkpoint-dir" if is_other else hint


def format_for_python(hint: str) -> str:
    """Returns a hint with its option as an argument: `epochs=60` for "--epochs 60"."""
    return _OPTION.sub(_format_argument, hint)


def _format_argument(option: re.Match[str]) -> str:
    name, value = option.groups()
    name = name.replace("-", "_")
    if value is None:
        return name
    return f"{name}={value if value.isdecimal() else repr(value)}"


def _suggest_network(options: TrainingOptions, scores: Sequence[float], num_images: int) -> str:
    """Names a network with weights, where the images are few and the model begins with none."""
    # Without a score, nobody knows whether the model is bad.
    is_good = max(scores, default=1.0) >= _GOOD
    starts_from_nothing = options.model == SMALL_CNN or options.model.startswith(
        APPLICATIONS_PREFIX
    )
    if not starts_from_nothing or options.weights or num_images >= _FEW or is_good:
        return ""
    return (
        f"{num_images:,} images are few for a model trained from scratch: "
        f"--model {EFFICIENTNET_LITE}"
    )


def _suggest_epochs(options: TrainingOptions, history: History, metric: str) -> str:
    """Names more epochs of the last phase: after fine-tuning, those of the head are over."""
    rises = _RISES.format(metric.replace("_", " "))
    tuned = [entry for entry in history if entry.get(PHASE) in (TOP_PHASE, ALL_PHASE)]
    if not tuned:
        is_rising = len(history) >= options.epochs and _is_rising(history, metric)
        return f"{rises}: --epochs {2 * options.epochs}" if is_rising else ""
    if (find_best_epoch(history) or len(history)) <= len(history) - len(tuned):
        return f"fine-tuning did not help, so the head alone is as good: {_EPOCHS_FLAG} 0"
    # One that stopped early would not continue.
    is_done = options.early_stopping_patience == 0
    is_rising = is_done and _is_rising(tuned, metric)
    return f"{rises}: {_EPOCHS_FLAG} {2 * len(tuned)}" if is_rising else ""


def _is_rising(entries: History, metric: str) -> bool:
    """Tells whether the last third of some epochs is better than the third before it."""
    scores, third = _list_scores(entries, f"val_{metric}"), len(entries) // 3
    if not third or len(scores) < len(entries) or entries[-1].get(metric, 1) >= _KNOWN:
        return False
    return fmean(scores[-third:]) - fmean(scores[-2 * third : -third]) >= _RISE


def _list_scores(entries: History, name: str) -> list[float]:
    return [entry[name] for entry in entries if name in entry]


def _suggest_balance(
    options: TrainingOptions, labels: Sequence[str], counts: Sequence[int] | None
) -> str:
    if options.balance != NO_BALANCE or counts is None or not labels:
        return ""
    present = {label: n for label, n in zip(labels, counts, strict=True) if n}
    rare = sorted((n, label) for label, n in present.items() if n < _FEW_OF_LABEL)
    if not rare or max(present.values()) < _TIMES * rare[0][0]:
        return ""
    number, label = rare[0]
    which = f"{len(rare)} of {len(labels)} labels have" if len(rare) > 1 else "a label has"
    return f"{which} fewer than {_FEW_OF_LABEL} images, {label} has {number}: --balance {PRIOR}"
