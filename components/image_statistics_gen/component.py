"""ImageStatisticsGen: TFDV's statistics from the record index."""

from __future__ import annotations

from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.types import channel
from tfx.types.component_spec import ComponentSpec
from tfx.types.standard_artifacts import ExampleStatistics

from darkroom.components.artifacts import RecordIndex
from darkroom.components.component_spec import fill_spec, list_channels
from darkroom.components.image_statistics_gen import executor


class ImageStatisticsGenSpec(ComponentSpec):
    """Interface of ImageStatisticsGen."""

    PARAMETERS: dict[str, object] = {}
    INPUTS = list_channels(index=RecordIndex)
    OUTPUTS = list_channels(statistics=ExampleStatistics)


class ImageStatisticsGen(base_beam_component.BaseBeamComponent):
    """Computes statistics of every split without reading an image.

    TFX's StatisticsGen also works on the same Examples, but it reads all image bytes, and counts
    them as text.

    Component `outputs` contains:
      - `statistics`: `standard_artifacts.ExampleStatistics`, for SchemaGen and ExampleValidator.
    """

    SPEC_CLASS = ImageStatisticsGenSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    def __init__(self, index: channel.BaseChannel) -> None:
        """Makes the component.

        Args:
            index: `RecordIndex` of ImageToTFRecord.
        """
        super().__init__(fill_spec(ImageStatisticsGenSpec, index))
