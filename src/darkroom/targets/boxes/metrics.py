"""The numbers that say how good a detector is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from darkroom.errors import DataError
from darkroom.runtime.arrays import Array
from darkroom.targets.boxes.matching import Truth, count_silent
from darkroom.targets.boxes.precision import Matched, average_precision
from darkroom.targets.boxes.results import Results
from darkroom.targets.boxes.verdicts import (
    FOUND,
    NOT_JUDGED,
    Verdicts,
    judge_results,
    list_errors,
)

__all__ = ["BoxesMetrics", "DetectedClass", "ScorePoint"]

# Scores at which precision and recall are said.
_SCORES = tuple(round(number / 10, 1) for number in range(1, 10))
# Among the thresholds of average precision.
_AT_75 = 5


@dataclass(frozen=True)
class DetectedClass:
    """How well objects of a class are found.

    Attributes:
        label: The class.
        average_precision: Mean over the thresholds 0.5 to 0.95; None without objects.
        average_precision_50: At the threshold 0.5.
        precision: Share of the results from the best score on that are right; None without any.
        recall: Share of the objects that these find; None without objects.
        results: How many results these are.
        objects: How many objects are judged.
    """

    label: str
    average_precision: float | None
    average_precision_50: float | None
    precision: float | None
    recall: float | None
    results: int
    objects: int


@dataclass(frozen=True)
class ScorePoint:
    """How good results from a score on are.

    Attributes:
        score: The least score.
        precision: Share of them that are right; None without any.
        recall: Share of the objects that they find.
        f1: Harmonic mean of both.
        results: How many they are.
    """

    score: float
    precision: float | None
    recall: float
    f1: float
    results: int


@dataclass(frozen=True)
class BoxesMetrics:
    """How good a detector is.

    Attributes:
        records: Number of annotated images.
        objects: Number of their objects, without crowds and difficult ones.
        results: Number of results that were read for them.
        silent: Number of these images without a result.
        average_precision: COCO's: mean over classes and the thresholds 0.5 to 0.95.
        average_precision_50: At the threshold 0.5.
        average_precision_75: At the threshold 0.75.
        sizes: The first of these for small objects (less than 32 x 32 pixels of the file), medium
            and large ones (more than 96 x 96); None where there are none.
        best: The score with the best F1, from which errors are counted, and how good results are.
        errors: How many results are right, doubled, confused, shifted and false, and how many
            objects are missing.
        classes: One entry a class, in the order of the label map.
        points: Precision and recall by score.
    """

    records: int
    objects: int
    results: int
    silent: int
    average_precision: float
    average_precision_50: float
    average_precision_75: float
    sizes: Mapping[str, float | None]
    best: ScorePoint
    errors: Mapping[str, int]
    classes: tuple[DetectedClass, ...]
    points: tuple[ScorePoint, ...]


def measure_results(
    sizes: Mapping[str, Matched], truth: Truth, names: Sequence[str]
) -> tuple[BoxesMetrics, Verdicts]:
    """Returns the numbers, and what is the matter with each result from the best score on.

    Args:
        sizes: From `match_sizes`.
        truth: The objects.
        names: The classes.

    Raises:
        DataError: There is no object to find.
    """
    matched, count = sizes["all"], len(names)
    found, is_needed = matched.found, matched.is_needed
    if not is_needed.any():
        raise DataError("There are no objects to find.", "Score a split that has some.")
    tables = {name: average_precision(each, truth, count) for name, each in sizes.items()}
    is_right, is_judged = matched.is_right[:, 0], matched.is_judged[:, 0]

    def measure_at(score: float) -> ScorePoint:
        is_said = is_judged & (found.score >= score)
        right, said = int((is_right & is_said).sum()), int(is_said.sum())
        needed = int(is_needed.sum())
        f1 = 2 * right / (said + needed)
        return ScorePoint(score, right / said if said else None, right / needed, f1, said)

    best = measure_at(_find_best(found.score, is_judged, is_right, int(is_needed.sum())))
    verdicts = judge_results(matched, truth, best.score)
    errors = list_errors(verdicts, found, truth)
    table = tables["all"]
    metrics = BoxesMetrics(
        records=int(truth.is_annotated.sum()),
        objects=int(is_needed.sum()),
        results=len(found.image),
        silent=count_silent(found, truth),
        average_precision=float(np.nanmean(table)),
        average_precision_50=float(np.nanmean(table[:, 0])),
        average_precision_75=float(np.nanmean(table[:, _AT_75])),
        sizes={name: _take_mean(each) for name, each in tables.items() if name != "all"},
        best=best,
        errors={
            "found": int((verdicts.kind == FOUND).sum()),
            **{name: len(images) for name, images in errors.items()},
        },
        classes=_list_classes(table, verdicts, found, truth, is_needed, names),
        points=tuple(map(measure_at, _SCORES)),
    )
    return metrics, verdicts


def _find_best(score: Array, is_judged: Array, is_right: Array, needed: int) -> float:
    """Returns the score from which on results have the best F1."""
    order = np.argsort(-score, kind="stable")
    right, said = np.cumsum(is_right[order]), np.cumsum(is_judged[order])
    return float(score[order[np.argmax(right / (said + needed))]]) if len(order) else 1.0


def _list_classes(
    table: Array,
    verdicts: Verdicts,
    found: Results,
    truth: Truth,
    is_needed: Array,
    names: Sequence[str],
) -> tuple[DetectedClass, ...]:
    size = len(names)
    said, right = (
        np.bincount(found.label[chosen], minlength=size).tolist()
        for chosen in (verdicts.kind > NOT_JUDGED, verdicts.kind == FOUND)
    )
    objects = np.bincount(truth.label[is_needed], minlength=size).tolist()
    return tuple(
        DetectedClass(
            name,
            _take_mean(table[n]),
            _take_mean(table[n, :1]),
            right[n] / said[n] if said[n] else None,
            right[n] / objects[n] if objects[n] else None,
            said[n],
            objects[n],
        )
        for n, name in enumerate(names)
    )


def _take_mean(table: Array) -> float | None:
    return None if np.isnan(table).all() else float(np.nanmean(table))
