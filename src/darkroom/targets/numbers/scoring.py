"""What a model that predicts numbers says of images, and how good it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from darkroom.errors import DataError
from darkroom.runtime.table import Table
from darkroom.runtime.text import format_count, list_first, make_visible
from darkroom.targets.description import Caption, Chart, Images, Summary, View
from darkroom.targets.learned import Learned
from darkroom.targets.numbers.metrics import NumbersMetrics, measure
from darkroom.targets.scoring import (
    MAX_LISTED,
    Floats,
    Ints,
    Prediction,
    Scoring,
    check_finite,
    count_unannotated,
    find_annotated,
)

__all__ = ["NumbersPrediction"]

_MAX_POINTS = 500


@dataclass(frozen=True)
class NumbersPrediction(Prediction):
    """What a model says of an image.

    Attributes:
        path: Path or URI of the image.
        values: The numbers by name, in the units of the data.
    """

    values: Mapping[str, float]

    def list_cells(self) -> Mapping[str, float]:
        """Returns the numbers, a column each."""
        return self.values

    def __str__(self) -> str:
        return _join(self.values)


class NumbersScoring(Scoring):
    """See `darkroom.targets.scoring.Scoring`; answers are in the units of the data."""

    metrics = NumbersMetrics
    names_are = "numbers"
    score_name = "R²"
    outputs = ("values",)
    records_key = "values"
    number_format = ".7g"
    scalars = ("r2",)

    def match(self, truth: Floats, places: Ints, size: int) -> Floats:
        """Returns the numbers, float [N, K]; NaN for those that the data does not have."""
        found = np.full((len(truth), size), np.nan, truth.dtype)
        found[:, places] = truth
        return found

    def check(self, answers: Floats, folder: str, *, from_logits: bool) -> Floats:
        """Returns the numbers."""
        if from_logits:
            raise DataError(
                f"from_logits is True, but the model in {folder} predicts numbers.",
                "Leave out from_logits.",
            )
        check_finite(answers)
        return answers

    def measure(self, answers: Floats, truth: Floats, learned: Learned) -> NumbersMetrics:
        """Compares the numbers with the true ones."""
        return measure(answers, truth, learned.names)

    def list_scalars(self, metrics: NumbersMetrics) -> Mapping[str, float]:
        """Returns the mean R², and R² and errors of each number."""
        found = {
            f"{each.name}_{what}": getattr(each, what)
            for each in metrics.numbers
            for what in ("r2", "mae", "rmse")
        }
        known = {name: value for name, value in found.items() if value is not None}
        return {**super().list_scalars(metrics), **known}

    def summarize(self, metrics: NumbersMetrics, where: str) -> Summary:
        """Returns R², the errors and the baseline, and the numbers."""
        errors = {
            what: _join({each.name: getattr(each, what) for each in metrics.numbers})
            for what in ("mae", "rmse", "baseline_rmse")
        }
        rows = [
            (
                each.name,
                each.r2,
                *(_format(value) for value in (each.mae, each.rmse, each.baseline_rmse)),
                each.missing,
                each.records,
            )
            for each in metrics.numbers
        ]
        header = ("number", "R²", "MAE", "RMSE", "RMSE of the mean", "missing", "records")
        records = format_count(metrics.records, "record")
        return Summary(
            headline=f"R² {metrics.r2:.3f} on {where}",
            numbers=[
                (
                    "R²",
                    f"{metrics.r2:.4f} on {where} of {records} (mean of the numbers)",
                ),
                ("MAE", errors["mae"]),
                ("RMSE", errors["rmse"]),
                ("Baseline", f"RMSE {errors['baseline_rmse']} (always the mean)"),
            ],
            tiles=[
                (f"{metrics.r2:.3f}", f"mean R² on {where}; always the mean: 0"),
                *((_format(each.mae), f"MAE of {each.name}") for each in metrics.numbers[:3]),
                (f"{metrics.records:,}", f"annotated records of {where}"),
            ],
            is_good=metrics.r2 > 0,
            table=Table("Numbers", header, rows, ranked_by=1),
            notes=_list_notes(metrics, where),
        )

    def show(self, answers: Floats, truth: Floats, learned: Learned) -> View:
        """Returns the images with the largest errors, and predicted against true numbers."""
        known = np.flatnonzero(find_annotated(truth))
        errors = np.nan_to_num(np.abs(answers - truth)[known])
        scales = errors.max(axis=0)
        worst = (errors / np.where(scales > 0, scales, 1)).max(axis=1)
        numbers = known[np.argsort(-worst, kind="stable")][:MAX_LISTED].tolist()

        def describe(values: Floats) -> str:
            return _join(dict(zip(learned.names, values, strict=True)))

        captions = {
            number: Caption(describe(answers[number]), "", describe(truth[number]), False)
            for number in numbers
        }
        what = "The largest errors, as shares of the largest of each number."
        charts = [
            _make_chart(name, answers[:, n], truth[:, n])
            for n, name in enumerate(learned.names)
            if not np.isnan(truth[:, n]).all()
        ]
        groups = [Images("Worst images", what, numbers)]
        return View(captions, groups, charts_title="Predicted against true", charts=charts)

    def predict(
        self, paths: Sequence[str], answers: Floats, learned: Learned
    ) -> list[NumbersPrediction]:
        """Returns the numbers of each image."""
        return [
            NumbersPrediction(path, dict(zip(learned.names, row, strict=True)))
            for path, row in zip(paths, answers.tolist(), strict=True)
        ]


def _make_chart(name: str, answers: Floats, truth: Floats) -> Chart:
    """Returns the chart of one number; its points are some of the images, from all of the split.

    Args:
        name: Its name.
        answers: [N], the predictions.
        truth: [N], the true numbers; NaN where one is missing, but not all.
    """
    has = np.flatnonzero(~np.isnan(truth))
    shown = has[:: -(-len(has) // _MAX_POINTS)]
    values = np.concatenate((answers[has], truth[has])).astype(np.float64)
    low, high = float(values.min()), float(values.max())
    return Chart(
        f"{make_visible(name)}: true numbers to the right, predicted ones upwards. On the dashed "
        "line, they are equal.",
        f"{name}: {len(has):,} images, from {low:.4g} to {high:.4g}",
        "true",
        [*zip(truth[shown].tolist(), answers[shown].tolist(), strict=True)],
        low,
        high if high > low else low + 1,
    )


def _join(values: Mapping[str, float | None]) -> str:
    return list_first([f"{make_visible(name)} {_format(each)}" for name, each in values.items()])


def _format(value: float | None) -> str:
    return "-" if value is None or np.isnan(value) else f"{value:.4g}"


def _list_notes(metrics: NumbersMetrics, where: str) -> list[str]:
    notes = count_unannotated(metrics.unannotated, where)
    if missing := [f"{each.name} of {each.missing:,}" for each in metrics.numbers if each.missing]:
        notes.append(f"Missing, and not scored: {list_first(missing)} records.")
    if constant := [each.name for each in metrics.numbers if each.records and each.r2 is None]:
        notes.append(f"There is no R² of {list_first(constant)}: all records have the same number.")
    if metrics.r2 <= 0:
        notes.append("The predictions are not better than always the mean.")
    return notes


SCORING = NumbersScoring()
