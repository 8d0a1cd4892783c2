"""What a classifier says of images, and how good it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from darkroom.runtime.table import Table
from darkroom.runtime.text import format_count, list_first, make_visible
from darkroom.targets.description import Summary, View
from darkroom.targets.label.confusion import MATRIX_PROPERTY, ROC_PROPERTY, TITLE_PROPERTY
from darkroom.targets.label.metrics import MAX_CONFUSIONS, ClassScore, LabelMetrics, measure
from darkroom.targets.label.probabilities import make_probabilities
from darkroom.targets.label.view import make_view
from darkroom.targets.learned import Learned
from darkroom.targets.scoring import Floats, Ints, Prediction, Scoring

__all__ = ["LabelPrediction"]

_MAX_SHOWN_CONFUSIONS = 10


@dataclass(frozen=True)
class LabelPrediction(Prediction):
    """The prediction of a classifier for an image.

    Attributes:
        path: Path or URI of the image.
        label: The most likely label.
        score: Its probability.
    """

    label: str
    score: float

    def list_names(self) -> Sequence[str]:
        """Returns the label."""
        return (self.label,)

    def __str__(self) -> str:
        return f"{self.score:.4f}  {make_visible(self.label)}"


class LabelScoring(Scoring):
    """See `darkroom.targets.scoring.Scoring`; answers are probabilities with a sum of 1."""

    metrics = LabelMetrics
    names_are = "labels"
    score_name = "accuracy"
    outputs = ("label", "score", "scores")
    has_recalls = True
    records_key = "probabilities"
    number_format = ".6f"
    scalars = ("accuracy", "macro_f1", "macro_recall", "calibration_error")
    tfma_score = "sparse_categorical_accuracy"
    agree_on = "same label"

    def match(self, truth: Ints, places: Ints, size: int) -> Ints:
        """Returns the numbers of the labels, int64 [N]."""
        return places[truth]

    def check(self, answers: Floats, folder: str, *, from_logits: bool) -> Floats:
        """Returns the probabilities."""
        return make_probabilities(answers, folder, from_logits=from_logits)

    def agree(self, answers: Floats, others: Floats, learned: Learned) -> float:
        """Compares the most likely labels."""
        return float((answers.argmax(axis=1) == others.argmax(axis=1)).mean())

    def measure(self, answers: Floats, truth: Ints, learned: Learned) -> LabelMetrics:
        """Compares the most likely labels with the true ones."""
        return measure(answers, truth, learned.names)

    def list_properties(self, metrics: LabelMetrics, where: str) -> Mapping[str, Any]:
        """Returns the confusion matrix, of two labels the ROC curve, and what they are of."""
        curve = [
            {
                "confidenceThreshold": point.threshold,
                "falsePositiveRate": point.false_positive_rate,
                "recall": point.recall,
            }
            for point in metrics.roc
        ]
        return {
            TITLE_PROPERTY: f"model on {where}",
            MATRIX_PROPERTY: metrics.matrix.encode(),
            **({ROC_PROPERTY: curve} if curve else {}),
        }

    def list_recalls(self, metrics: LabelMetrics) -> Mapping[str, float | None]:
        """Returns the recall of each class."""
        return {each.label: each.recall for each in metrics.classes}

    def summarize(self, metrics: LabelMetrics, where: str) -> Summary:
        """Returns accuracy, F1, calibration and baseline, the classes and the confusions."""
        low, high = metrics.interval
        top5 = metrics.top5_accuracy
        baseline = f"always {make_visible(metrics.majority_label)}"
        records = format_count(metrics.records, "record")
        interval = f"95 % interval {low:.3f} to {high:.3f}"
        numbers = [
            (
                "Accuracy",
                f"{metrics.accuracy:.4f} on {where} of {records} ({interval}, Wilson)",
            ),
            *([("Top 5", f"{top5:.4f}")] if top5 is not None else []),
            ("Macro F1", f"{metrics.macro_f1:.4f} (recall {metrics.macro_recall:.4f})"),
            (
                "Calibrated",
                f"to {metrics.calibration_error:.4f} (expected calibration error, 15 bins)",
            ),
            ("Baseline", f"{metrics.majority_accuracy:.4f} ({baseline})"),
        ]
        tiles = [
            (f"{metrics.accuracy:.3f}", f"accuracy on {where}, {interval} (Wilson)"),
            *([(f"{top5:.3f}", "label among the first five")] if top5 is not None else []),
            (f"{metrics.macro_f1:.3f}", "macro F1"),
            (f"{metrics.calibration_error:.3f}", "calibration error"),
            (f"{metrics.majority_accuracy:.3f}", f"baseline: {baseline}"),
            (f"{metrics.records:,}", f"records of {where}"),
        ]
        classes = Table(
            "Classes",
            ("class", "precision", "recall", "F1", "records"),
            [(c.label, c.precision, c.recall, c.f1, c.support) for c in metrics.classes],
            ranked_by=2,
        )
        return Summary(
            headline=f"{metrics.accuracy:.1%} right on {where}",
            numbers=numbers,
            tiles=tiles,
            is_good=low > metrics.majority_accuracy,
            table=classes,
            more_tables=[_make_confusions(metrics)],
            notes=_list_notes(metrics, where),
        )

    def show(self, answers: Floats, truth: Ints, learned: Learned) -> View:
        """Returns mistakes, uncertain images, the confusion matrix and the calibration."""
        return make_view(answers, truth, learned.names)

    def predict(
        self, paths: Sequence[str], answers: Floats, learned: Learned
    ) -> list[LabelPrediction]:
        """Returns the most likely label of each image."""
        labels = [learned.names[number] for number in answers.argmax(axis=1)]
        scores = answers.max(axis=1).tolist()
        return [LabelPrediction(*each) for each in zip(paths, labels, scores, strict=True)]


def _make_confusions(metrics: LabelMetrics) -> Table:
    """Returns the first pairs of labels that are taken for each other."""
    shown = metrics.confusions[:_MAX_SHOWN_CONFUSIONS]
    more = len(metrics.confusions) - len(shown)
    # There may be more than the metrics have.
    least = "at least " if len(metrics.confusions) == MAX_CONFUSIONS else ""
    return Table(
        "Confusion",
        ("label", "taken for", "records"),
        [(each.label, each.predicted, each.records) for each in shown],
        more=f"{least}{more:,} more" if more else "",
    )


def note_missing(classes: Sequence[ClassScore], where: str) -> list[str]:
    """Returns a note on labels that no image has; none if there are none."""
    missing = [each.label for each in classes if not each.support]
    return [f"No record of {where} has the label {list_first(missing)}."] if missing else []


def note_lost(classes: Sequence[ClassScore]) -> list[str]:
    """Returns a note on labels of which no image is found; none if there are none."""
    lost = [each.label for each in classes if each.support and not each.recall]
    said = f"The recall is 0 for {list_first(lost)}: not one of their images is found."
    return [said] if lost else []


def _list_notes(metrics: LabelMetrics, where: str) -> list[str]:
    notes = []
    with_records = [each for each in metrics.classes if each.support]
    if len(with_records) == 1:
        notes.append(
            f"All records have the label {make_visible(with_records[0].label)}, so the accuracy is "
            "the recall of that class alone."
        )
    else:
        notes += note_missing(metrics.classes, where)
    notes += note_lost(metrics.classes)
    if len(with_records) > 1 and metrics.interval[0] <= metrics.majority_accuracy:
        notes.append(
            "The accuracy is not surely better than that of always predicting "
            f"{make_visible(metrics.majority_label)}."
        )
    return notes


SCORING = LabelScoring()
