"""Reads the files of a TFMA evaluation: metrics and confusion matrix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import tensorflow_model_analysis as tfma

from darkroom import storage
from darkroom.dataset import example
from darkroom.errors import DataError, is_environment
from darkroom.evaluation.report.result import Slice
from darkroom.runtime.text import make_visible
from darkroom.targets.kind import list_learned
from darkroom.targets.scoring import find_scoring

# TFMA's name of the accuracy; of a slice by label it is the recall.
ACCURACY_KEY = "sparse_categorical_accuracy"
COUNT_KEY = "example_count"
# Of a model that answers several labels.
RECALL_KEY = "lowest_recall"
_MATRIX_KEY = "multi_class_confusion_matrix_at_thresholds"


@dataclass(frozen=True)
class SplitMetrics:
    """Metrics of a whole evaluated split.

    Attributes:
        metrics: Numbers by TFMA's name.
        confusions: Number of examples by (true class, predicted class); empty when the evaluation
            has no confusion matrix.
        slices: The accuracy for each value of the columns that were asked for.
    """

    metrics: Mapping[str, float]
    confusions: Mapping[tuple[int, int], float]
    slices: Sequence[Slice] = ()


def list_scores() -> dict[str, str]:
    """Returns the name for people of each number that decides, by the name that TFMA has."""
    scorings = map(find_scoring, list_learned())
    return {each.tfma_score or each.scalars[0]: each.score_name for each in scorings}


def find_score(metrics: Mapping[str, float]) -> tuple[str, float | None]:
    """Returns the number that decides, and its name for people; None if it was not measured."""
    for key, name in list_scores().items():
        if key in metrics:
            return name, metrics[key]
    return "", None


def read_split_metrics(folder: str) -> SplitMetrics:
    """Reads the folder of a ModelEvaluation artifact.

    Of its slices, those by one column of the source are read.

    Raises:
        DataError: A file is damaged or missing.
    """
    metrics: dict[str, float] = {}
    confusions: dict[tuple[int, int], float] = {}
    slices: list[Slice] = []
    with _report_damage(folder):
        for key, outputs in tfma.load_eval_result(folder).slicing_metrics:
            found = [values for by_class in outputs.values() for values in by_class.values()]
            numbers = {
                name: float(value["doubleValue"])
                for values in found
                for name, value in values.items()
                if isinstance(value, Mapping) and "doubleValue" in value
            }
            if not key:
                metrics |= numbers
                for values in found:
                    if _MATRIX_KEY in values:
                        confusions = _parse_matrix(values[_MATRIX_KEY])
            elif len(key) == 1 and key[0][0] != example.LABEL_TEXT:
                [(column, value)] = key
                _, score = find_score(numbers)
                if score is not None:
                    records = int(numbers.get(COUNT_KEY, 0))
                    slices.append(Slice(column, _format_value(value), records, score))
    return SplitMetrics(metrics, confusions, tuple(slices))


@contextmanager
def _report_damage(folder: str) -> Iterator[None]:
    try:
        yield
    # TFMA checks nothing: its error depends on the byte.
    except Exception as error:
        if is_environment(error):
            raise
        raise DataError(
            f"The evaluation in {folder} is damaged: {str(error).rstrip('.')}.",
            "Evaluate the model again: run with --no-cache, or compile with --set cache=false.",
        ) from error


def read_failures(folder: str) -> tuple[str, ...]:
    """Returns why a model did not pass its evaluation, as sentences with the value and the bound.

    There are none when it passed, or when the evaluation had no bounds.

    Raises:
        DataError: A file is damaged.
    """
    if not any(name.startswith(tfma.VALIDATIONS_KEY) for name in storage.list_folder(folder)):
        return ()
    with _report_damage(folder):
        result = tfma.load_validation_result(folder)
    missed = [
        _describe_failure(failure, _name_slice(by_slice.slice_key))
        for by_slice in result.metric_validations_per_slice
        for failure in by_slice.failures
    ]
    empty = [
        f"no record has {', '.join(each.feature_keys)}, which has a bound"
        for each in result.missing_slices
    ]
    return (*missed, *empty)


def _name_slice(key: Any) -> Sequence[tuple[str, str]]:
    """Returns the columns of a slice with their values; none for the whole split."""
    return [
        (each.column, _format_value(getattr(each, each.WhichOneof("kind") or "bytes_value")))
        for each in key.single_slice_keys
    ]


def _format_value(value: object) -> str:
    return make_visible(value.decode(errors="replace") if isinstance(value, bytes) else str(value))


def _describe_failure(failure: Any, place: Sequence[tuple[str, str]] = ()) -> str:
    """Returns a missed bound in words.

    `RunSummary.other_failures` finds that of the whole score by its first words.

    Args:
        failure: A `ValidationFailure` of TFMA.
        place: The columns of the slice with their values; none for the whole split.
    """
    name, value = failure.metric_key.name, f"{failure.metric_value.double_value.value:.4f}"
    if [column for column, _ in place] == [example.LABEL_TEXT] and name == ACCURACY_KEY:
        # Of the records with a label, the share that is right.
        name = f"the recall of {place[0][1]}"
    elif place:
        name += " where " + " and ".join(f"{column} is {each}" for column, each in place)
    elif known := {**list_scores(), RECALL_KEY: "lowest recall of a label"}.get(name):
        name = f"the {known}"
    if failure.message:
        return f"{name}: {' '.join(failure.message.split())}"
    threshold = failure.metric_threshold
    if threshold.HasField("value_threshold"):
        needed = _list_bounds(threshold.value_threshold, lower_bound="least", upper_bound="most")
        return f"{name} is {value} (needed {needed})"
    is_loss = threshold.change_threshold.direction == tfma.MetricDirection.LOWER_IS_BETTER
    word = "most" if is_loss else "least"
    needed = _list_bounds(threshold.change_threshold, absolute=word, relative=word)
    return f"{name} differs by {value} from the model before (needed {needed})"


def _list_bounds(threshold: Any, **words: str) -> str:
    """Returns the bounds that a threshold has, by the names of their fields."""
    return " and ".join(
        # Not "-0", as a drop of 0 is written.
        f"at {word} {getattr(threshold, name).value + 0.0:g}{unit}"
        for name, word in words.items()
        for unit in [" times its value" if name == "relative" else ""]
        if threshold.HasField(name)
    )


def _parse_matrix(value: Mapping[str, Any]) -> dict[tuple[int, int], float]:
    """Returns the number of examples by (true class, predicted class).

    There is one matrix, because `pipelines/evaluation.py` asks for one threshold.
    """
    [matrix] = value["multiClassConfusionMatrixAtThresholds"]["matrices"]
    # Proto3's JSON leaves zeros out, so class 0 has no id.
    return {
        (entry.get("actualClassId", 0), entry.get("predictedClassId", 0)): float(
            entry.get("numWeightedExamples", 0)
        )
        for entry in matrix["entries"]
    }
