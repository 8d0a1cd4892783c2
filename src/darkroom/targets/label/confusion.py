"""The confusion matrix in a size that a page can show, and as KFP's `ClassificationMetrics`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from darkroom.errors import DataError

__all__ = ["ConfusionMatrix"]

# What KFP's UI looks for among the metadata: two drawings, and the words above them.
MATRIX_PROPERTY, ROC_PROPERTY = "confusionMatrix", "confidenceMetrics"
TITLE_PROPERTY = "display_name"
_MAX_CLASSES = 50
OTHER_CLASSES = "(all others)"


@dataclass(frozen=True)
class ConfusionMatrix:
    """How many records of each label are taken for each label.

    Attributes:
        labels: The labels of rows and columns; the last may stand for all others.
        rows: A row for each label, with the records for each predicted label.
    """

    labels: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]

    def encode(self) -> dict[str, Any]:
        """Returns it in the form of KFP: `annotationSpecs` with the labels, and `rows`."""
        return {
            "annotationSpecs": [{"displayName": label} for label in self.labels],
            "rows": [{"row": list(row)} for row in self.rows],
        }


def make_matrix(
    confusions: Mapping[tuple[int, int], float], labels: Sequence[str]
) -> ConfusionMatrix:
    """Returns a confusion matrix of at most fifty rows.

    With more classes, those with the most mistakes keep their own rows and columns, and all others
    share the last.

    Args:
        confusions: Number of examples by (true class, predicted class).
        labels: The label of each class.

    Raises:
        DataError: A class has no label.
    """
    if unknown := sorted(
        {number for pair in confusions for number in pair} - {*range(len(labels))}
    ):
        raise DataError(
            f"The evaluation has classes {unknown[:5]}, the data only {len(labels)} labels.",
            "Give ModelReport the report on the data that the model was trained on.",
        )
    shown = _choose_classes(confusions, len(labels))
    names = [labels[number] for number in shown]
    if len(shown) < len(labels):
        names.append(OTHER_CLASSES)
    places = {number: place for place, number in enumerate(shown)}
    rows = [[0.0] * len(names) for _ in names]
    for (actual, predicted), count in confusions.items():
        rows[places.get(actual, len(shown))][places.get(predicted, len(shown))] += count
    return ConfusionMatrix(tuple(names), tuple(map(tuple, rows)))


def _choose_classes(confusions: Mapping[tuple[int, int], float], num_classes: int) -> list[int]:
    """Returns the classes with a row of their own, in order: one row is left for all others."""
    if num_classes <= _MAX_CLASSES:
        return list(range(num_classes))
    mistakes: Counter[int] = Counter()
    for (actual, predicted), count in confusions.items():
        if actual != predicted:
            mistakes[actual] += int(count)
            mistakes[predicted] += int(count)
    ranked = sorted(range(num_classes), key=lambda number: (-mistakes[number], number))
    return sorted(ranked[: _MAX_CLASSES - 1])
