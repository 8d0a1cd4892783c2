"""The numbers that say how well any number of labels is found; plain numpy.

A number that cannot be computed is None: the recall of a label that no image has, or the precision
of one that is never predicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from darkroom.targets.scoring import Floats, find_annotated

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class LabelScore:
    """How well the images that have a label are told from the others.

    Attributes:
        label: The label.
        support: Number of images that have it.
        predicted: Number of images of which the model says so.
        precision: Share of those predictions that are right; None if there are none.
        recall: Share of its images that are found; None if there are none.
        f1: Harmonic mean of both; None if no image has it.
        average_precision: Mean precision over its images, each at the score of that image; None if
            no image has it.
        threshold: The score from which the model says so.
    """

    label: str
    support: int
    predicted: int
    precision: float | None
    recall: float | None
    f1: float | None
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
            label=name,
            support=int(support[n]),
            predicted=int(predicted[n]),
            precision=float(right[n] / predicted[n]) if predicted[n] else None,
            recall=float(right[n] / support[n]) if support[n] else None,
            f1=float(2 * right[n] / (support[n] + predicted[n])) if support[n] else None,
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
    order = np.argsort(-scores, kind="stable")
    scores, found = scores[order], np.cumsum(has[order])
    # Images with equal scores are found together.
    last = np.flatnonzero(np.append(scores[:-1] > scores[1:], True))
    gained = np.diff(found[last], prepend=0)
    return float((gained * found[last] / (last + 1)).sum() / found[-1])
