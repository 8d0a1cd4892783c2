"""What a model with any number of labels says of images, and how good it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from darkroom.errors import DataError
from darkroom.runtime.table import Table
from darkroom.runtime.text import format_count, make_visible
from darkroom.targets.description import Caption, Images, Summary, View
from darkroom.targets.label.scoring import note_lost, note_missing
from darkroom.targets.labels.kind import KIND
from darkroom.targets.labels.metrics import LabelsMetrics, find_labels, measure
from darkroom.targets.learned import Learned
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

__all__ = ["LabelsPrediction"]


@dataclass(frozen=True)
class LabelsPrediction(Prediction):
    """What a model says of an image.

    Attributes:
        path: Path or URI of the image.
        labels: The labels whose scores reach their thresholds, the highest score first.
        scores: Their probabilities.
    """

    labels: tuple[str, ...]
    scores: tuple[float, ...]

    def list_cells(self) -> Mapping[str, Sequence[str] | str]:
        """Returns the labels, and one text of the scores: no conversion takes lists of numbers."""
        scores = (format(each, LabelsScoring.number_format) for each in self.scores)
        return {"labels": self.labels, "scores": ";".join(scores)}

    def list_names(self) -> Sequence[str]:
        """Returns the labels."""
        return self.labels

    def __str__(self) -> str:
        pairs = zip(self.labels, self.scores, strict=True)
        return ", ".join(f"{make_visible(label)} {score:.4f}" for label, score in pairs) or "(none)"


class LabelsScoring(Scoring):
    """See `darkroom.targets.scoring.Scoring`; answers are probabilities, each for itself."""

    metrics = LabelsMetrics
    names_are = "labels"
    score_name = "mean average precision"
    outputs = ("labels", "scores")
    has_recalls = True
    records_key = "probabilities"
    number_format = ".6f"
    scalars = ("mean_average_precision", "micro_f1", "macro_f1", "exact")
    agree_on = "same labels"

    def match(self, truth: Floats, places: Ints, size: int) -> Floats:
        """Returns 1 for each label of an image, else 0, float [N, C]; no image has other labels."""
        found = np.zeros((len(truth), size), truth.dtype)
        found[:, places] = truth
        found[np.isnan(truth).any(axis=1)] = np.nan
        return found

    def check(self, answers: Floats, folder: str, *, from_logits: bool) -> Floats:
        """Returns the probabilities."""
        check_finite(answers)
        are_shares = bool(((answers >= 0) & (answers <= 1)).all())
        if are_shares and from_logits:
            raise DataError(
                f"from_logits is True, but the model in {folder} gives probabilities.",
                "Leave out from_logits.",
            )
        if not are_shares and not from_logits:
            raise DataError(
                f"The model in {folder} does not give probabilities: expected numbers from 0 to 1.",
                "End the model with a sigmoid. Of logits, evaluate and predict of Python take "
                "from_logits=True.",
            )
        return np.exp(-np.logaddexp(0, -answers)) if from_logits else answers

    def agree(self, answers: Floats, others: Floats, learned: Learned) -> float:
        """Compares the labels whose scores reach their thresholds."""
        says, say = (find_labels(each, learned.thresholds) for each in (answers, others))
        return float((says == say).all(axis=1).mean())

    def measure(self, answers: Floats, truth: Floats, learned: Learned) -> LabelsMetrics:
        """Compares labels whose scores reach their thresholds with the true ones."""
        return measure(answers, truth, learned.names, learned.thresholds)

    def list_recalls(self, metrics: LabelsMetrics) -> Mapping[str, float | None]:
        """Returns the recall of each label."""
        return {each.label: each.recall for each in metrics.labels}

    def summarize(self, metrics: LabelsMetrics, where: str) -> Summary:
        """Returns average precision, F1 and baseline, and the labels."""
        score, baseline = metrics.mean_average_precision, metrics.baseline
        rows = [
            (
                each.label,
                each.average_precision,
                each.precision,
                each.recall,
                each.f1,
                each.threshold,
                each.predicted,
                each.support,
            )
            for each in metrics.labels
        ]
        header = ("label", "average precision", "precision", "recall", "F1", "threshold")
        records = format_count(metrics.records, "record")
        return Summary(
            headline=f"Mean average precision {score:.3f} on {where}",
            numbers=[
                (
                    "Score",
                    f"{score:.4f} on {where} of {records} (mean average precision)",
                ),
                ("Micro F1", f"{metrics.micro_f1:.4f} (macro {metrics.macro_f1:.4f})"),
                ("Exact", f"{metrics.exact:.4f} (share of images with exactly the right labels)"),
                ("Baseline", f"{baseline:.4f} (mean average precision of chance)"),
            ],
            tiles=[
                (f"{score:.3f}", f"mean average precision on {where}"),
                (f"{metrics.micro_f1:.3f}", "micro F1"),
                (f"{metrics.macro_f1:.3f}", "macro F1"),
                (f"{metrics.exact:.3f}", "share of images with exactly the right labels"),
                (f"{baseline:.3f}", "baseline: chance"),
                (f"{metrics.records:,}", f"annotated records of {where}"),
            ],
            is_good=score > baseline,
            table=Table("Labels", (*header, "predicted", "records"), rows, ranked_by=1),
            notes=_list_notes(metrics, where),
        )

    def show(self, answers: Floats, truth: Floats, learned: Learned) -> View:
        """Returns the surest mistakes, and the images with scores closest to their thresholds."""
        known = np.flatnonzero(find_annotated(truth))
        has, says = truth > 0, find_labels(answers, learned.thresholds)
        # A wrong label with a high score, or a missed one with a low score.
        wrong = np.where(has, 1 - answers, answers)
        surest = np.where(has != says, wrong, -1).max(axis=1)
        mistakes = [n for n in known[np.argsort(-surest[known], kind="stable")] if surest[n] >= 0]
        distance = np.abs(answers - np.asarray(learned.thresholds))
        closest = known[np.argsort(distance.min(axis=1)[known], kind="stable")]
        groups = (
            Images(
                "Worst mistakes",
                "The highest scores of wrong labels, and the lowest of missed ones.",
                [*map(int, mistakes[:MAX_LISTED])],
            ),
            Images(
                "Least certain",
                "A score close to the threshold, right or wrong.",
                closest[:MAX_LISTED].tolist(),
            ),
        )

        def caption(n: int) -> Caption:
            """Returns all labels of an image, and the score that explains why it is shown."""
            said, true = (
                KIND.show([learned.names[label] for label in np.flatnonzero(row)])
                for row in (says[n], has[n])
            )
            is_right = said == true
            # The worst mistake, or the label that was nearly one.
            worth = -distance[n] if is_right else np.where(has[n] != says[n], wrong[n], -1)
            label = int(worth.argmax())
            return Caption(
                said, f"({learned.names[label]} {answers[n, label]:.2f})", true, is_right
            )

        return View({n: caption(n) for group in groups for n in group.numbers}, groups)

    def predict(
        self, paths: Sequence[str], answers: Floats, learned: Learned
    ) -> list[LabelsPrediction]:
        """Returns the labels of each image whose scores reach their thresholds."""
        found = []
        says = find_labels(answers, learned.thresholds)
        for path, scores, chosen in zip(paths, answers, says, strict=True):
            numbers = [n for n in np.argsort(-scores, kind="stable") if chosen[n]]
            labels = tuple(learned.names[n] for n in numbers)
            found.append(LabelsPrediction(path, labels, tuple(scores[numbers].tolist())))
        return found


def _list_notes(metrics: LabelsMetrics, where: str) -> list[str]:
    notes = count_unannotated(metrics.unannotated, where)
    notes += note_missing(metrics.labels, where) + note_lost(metrics.labels)
    if metrics.mean_average_precision <= metrics.baseline:
        notes.append("The mean average precision is not better than that of chance.")
    return notes


SCORING = LabelsScoring()
