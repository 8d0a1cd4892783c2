"""The numbers that say how good a classifier is; plain numpy.

Nothing here depends on the order of the records. A number that cannot be computed is None: the
recall of a class without records, or the precision of one that is never predicted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from darkroom.targets.label.confusion import ConfusionMatrix, make_matrix
from darkroom.targets.scoring import Floats, Ints

__all__ = ["Bin", "ClassScore", "Confusion", "LabelMetrics", "measure"]

_TOP = 5
_NUM_BINS = 15
MAX_CONFUSIONS = 100
_MAX_ROC_POINTS = 101
# The quantile of a normal distribution for an interval of 95 %.
_Z95 = 1.959963984540054


@dataclass(frozen=True)
class ClassScore:
    """How well one class is told from the others.

    Attributes:
        label: Its label.
        support: Number of records that have it.
        predicted: Number of records of which the model says so.
        precision: Share of those predictions that are right; None if there are none.
        recall: Share of its records that are found; None if it has none.
        f1: Harmonic mean of both; None if it has no records.
    """

    label: str
    support: int
    predicted: int
    precision: float | None
    recall: float | None
    f1: float | None


@dataclass(frozen=True)
class Bin:
    """The predictions whose scores are in one part of the range from 0 to 1.

    Attributes:
        count: How many there are.
        confidence: Mean of their scores.
        accuracy: Share of them that is right.
    """

    count: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class Confusion:
    """Records of one label that are taken for another one.

    Attributes:
        label: The label that they have.
        predicted: The label that the model predicts.
        records: How many there are.
    """

    label: str
    predicted: str
    records: int


@dataclass(frozen=True)
class RocPoint:
    """How two labels are told apart where the second one is said from a score on.

    Attributes:
        threshold: The least score of the second label with which it is said.
        false_positive_rate: Share of the records of the first label of which it is said.
        recall: Share of its own records of which it is said.
    """

    threshold: float
    false_positive_rate: float
    recall: float


@dataclass(frozen=True)
class LabelMetrics:
    """How good a classifier is.

    Attributes:
        records: Number of records.
        accuracy: Share of them of which the label is found.
        interval: Wilson's interval of 95 % for the accuracy of all images like these.
        top5_accuracy: Share of records whose label is among the five with the highest scores; None
            if there are not more than five labels.
        macro_f1: Mean F1 of the classes that have records.
        macro_recall: Mean recall of the same.
        calibration_error: Mean distance between score and accuracy, over 15 equal parts of the
            range of scores, each with the weight of its records.
        majority_label: The label that most records have.
        majority_accuracy: The accuracy of always predicting it.
        classes: One entry a label, in the order of the label map.
        bins: The parts of that range that have predictions, from low scores to high ones.
        matrix: The whole confusion matrix, of fifty rows at most.
        confusions: The pairs of labels that are taken for each other, most records first; at most
            a hundred.
        roc: The receiver operating characteristic of two labels, from high thresholds to low ones,
            at most 101 points; empty for more labels, and where one has no record.
    """

    records: int
    accuracy: float
    interval: tuple[float, float]
    top5_accuracy: float | None
    macro_f1: float
    macro_recall: float
    calibration_error: float
    majority_label: str
    majority_accuracy: float
    classes: tuple[ClassScore, ...]
    bins: tuple[Bin, ...]
    matrix: ConfusionMatrix
    confusions: tuple[Confusion, ...] = ()
    roc: tuple[RocPoint, ...] = ()


def measure(scores: Floats, truth: Ints, labels: Sequence[str]) -> LabelMetrics:
    """Compares predictions with the truth.

    Args:
        scores: [N, C], for each record the probability of each label; N is at least 1.
        truth: [N], the numbers of the labels that the records have.
        labels: The C labels.
    """
    predicted = scores.argmax(axis=1)
    is_right = predicted == truth
    confusion = count_confusions(truth, predicted, len(labels))
    counts = confusion.diagonal(), confusion.sum(axis=1), confusion.sum(axis=0)
    classes = tuple(
        ClassScore(label, *count_class(*map(int, each)))
        for label, *each in zip(labels, *counts, strict=True)
    )
    known = [each for each in classes if each.support]
    bins = measure_calibration(scores.max(axis=1), is_right)
    majority = max(known, key=lambda each: each.support)
    rows, columns = confusion.nonzero()
    cells = {
        pair: int(confusion[pair]) for pair in zip(rows.tolist(), columns.tolist(), strict=True)
    }
    mistakes = [
        Confusion(labels[row], labels[column], count)
        for (row, column), count in cells.items()
        if row != column
    ]
    mistakes.sort(key=lambda each: -each.records)
    return LabelMetrics(
        records=len(truth),
        accuracy=float(is_right.mean()),
        interval=find_wilson_interval(int(is_right.sum()), len(truth)),
        top5_accuracy=_measure_top(scores, truth) if len(labels) > _TOP else None,
        macro_f1=_mean([each.f1 for each in known]),
        macro_recall=_mean([each.recall for each in known]),
        calibration_error=sum(each.count * abs(each.confidence - each.accuracy) for each in bins)
        / len(truth),
        majority_label=majority.label,
        majority_accuracy=majority.support / len(truth),
        classes=classes,
        bins=bins,
        matrix=make_matrix(cells, labels),
        confusions=tuple(mistakes[:MAX_CONFUSIONS]),
        roc=measure_roc(scores[:, 1], truth == 1) if len(labels) == 2 else (),
    )


def count_confusions(truth: Ints, predicted: Ints, num_labels: int) -> Ints:
    """Returns [C, C]: how many records of the label of a row are taken for that of a column."""
    cells = truth * num_labels + predicted
    counts = np.bincount(cells, minlength=num_labels * num_labels)
    return counts.reshape(num_labels, num_labels).astype(np.int64)


def find_wilson_interval(right: int, records: int) -> tuple[float, float]:
    """Returns Wilson's score interval of 95 % for a share, which holds for few records, too.

    Args:
        right: Number of records with the property.
        records: Number of all records, at least 1.
    """
    share, square = right / records, _Z95 * _Z95 / records
    middle = (share + square / 2) / (1 + square)
    spread = share * (1 - share) / records + square / (4 * records)
    half = _Z95 * math.sqrt(spread) / (1 + square)
    # Rounding must not exclude the share itself.
    return min(share, max(0.0, middle - half)), max(share, min(1.0, middle + half))


def measure_calibration(confidence: Floats, is_right: npt.NDArray[np.bool_]) -> tuple[Bin, ...]:
    """Compares the scores of predictions with how often they are right.

    Args:
        confidence: [N], the score of each prediction, 0 to 1.
        is_right: [N], whether it is right.

    Returns:
        The bins that have predictions.
    """
    # A score on an edge counts for the part below it, so that 1 is in the last one.
    numbers = np.clip(np.ceil(confidence * _NUM_BINS).astype(np.int64) - 1, 0, _NUM_BINS - 1)
    found = []
    for number in range(_NUM_BINS):
        inside = numbers == number
        if count := int(inside.sum()):
            share = float(is_right[inside].mean())
            found.append(Bin(count, float(confidence[inside].mean()), share))
    return tuple(found)


def measure_roc(scores: Floats, is_second: npt.NDArray[np.bool_]) -> tuple[RocPoint, ...]:
    """Returns how two labels are told apart at each threshold, from none said to all.

    Args:
        scores: [N], the probability of the second label.
        is_second: [N], whether a record has it.
    """
    if is_second.all() or not is_second.any():
        return ()
    order = np.argsort(-scores, kind="stable")
    found = scores[order]
    # Records with one score are said together.
    lasts = np.flatnonzero(np.append(found[1:] != found[:-1], True))
    if len(lasts) >= _MAX_ROC_POINTS:
        lasts = lasts[np.linspace(0, len(lasts) - 1, _MAX_ROC_POINTS - 1).round().astype(int)]
    said = [np.cumsum(each[order])[lasts] / each.sum() for each in (~is_second, is_second)]
    points = zip(found[lasts].tolist(), *(each.tolist() for each in said), strict=True)
    return (RocPoint(1.0, 0.0, 0.0), *(RocPoint(*point) for point in points))


def count_class(
    right: int, support: int, predicted: int
) -> tuple[int, int, float | None, float | None, float | None]:
    """Returns the fields of a `ClassScore` after its label.

    Args:
        right: Number of records of which the model says rightly that they have the label.
        support: Number of records that have it.
        predicted: Number of records of which the model says so.
    """
    return (
        support,
        predicted,
        right / predicted if predicted else None,
        right / support if support else None,
        2 * right / (support + predicted) if support else None,
    )


def _measure_top(scores: Floats, truth: Ints) -> float:
    own = np.take_along_axis(scores, truth[:, None], axis=1)
    # As `argmax` does: of equal scores the first labels count.
    is_before = np.arange(scores.shape[1]) < truth[:, None]
    ahead = (scores > own).sum(axis=1) + ((scores == own) & is_before).sum(axis=1)
    return float((ahead < _TOP).mean())


def _mean(values: Sequence[float | None]) -> float:
    return sum(value or 0.0 for value in values) / len(values)
