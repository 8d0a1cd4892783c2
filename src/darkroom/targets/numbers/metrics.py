"""The numbers that say how well numbers are predicted; plain numpy, in the units of the data.

A number that cannot be computed is None: R² of a number that is the same for all images.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from darkroom.targets.scoring import Floats, find_annotated

__all__ = ["NumberScore", "NumbersMetrics"]


@dataclass(frozen=True)
class NumberScore:
    """How well one number is predicted. All but the counts are None if no image has it.

    Attributes:
        name: Its name.
        records: Number of images that have it.
        missing: Number of annotated images that lack it.
        mae: Mean absolute error.
        rmse: Root of the mean squared error.
        r2: 1 for perfect predictions, and 0 for those of the mean; None if it is constant.
        mean: The mean of the true values, which is the baseline.
        baseline_rmse: The error of always predicting that.
    """

    name: str
    records: int
    missing: int
    mae: float | None = None
    rmse: float | None = None
    r2: float | None = None
    mean: float | None = None
    baseline_rmse: float | None = None


@dataclass(frozen=True)
class NumbersMetrics:
    """How well numbers are predicted.

    Attributes:
        records: Number of images that are annotated.
        unannotated: Number of the others, which do not count.
        r2: Mean R² of the numbers that have one; 0 if none has.
        numbers: One entry a number, in the order of the model.
    """

    records: int
    unannotated: int
    r2: float
    numbers: tuple[NumberScore, ...]


def measure(answers: Floats, truth: Floats, names: Sequence[str]) -> NumbersMetrics:
    """Compares predictions with the truth.

    Args:
        answers: [N, K], the predictions.
        truth: [N, K], the true numbers; NaN where one is missing.
        names: The K names.

    Raises:
        DataError: No image is annotated.
    """
    known = find_annotated(truth)
    answers, truth = answers[known].astype(np.float64), truth[known].astype(np.float64)
    numbers = tuple(
        _measure_number(name, answers[:, n], truth[:, n]) for n, name in enumerate(names)
    )
    scores = [each.r2 for each in numbers if each.r2 is not None]
    return NumbersMetrics(
        records=len(truth),
        unannotated=len(known) - len(truth),
        r2=sum(scores) / len(scores) if scores else 0.0,
        numbers=numbers,
    )


def _measure_number(name: str, answers: Floats, truth: Floats) -> NumberScore:
    """Compares predictions of one number, [N], with the truth, [N]; NaN where it is missing."""
    has = ~np.isnan(truth)
    records, missing = int(has.sum()), int((~has).sum())
    if not records:
        return NumberScore(name, records, missing)
    truth, errors = truth[has], answers[has] - truth[has]
    spread, rmse = float(truth.std()), float(np.sqrt((errors**2).mean()))
    # Not by the spread, which rounding may leave above zero.
    is_constant = truth.min() == truth.max()
    return NumberScore(
        name=name,
        records=records,
        missing=missing,
        mae=float(np.abs(errors).mean()),
        rmse=rmse,
        r2=None if is_constant else 1 - (rmse / spread) ** 2,
        mean=float(truth.mean()),
        baseline_rmse=0.0 if is_constant else spread,
    )
