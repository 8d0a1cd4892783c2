"""TFMA's metrics for models of several labels and of numbers: the numbers of the model's page."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import tensorflow_model_analysis as tfma
from tensorflow_model_analysis.metrics import metric_types

from darkroom.components.model_report.evaluation import RECALL_KEY
from darkroom.dataset import example
from darkroom.errors import DataError, UsageError
from darkroom.targets.kind import find_kind
from darkroom.targets.learned import Learned, decode_learned
from darkroom.targets.scoring import find_scoring

_MEASURED = "_measured"


class KindMetric(metric_types.Metric):
    """A number of a model that does not answer one label an image."""

    def __init__(self, name: str, learned: str) -> None:
        """Makes the metric.

        Args:
            name: The name of the score, or `lowest_recall`.
            learned: What the model answers: `Learned.encode` as text.
        """
        super().__init__(_make_computations, name=name, learned=learned)


metric_types.register_metric(KindMetric)


def fit_config(config: tfma.EvalConfig, learned: Learned) -> tfma.EvalConfig:
    """Returns the metrics for what a model answers, with the bounds of those of one label.

    Args:
        config: As `darkroom.pipelines.evaluation` makes it: the first threshold of its accuracy is
            of the whole split, and the second one of each label.
        learned: What the model answers.

    Raises:
        UsageError: There is a bound for the recall of labels, and the model has none.
    """
    scoring = find_scoring(learned.kind)
    names = [scoring.scalars[0], *([RECALL_KEY] if scoring.has_recalls else [])]
    found = tfma.EvalConfig()
    found.CopyFrom(config)
    [model] = found.model_specs
    model.ClearField("label_key")
    model.prediction_key = scoring.records_key
    [spec] = found.metrics_specs
    bounds = [each for metric in spec.metrics for each in metric.per_slice_thresholds]
    if len(bounds) > len(names) and bounds[-1].threshold.value_threshold.lower_bound.value > 0:
        raise UsageError(
            f"min_recall is set, but the model answers {learned.kind}, which have no recall.",
            "Leave it out.",
        )
    del spec.metrics[1:]
    for name, bound in zip(names, bounds, strict=False):
        metric = spec.metrics.add(class_name=KindMetric.__name__, module=__name__)
        metric.config = json.dumps({"name": name, "learned": learned.encode().decode()})
        threshold = metric.per_slice_thresholds.add(slicing_specs=[tfma.SlicingSpec()]).threshold
        threshold.CopyFrom(bound.threshold)
        least = threshold.value_threshold.lower_bound
        # 0 stands for none, and R² may be below it. Without a bound, TFX blesses nothing.
        least.value = least.value or -sys.float_info.max
    kept = [each for each in found.slicing_specs if example.LABEL_TEXT not in each.feature_keys]
    del found.slicing_specs[:]
    found.slicing_specs.extend(kept)
    return found


def _make_computations(
    name: str, learned: str, model_names: list[str] | None = None
) -> list[metric_types.MetricComputation | metric_types.DerivedMetricComputation]:
    """Returns, of each model, the measurement and the one number of it that the metric is.

    TFMA calls it, and finds the parameters by their names.

    Args:
        name: As in `KindMetric`.
        learned: As in `KindMetric`.
        model_names: Several where a model is compared with another one.
    """
    made: list[Any] = []
    answered = decode_learned(learned.encode())
    for model in model_names or [""]:
        # TFMA computes this once, whatever metrics take from it.
        base = metric_types.MetricKey(name=_MEASURED, model_name=model)
        key = metric_types.MetricKey(name=name, model_name=model)
        wanted = metric_types.StandardMetricInputsPreprocessor(
            include_filter={
                tfma.FEATURES_KEY: {each: {} for each in find_kind(answered.kind).features},
                tfma.PREDICTIONS_KEY: {},
            },
            include_default_inputs=False,
        )
        combiner = _Measure(base, answered)

        def take(values: dict[Any, Any], base: Any = base, key: Any = key) -> dict[Any, float]:
            return {key: values[base][key.name]}

        made += [
            metric_types.MetricComputation([base], [wanted], combiner),
            metric_types.DerivedMetricComputation([key], take),
        ]
    return made


class _Measure(beam.CombineFn):
    """Collects the answers for images and what these are labelled with, and measures them."""

    def __init__(self, key: metric_types.MetricKey, learned: Learned) -> None:
        self._key, self._learned = key, learned

    def create_accumulator(self) -> list[Any]:
        return []

    def add_input(self, found: list[Any], element: metric_types.StandardMetricInputs) -> list[Any]:
        """Adds the answer for a record, [C], and its target, as `TargetKind.decode` returns it."""
        features = {
            name: np.ravel(values).tolist()
            for name, values in (element.get_features() or {}).items()
            if values is not None
        }
        answers = element.get_predictions(self._key.model_name or None)
        found.append((np.ravel(answers), find_kind(self._learned.kind).decode(features)))
        return found

    def merge_accumulators(self, several: Iterable[list[Any]]) -> list[Any]:
        return [each for found in several for each in found]

    def extract_output(self, found: list[Any]) -> dict[metric_types.MetricKey, dict[str, float]]:
        """Returns the score and the lowest recall of a slice; NaN where nothing is measured."""
        kind, scoring = find_kind(self._learned.kind), find_scoring(self._learned.kind)
        answers, said = zip(*found, strict=True)
        values = pa.array(said, kind.column)
        if kind.names is not None:
            # Records have texts; a model has numbers, in the order of its own names.
            values = kind.number(values, pa.array(self._learned.names))[1]
        size = len(self._learned.names)
        truth = kind.make_array(values.to_pylist(), size)
        try:
            metrics = scoring.measure(np.stack(answers), truth, self._learned)
        except DataError:  # no image of a slice is annotated
            return {self._key: {scoring.scalars[0]: math.nan, RECALL_KEY: math.nan}}
        recalls = [each for each in scoring.list_recalls(metrics).values() if each is not None]
        lowest = min(recalls, default=math.nan)
        return {self._key: {scoring.scalars[0]: scoring.get_score(metrics), RECALL_KEY: lowest}}
