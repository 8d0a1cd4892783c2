"""The result of an evaluation, as values for JSON, as lines for a person, and for a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from darkroom.data.splits import ALL
from darkroom.dataset.splits import EVAL, TRAIN
from darkroom.evaluation.scores.confusion import ConfusionMatrix
from darkroom.evaluation.scores.metrics import ClassScore, Metrics
from darkroom.runtime import cards
from darkroom.runtime.json_values import build_value
from darkroom.runtime.text import list_first, make_visible

# With more classes, those with the lowest recall are shown.
MAX_SHOWN_CLASSES = 20
MAX_CONFUSIONS = 100
MAX_SHOWN_SLICES = 200
_MAX_LABEL_CHARACTERS = 24
_METRICS = frozenset(Metrics.__dataclass_fields__)
_USES = {
    TRAIN: "The model was trained on these records, so the numbers say nothing of new images.",
    EVAL: "The training chose its best epoch by these records, so the numbers are a little too "
    "high. A test split would tell more.",
}


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
class Slice:
    """How good a model is on the records of the eval split that have a value in a column.

    Attributes:
        column: The column of the source.
        value: The value.
        records: Number of records that have it.
        accuracy: Share of them of which the label is found.
    """

    column: str
    value: str
    records: int
    accuracy: float


@dataclass(frozen=True)
class Evaluation:
    """How good an exported model is on a split, by its own serving signature.

    Attributes:
        model_dir: The folder of the SavedModel.
        model_sha256: A hash of its files.
        split: The split that was scored.
        metrics: Accuracy, F1, calibration and others, and those of each class.
        matrix: The whole confusion matrix, of fifty rows at most.
        confusions: The pairs of labels that are taken for each other, most records first; at most
            a hundred.
        notes: Sentences that help to read the numbers.
        report_path: The page, `model.html`; None if none was written.
        slices: How good it is for each value of the columns that a pipeline names.
        missed: The bounds of a pipeline that the model misses, as parts of a sentence.
    """

    model_dir: str
    model_sha256: str
    split: str
    metrics: Metrics
    matrix: ConfusionMatrix
    confusions: tuple[Confusion, ...] = ()
    notes: tuple[str, ...] = ()
    report_path: str | None = None
    slices: tuple[Slice, ...] = ()
    missed: tuple[str, ...] = ()

    @property
    def accuracy(self) -> float:
        """Share of the records of which the label is found."""
        return self.metrics.accuracy

    def to_dict(self) -> dict[str, Any]:
        """Returns the result as values that JSON knows."""
        values = asdict(self)
        return {**{k: v for k, v in values.items() if k != "metrics"}, **values["metrics"]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Evaluation:
        """Makes a result from `to_dict`'s form.

        Raises:
            ValueError: A value is missing, unknown or of another type.
        """
        known = build_value(values, dict[str, Any])
        numbers = {name: each for name, each in known.items() if name in _METRICS}
        own = {name: each for name, each in known.items() if name not in _METRICS}
        return build_value({**own, "metrics": numbers}, cls)

    def __repr__(self) -> str:
        return (
            f"Evaluation(model_dir={self.model_dir!r}, split={self.split!r}, "
            f"accuracy={self.accuracy:.4f}, records={self.metrics.records})"
        )

    def _repr_html_(self) -> str:
        """Returns the numbers as a notebook shows them, without the matrix of confusions."""
        values = self.to_dict() | {"matrix": None, "notes": None, "bins": None}
        return cards.make_card(dict(list_numbers(self))["Accuracy"], values, *self.notes)


CLASS_HEADER = ("class", "precision", "recall", "F1", "records")


def format_evaluation(found: Evaluation) -> str:
    """Returns the result as lines for a person."""
    lines = [f"{name:<10} {value}" for name, value in list_numbers(found)]
    shown = choose_classes(found.metrics.classes)
    rows = [
        [make_visible(cell, _MAX_LABEL_CHARACTERS) for cell in row]
        for row in (CLASS_HEADER, *map(list_class_cells, shown))
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = [each.rjust(width) for each, width in zip(others, widths[1:], strict=True)]
        lines.append(f"  {first.ljust(widths[0])}  {'  '.join(cells)}")
    if more := len(found.metrics.classes) - len(shown):
        lines.append(f"  and {more:,} more with a higher recall: see --json")
    lines += [f"Note       {note}" for note in found.notes]
    if found.report_path:
        lines.append(f"Page       {found.report_path}")
    return "\n".join(lines)


def list_numbers(found: Evaluation) -> list[tuple[str, str]]:
    """Returns the numbers of a result with their names, as text."""
    each = found.metrics
    low, high = each.interval
    top = [("Top 5", f"{each.top5_accuracy:.4f}")] if each.top5_accuracy is not None else []
    return [
        (
            "Accuracy",
            f"{each.accuracy:.4f} on {describe_split(found.split)} of {each.records:,} records "
            f"(95 % interval {low:.3f} to {high:.3f}, Wilson)",
        ),
        *top,
        ("Macro F1", f"{each.macro_f1:.4f} (recall {each.macro_recall:.4f})"),
        ("Calibrated", f"to {each.calibration_error:.4f} (expected calibration error, 15 bins)"),
        ("Baseline", f"{each.majority_accuracy:.4f} (always {make_visible(each.majority_label)})"),
    ]


def format_headline(found: Evaluation) -> str:
    """Returns the most important part of a result: the bound that it misses, else its accuracy."""
    if not found.missed:
        return f"{found.accuracy:.1%} right on {describe_split(found.split)}"
    first, *others = found.missed
    more = f", and {len(others)} more bound{'s' * (len(others) > 1)} missed" if others else ""
    return f"Not good enough: {make_visible(first)}{more}"


def describe_split(split: str) -> str:
    """Returns a split as part of a sentence."""
    return "all splits" if split == ALL else f"the {split} split"


def list_class_cells(each: ClassScore) -> list[str]:
    """Returns a row for the table of classes."""
    numbers = (each.precision, each.recall, each.f1)
    return [each.label, *map(format_share, numbers), f"{each.support:,}"]


def format_share(value: float | None) -> str:
    """Returns a share with three decimals; a dash if it has none."""
    return "-" if value is None else f"{value:.3f}"


SLICE_HEADER = ("column", "value", "accuracy", "records")


def list_slices(found: Evaluation) -> list[tuple[str, str, str, str]]:
    """Returns rows for the table of slices, those with the lowest accuracy first."""
    order = sorted(found.slices, key=lambda each: each.accuracy)
    return [
        (each.column, each.value, format_share(each.accuracy), f"{each.records:,}")
        for each in order[:MAX_SHOWN_SLICES]
    ]


def choose_classes(classes: Sequence[ClassScore]) -> Sequence[ClassScore]:
    """Returns the classes to show: all, or those with the lowest recall, the lowest first."""
    if len(classes) <= MAX_SHOWN_CLASSES:
        return classes
    known = [each for each in classes if each.recall is not None]
    return sorted(known, key=lambda each: each.recall or 0.0)[:MAX_SHOWN_CLASSES]


def list_notes(metrics: Metrics, split: str, use: str = "") -> tuple[str, ...]:
    """Returns notes that help to read the numbers.

    Args:
        metrics: The numbers.
        split: The split that they are of.
        use: The use of these records in the training: train or eval; empty if none.
    """
    notes = [_USES[use]] if use else []
    with_records = [each for each in metrics.classes if each.support]
    if len(with_records) == 1:
        notes.append(
            f"All records have the label {make_visible(with_records[0].label)}, so the accuracy is "
            "the recall of that class alone."
        )
    elif missing := [each.label for each in metrics.classes if not each.support]:
        where = describe_split(split)
        notes.append(f"No record of {where} has the label {list_first(missing)}.")
    if lost := [each.label for each in with_records if not each.recall]:
        notes.append(f"The recall is 0 for {list_first(lost)}: not one of their images is found.")
    if len(with_records) > 1 and metrics.interval[0] <= metrics.majority_accuracy:
        notes.append(
            "The accuracy is not surely better than that of always predicting "
            f"{make_visible(metrics.majority_label)}."
        )
    return tuple(notes)
