"""The numbers that say how well any number of labels is found; plain numpy.

A number that cannot be computed is None: the recall of a label that no image has, or the precision
of one that is never predicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from darkroom.targets.label.metrics import ClassScore, count_class
from darkroom.targets.scoring import Floats, Ints, find_annotated

__all__ = ["LabelScore", "LabelsMetrics"]

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class LabelScore(ClassScore):
    """How well the images that have a label are told from the others; see `ClassScore`.

    Attributes:
        average_precision: Mean precision over its images, each at the score of that image; None if
            no image has it.
        threshold: The score from which the model says so.
    """

    average_precision: float | None
    threshold: float


@dataclass(frozen=True)
class LabelsMetrics:
    """How well any number of labels is found.

    Attributes:
        records: Number of images that are annotated.
        unannotated: Number of the others, which do not count.
        mean_average_precision: Mean of the labels that images have; 0 if there are none.
        micro_f1: F1 of all pairs of an image and a label together.
        macro_f1: Mean F1 of the labels that images have.
        exact: Share of images with exactly the right labels.
        baseline: The mean average precision of chance: the mean share of images with a label.
        labels: One entry a label, in the order of the model.
    """

    records: int
    unannotated: int
    mean_average_precision: float
    micro_f1: float
    macro_f1: float
    exact: float
    baseline: float
    labels: tuple[LabelScore, ...]


def measure(
    scores: Floats, truth: Floats, names: Sequence[str], thresholds: Sequence[float]
) -> LabelsMetrics:
    """Compares predictions with the truth.

    Args:
        scores: [N, C], for each image the probability of each label.
        truth: [N, C], 1 for each label of an image, else 0; NaN if it is not annotated.
        names: The C labels.
        thresholds: The score from which an image has a label, for each of them.

    Raises:
        DataError: No image is annotated.
    """
    known = find_annotated(truth)
    scores, has = scores[known], truth[known] > 0
    says = find_labels(scores, thresholds)
    right, support, predicted = (each.sum(axis=0) for each in (has & says, has, says))
    labels = tuple(
        LabelScore(
            name,
            *count_class(int(right[n]), int(support[n]), int(predicted[n])),
            average_precision=measure_precision(scores[:, n], has[:, n]) if support[n] else None,
            threshold=float(thresholds[n]),
        )
        for n, name in enumerate(names)
    )
    seen = [each for each in labels if each.support]
    count = max(len(seen), 1)
    return LabelsMetrics(
        records=len(has),
        unannotated=len(truth) - len(has),
        mean_average_precision=sum(each.average_precision or 0.0 for each in seen) / count,
        micro_f1=float(2 * right.sum() / max(support.sum() + predicted.sum(), 1)),
        macro_f1=sum(each.f1 or 0.0 for each in seen) / count,
        exact=float((has == says).all(axis=1).mean()),
        baseline=sum(each.support for each in seen) / (count * len(has)),
        labels=labels,
    )


def find_labels(scores: Floats, thresholds: Sequence[float]) -> Bools:
    """Returns which labels images have by their scores, bool [N, C]."""
    # In the precision of the model, which compares them, too.
    return np.asarray(scores >= np.asarray(thresholds, scores.dtype))


def measure_precision(scores: Floats, has: Bools) -> float:
    """Returns the average precision of a label that at least one image has.

    Args:
        scores: [N], its score for each image.
        has: [N], whether the image has it.
    """
    _, found, is_last = rank_images(scores, has)
    last = np.flatnonzero(is_last)
    gained = np.diff(found[last], prepend=0)
    return float((gained * found[last] / (last + 1)).sum() / found[-1])


def rank_images(scores: Floats, has: Bools) -> tuple[Floats, Ints, Bools]:
    """Ranks images by the score of a label, the highest first.

    Args:
        scores: [N], its score for each image.
        has: [N], whether the image has it.

    Returns:
        The scores; how many images up to each one have the label; whether it is the last one with
        its score: images with equal scores are found together.
    """
    order = np.argsort(-scores, kind="stable")
    scores = scores[order]
    return scores, np.cumsum(has[order]), np.append(scores[:-1] > scores[1:], True)
