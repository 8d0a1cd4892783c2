"""The result of an evaluation, as values for JSON, as lines for a person, and for a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from darkroom.data.splits import ALL_SPLITS
from darkroom.dataset.splits import EVAL, TRAIN
from darkroom.runtime.json_values import build_value
from darkroom.runtime.result import BAD, FAIR, GOOD, Fact, Outcome, Result, ResultRow, list_facts
from darkroom.runtime.table import Table
from darkroom.runtime.text import MAX_LISTED_ROWS, make_visible
from darkroom.targets.description import Summary
from darkroom.targets.kind import KINDS
from darkroom.targets.scoring import find_scoring

__all__ = ["Slice"]

MAX_SHOWN_SLICES = 200
# With more rows, those with the lowest score are shown in a terminal.
MAX_SHOWN_ROWS = 20
_USES = {
    TRAIN: "The model was trained on these records, so the numbers say nothing of new images.",
    EVAL: "The training chose its best epoch by these records, so the numbers are a little too "
    "high. A test split would tell more.",
}


@dataclass(frozen=True)
class Slice:
    """How good a model is on the records of a split that have a value in a column.

    Attributes:
        column: The column of the source.
        value: The value.
        records: Number of records that have it.
        accuracy: Share of them of which the label is found; of a detector the average precision.
    """

    column: str
    value: str
    records: int
    accuracy: float


@dataclass(frozen=True)
class Evaluation(Result):
    """How good an exported model is on a split, by its own serving signature, or a detector.

    Attributes:
        model_dir: The folder of the SavedModel; of a detector the file or folder of its results.
        model_sha256: A hash of its files.
        split: The split that was scored.
        metrics: Its numbers, by the kind of target: `LabelMetrics`, `LabelsMetrics`,
            `NumbersMetrics` or `BoxesMetrics`.
        notes: Sentences that help to read the numbers.
        report_path: The page, `model.html`; None if none was written.
        slices: How good it is for each value of the columns that a pipeline names; a detector for
            splits and groups.
        missed: The bounds of a pipeline that the model misses, as parts of a sentence.
        kind: The kind of target.
    """

    model_dir: str
    model_sha256: str
    split: str
    metrics: Any
    notes: tuple[str, ...] = ()
    report_path: str | None = None
    slices: tuple[Slice, ...] = ()
    missed: tuple[str, ...] = ()
    kind: str = "label"

    @property
    def score(self) -> float:
        """The number that decides: accuracy, (mean) average precision, or mean R²."""
        return find_scoring(self.kind).get_score(self.metrics)

    @property
    def accuracy(self) -> float:
        """Share of the records of which the label is found; only where images have one label."""
        accuracy: float = self.metrics.accuracy
        return accuracy

    def list_scalars(self) -> dict[str, float]:
        """Returns the numbers that a UI shows, with the split that each is of."""
        found = find_scoring(self.kind).list_scalars(self.metrics)
        return {f"{self.split}_{name}": each for name, each in found.items()}

    def summarize(self) -> Summary:
        """Returns the numbers as texts."""
        return find_scoring(self.kind).summarize(self.metrics, describe_split(self.split))

    def to_dict(self) -> dict[str, Any]:
        """Returns the result as values that JSON knows."""
        values = asdict(self)
        return {**values, **values.pop("metrics"), "score": self.score}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Evaluation:
        """Makes a result from `to_dict`'s form.

        Raises:
            ValueError: A value is missing, unknown or of another type.
        """
        known = build_value(values, dict[str, Any])
        known.pop("score", None)
        kind = known.get("kind", cls.kind)
        if kind not in KINDS:
            raise ValueError(f"{kind!r:.80} is not a kind of target")
        metrics = find_scoring(kind).metrics
        names = {each.name for each in fields(metrics)} & {*known}
        numbers = build_value({name: known.pop(name) for name in names}, metrics)
        return build_value({**known, "metrics": numbers}, cls)

    def __repr__(self) -> str:
        return (
            f"Evaluation(model_dir={self.model_dir!r}, split={self.split!r}, "
            f"{find_scoring(self.kind).score_name}={self.score:.4f}, "
            f"records={self.metrics.records})"
        )

    def describe(self) -> Outcome:
        """Returns what it says to people; its card also shows confusions and slices."""
        summary = self.summarize()
        rows: list[ResultRow] = [
            *list_facts(dict(summary.numbers)),
            shorten_scores(summary.table),
            *(Fact("Note", note) for note in self.notes),
            *list_facts({"Page": self.report_path or ""}),
        ]
        tables = (*summary.tables, *summary.more_tables, list_slices(self))
        more = [each.shorten(MAX_LISTED_ROWS).to_html() for each in tables if each.rows]
        tone = BAD if self.missed else GOOD if summary.is_good else FAIR
        return Outcome(format_headline(self), rows, tone, more)


def shorten_scores(table: Table) -> Table:
    """Returns a table, or the rows with the lowest score if it has many."""
    if len(table.rows) <= MAX_SHOWN_ROWS:
        return table
    where = f" with a higher {table.header[table.ranked_by]}: see --json"
    return table.rank().shorten(MAX_SHOWN_ROWS, where)


def format_headline(found: Evaluation) -> str:
    """Returns the most important part of a result: the bound that it misses, else its score."""
    if not found.missed:
        return found.summarize().headline
    first, *others = found.missed
    more = f", and {len(others)} more bound{'s' * (len(others) > 1)} missed" if others else ""
    return f"Not good enough: {make_visible(first)}{more}"


def find_missed(found: Evaluation, min_accuracy: float, min_recall: float) -> tuple[str, ...]:
    """Returns which bounds a model misses. A label without records has no recall.

    Args:
        found: The numbers.
        min_accuracy: The least score: accuracy, mean average precision or R²; 0 for none.
        min_recall: The least recall of each label; numbers have none.
    """
    missed, scoring = [], find_scoring(found.kind)
    if min_accuracy and found.score < min_accuracy:
        said = f"the {scoring.score_name} is {found.score:.4f}"
        missed.append(f"{said} (needed at least {min_accuracy:g})")
    for label, recall in scoring.list_recalls(found.metrics).items():
        if recall is not None and recall < min_recall:
            needed = f"needed at least {min_recall:g}"
            missed.append(f"the recall of {label} is {recall:.4f} ({needed})")
    return tuple(missed)


def describe_split(split: str) -> str:
    """Returns a split as part of a sentence."""
    return "all splits" if split == ALL_SPLITS else f"the {split} split"


def describe_use(use: str) -> tuple[str, ...]:
    """Returns a note on the use of the records in the training: train or eval; empty if none."""
    return (_USES[use],) if use else ()


def list_slices(found: Evaluation) -> Table:
    """Returns the table of slices, those with the lowest accuracy first."""
    order = sorted(found.slices, key=lambda each: each.accuracy)
    rows = [
        (each.column, each.value, each.accuracy, each.records) for each in order[:MAX_SHOWN_SLICES]
    ]
    header = ("column", "value", find_scoring(found.kind).score_name, "records")
    return Table(f"Columns, on {describe_split(found.split)}", header, rows, ranked_by=2)
