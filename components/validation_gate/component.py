"""ValidationGate: stops the run when the report is not blessed."""

from __future__ import annotations

from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import channel
from tfx.types.component_spec import ComponentSpec

from darkroom.components.artifacts import ValidationReport
from darkroom.components.component_spec import list_channels
from darkroom.components.validation_gate import executor


class ValidationGateSpec(ComponentSpec):
    """Interface of ValidationGate."""

    PARAMETERS: dict[str, object] = {}
    INPUTS = list_channels(report=ValidationReport)
    OUTPUTS: dict[str, object] = {}


class ValidationGate(base_component.BaseComponent):
    """Passes or stops the run.

    It has no output. Call `trainer.add_upstream_node(gate)` to make another component wait for it.
    """

    SPEC_CLASS = ValidationGateSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    def __init__(self, report: channel.BaseChannel) -> None:
        """Makes the component.

        Args:
            report: `ValidationReport` of ImageValidator or DatasetDiff.
        """
        super().__init__(ValidationGateSpec(report=report))
