"""How the pipeline evaluates a model: TFMA's metrics, slices and thresholds."""

from __future__ import annotations

import tensorflow_model_analysis as tfma

# Not every version has this message under its own name.
from tensorflow_model_analysis.proto.config_pb2 import PerSliceMetricThreshold
from tfx.dsl.components.common.resolver import Resolver
from tfx.dsl.input_resolution.strategies.latest_blessed_model_strategy import (
    LatestBlessedModelStrategy,
)
from tfx.types import standard_artifacts
from tfx.types.channel import BaseChannel, Channel

from darkroom.components import Evaluator
from darkroom.dataset import example
from darkroom.dataset.splits import EVAL
from darkroom.pipelines.config import PipelineConfig

ACCURACY = "SparseCategoricalAccuracy"
CONFUSIONS = "MultiClassConfusionMatrixAtThresholds"
RESOLVER = "latest_blessed_model"
_WHOLE = tfma.SlicingSpec()
_PER_CLASS = tfma.SlicingSpec(feature_keys=[example.LABEL_TEXT])


def create_evaluation(
    config: PipelineConfig, examples: BaseChannel, model: BaseChannel
) -> tuple[list[Resolver], Evaluator]:
    """Returns the node that judges a model, and before it the finder of the model to compare with.

    Args:
        config: The configuration. With the place of a model to compare with there is no Resolver.
        examples: `Examples` of ImageToTFRecord.
        model: `Model` of Trainer.
    """
    needs_resolver = config.compares_models and not config.baseline_model
    resolver = Resolver(
        strategy_class=LatestBlessedModelStrategy,
        model=Channel(type=standard_artifacts.Model),
        model_blessing=Channel(type=standard_artifacts.ModelBlessing),
    ).with_id(RESOLVER)
    resolvers = [resolver] if needs_resolver else []
    evaluator = Evaluator(
        examples,
        model,
        eval_config=make_eval_config(config),
        baseline_model=resolvers[0].outputs["model"] if resolvers else None,
        baseline=config.baseline_model or "",
        example_splits=[EVAL],
    )
    return resolvers, evaluator


def make_eval_config(config: PipelineConfig) -> tfma.EvalConfig:
    """Returns the metrics: accuracy and confusions, of all records and of each class.

    In the slice of a class, the accuracy is its recall.
    """
    accuracy = tfma.MetricConfig(
        class_name=ACCURACY,
        # A threshold that names no slice would hold for each of them.
        per_slice_thresholds=[
            _make_threshold(_WHOLE, config.min_accuracy, config.max_accuracy_drop),
            _make_threshold(_PER_CLASS, config.min_recall, config.max_recall_drop),
        ],
    )
    # Threshold 0: the likeliest class counts, even if the model is unsure.
    confusions = tfma.MetricConfig(class_name=CONFUSIONS, config='{"thresholds": [0.0]}')
    columns = dict.fromkeys(config.slice_columns)
    slices = [tfma.SlicingSpec(feature_keys=[column]) for column in columns]
    return tfma.EvalConfig(
        model_specs=[
            tfma.ModelSpec(
                # The signature for serialised examples, so that no other code parses them.
                signature_name="serving_examples",
                model_type="tf_generic",
                label_key=example.LABEL_NUMBER,
                prediction_key="probabilities",
            )
        ],
        slicing_specs=[_WHOLE, _PER_CLASS, *slices],
        metrics_specs=[
            tfma.MetricsSpec(
                metrics=[tfma.MetricConfig(class_name="ExampleCount"), accuracy, confusions]
            )
        ],
    )


def _make_threshold(
    spec: tfma.SlicingSpec, least: float, max_drop: float | None
) -> PerSliceMetricThreshold:
    """Returns the bounds of the accuracy in a slice.

    Args:
        spec: The slice.
        least: The least accuracy, 0 to 1. Also 0 is a bound: a run may set another one in its place
            (`components/parameters.py`), and without a bound TFX blesses nothing.
        max_drop: How much lower than that of the baseline it may be, as a difference; None to
            compare with no model.
    """
    threshold = tfma.MetricThreshold(
        value_threshold=tfma.GenericValueThreshold(lower_bound={"value": least})
    )
    if max_drop is not None:
        change = tfma.GenericChangeThreshold(
            direction=tfma.MetricDirection.HIGHER_IS_BETTER, absolute={"value": -max_drop}
        )
        threshold.change_threshold.CopyFrom(change)
    return PerSliceMetricThreshold(slicing_specs=[spec], threshold=threshold)
