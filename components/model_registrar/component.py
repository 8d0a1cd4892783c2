"""ModelRegistrar: puts a pushed model into a model registry.

It is another node than Pusher: it can be retried alone, and needs the page.
"""

from __future__ import annotations

from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import channel
from tfx.types.component_spec import ComponentSpec, ExecutionParameter
from tfx.types.standard_artifacts import PushedModel

from darkroom.components.artifacts import ModelPage
from darkroom.components.component_spec import list_channels
from darkroom.components.model_registrar import executor


class ModelRegistrarSpec(ComponentSpec):
    """Interface of ModelRegistrar."""

    PARAMETERS = {name: ExecutionParameter(type=str) for name in ("registry", "model_name", "run")}
    INPUTS = list_channels(pushed_model=PushedModel, page=ModelPage)
    OUTPUTS: dict[str, object] = {}


class ModelRegistrar(base_component.BaseComponent):
    """Registers a pushed model with Kubeflow or Vertex; it has no output.

    The version names the dataset, the scores, the page and the run.
    """

    SPEC_CLASS = ModelRegistrarSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    def __init__(
        self,
        pushed_model: channel.BaseChannel,
        page: channel.BaseChannel,
        *,
        registry: str,
        model_name: str,
        run: str = "",
    ) -> None:
        """Makes the component.

        Args:
            pushed_model: `PushedModel` of Pusher.
            page: `ModelPage` of ModelReport.
            registry: Address of the registry: https://HOST, or vertex://PROJECT/REGION.
            model_name: Name of the model in the registry.
            run: The run, as people find it.
        """
        values = {"registry": registry, "model_name": model_name, "run": run}
        super().__init__(ModelRegistrarSpec(pushed_model=pushed_model, page=page, **values))
