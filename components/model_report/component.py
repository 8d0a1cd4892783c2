"""ModelReport: what Kubeflow's and Vertex's UI can show of an evaluation."""

from __future__ import annotations

from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import channel, channel_utils, standard_artifacts
from tfx.types.component_spec import ChannelParameter, ComponentSpec

from darkroom.components.artifacts import ValidationReport
from darkroom.components.model_report import executor
from darkroom.components.system_artifacts import ClassificationMetrics, Metrics

EVALUATION_KEY = executor.EVALUATION_KEY
REPORT_KEY = executor.REPORT_KEY
METRICS_KEY = executor.METRICS_KEY
CLASSIFICATION_KEY = executor.CLASSIFICATION_KEY


class ModelReportSpec(ComponentSpec):
    """Interface of ModelReport."""

    PARAMETERS: dict[str, object] = {}
    INPUTS = {
        EVALUATION_KEY: ChannelParameter(type=standard_artifacts.ModelEvaluation),
        REPORT_KEY: ChannelParameter(type=ValidationReport),
    }
    OUTPUTS = {
        METRICS_KEY: ChannelParameter(type=Metrics),
        CLASSIFICATION_KEY: ChannelParameter(type=ClassificationMetrics),
    }


class ModelReport(base_component.BaseComponent):
    """Hands the metrics of an evaluation to the UI.

    Component `outputs` contains:
      - `metrics`: `system.Metrics`, what TFMA measured over the whole split, and the numbers of
        records.
      - `classification_metrics`: `system.ClassificationMetrics`, the confusion matrix.
    """

    SPEC_CLASS = ModelReportSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    def __init__(self, evaluation: channel.BaseChannel, report: channel.BaseChannel) -> None:
        """Makes the component.

        Args:
            evaluation: `ModelEvaluation` of Evaluator, with a confusion matrix for the matrix.
            report: `ValidationReport` of ImageValidator, which knows the labels by their numbers.
        """
        super().__init__(
            ModelReportSpec(
                **{
                    EVALUATION_KEY: evaluation,
                    REPORT_KEY: report,
                    METRICS_KEY: channel_utils.as_channel([Metrics()]),
                    CLASSIFICATION_KEY: channel_utils.as_channel([ClassificationMetrics()]),
                }
            )
        )
