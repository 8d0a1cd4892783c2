"""ModelReport: the view of a model in the UI of Kubeflow and Vertex."""

from __future__ import annotations

from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import channel
from tfx.types.component_spec import ComponentSpec
from tfx.types.standard_artifacts import Examples, Model, ModelEvaluation, ModelRun

from darkroom.components.artifacts import ModelPage, ValidationReport
from darkroom.components.component_spec import fill_spec, list_channels
from darkroom.components.model_report import executor
from darkroom.components.system_artifacts import HTML, ClassificationMetrics, Metrics
from darkroom.errors import UsageError


class ModelReportSpec(ComponentSpec):
    """Interface of ModelReport."""

    PARAMETERS: dict[str, object] = {}
    INPUTS = {
        **list_channels(evaluation=ModelEvaluation, report=ValidationReport),
        **list_channels(optional=True, model=Model, model_run=ModelRun, examples=Examples),
    }
    OUTPUTS = {
        **list_channels(metrics=Metrics, classification_metrics=ClassificationMetrics),
        **list_channels(optional=True, page=ModelPage, model_html=HTML),
    }


class ModelReport(base_component.BaseComponent):
    """Hands the metrics of an evaluation to the UI; with model and examples also the model's page.

    For the page, the test split goes through the model once, or the eval split if there is no test
    split.

    Component `outputs` contains:
      - `metrics`: `system.Metrics`, the numbers of Evaluator and the page, by split, as
        `eval_accuracy`, or by TFMA's names if Evaluator scored several splits; the numbers of
        records; and `passed`, 1 or 0: whether the model passed Evaluator's bounds.
      - `classification_metrics`: `system.ClassificationMetrics`, the confusion matrix: of the same
        scoring as the page, without a page of the split that Evaluator scored. With a page, and
        for two labels, also the ROC curve of the second.
      - `page`: `ModelPage`, how good the model is; with model and examples.
      - `model_html`: `system.HTML`, its page where Kubeflow's and Vertex's UI find it.
    """

    SPEC_CLASS = ModelReportSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    def __init__(
        self,
        evaluation: channel.BaseChannel,
        report: channel.BaseChannel,
        *,
        model: channel.BaseChannel | None = None,
        model_run: channel.BaseChannel | None = None,
        examples: channel.BaseChannel | None = None,
    ) -> None:
        """Makes the component.

        Args:
            evaluation: `ModelEvaluation` of Evaluator, with a confusion matrix for the matrix.
            report: `ValidationReport` of ImageValidator, which knows the labels by their numbers.
            model: `Model` of Trainer, exported by darkroom, for the page.
            model_run: `ModelRun` of Trainer, for the curves and the recipe on the page.
            examples: `Examples` of ImageToTFRecord, for the page.

        Raises:
            UsageError: There is one of `model` and `examples` without the other.
        """
        if (model is None) != (examples is None):
            raise UsageError(
                "ModelReport has one of model and examples.",
                "Its page needs both; without both there is no page.",
            )
        without = () if model is not None else ("page", "model_html")
        inputs = evaluation, report, model, model_run, examples
        super().__init__(fill_spec(ModelReportSpec, *inputs, without=without))
