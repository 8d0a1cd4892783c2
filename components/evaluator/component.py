"""Evaluator: TFX's own, with an executor that finds the model to compare with by its place."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow_model_analysis as tfma
from tfx.components.evaluator import component as tfx_component
from tfx.dsl.components.base import executor_spec
from tfx.types import channel

from darkroom.components.evaluator import executor


class Evaluator(tfx_component.Evaluator):
    """Measures a model, and blesses it when it passes its thresholds.

    The model to compare with is an artifact, as a Resolver finds it, or a place. It is left out
    when it has other labels: numbers of labels would then mean something else.

    Component `outputs` contains:
      - `evaluation`: `standard_artifacts.ModelEvaluation`, the numbers of TFMA. Its custom property
        `split` says on which split, if it was one.
      - `blessing`: `standard_artifacts.ModelBlessing`. When the model did not pass, its custom
        property `reasons` says why.
    """

    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    def __init__(
        self,
        examples: channel.BaseChannel,
        model: channel.BaseChannel,
        *,
        eval_config: tfma.EvalConfig,
        baseline_model: channel.BaseChannel | None = None,
        baseline: str = "",
        example_splits: Sequence[str] = ("eval",),
        schema: channel.BaseChannel | None = None,
    ) -> None:
        """Makes the component.

        Args:
            examples: `Examples` of ImageToTFRecord.
            model: `Model` of Trainer.
            eval_config: The metrics, the slices and the thresholds.
            baseline_model: `Model` to compare with, as a Resolver finds it.
            baseline: Place of the model to compare with, for services without Resolvers: a
                SavedModel, or a folder of pushed ones, of which the newest counts. With it,
                `baseline_model` does not count.
            example_splits: The splits to measure on.
            schema: `Schema` for reading the examples.
        """
        super().__init__(
            examples=examples,
            model=model,
            baseline_model=baseline_model,
            eval_config=eval_config,
            example_splits=list(example_splits),
            schema=schema,
        )
        # TFX's constructor makes its own spec, which has no such property.
        self.spec.exec_properties[executor.BASELINE_KEY] = baseline
