"""ImageValidator: judges a dataset and writes the report."""

from __future__ import annotations

from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import channel, channel_utils, standard_artifacts
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from darkroom.components.artifacts import ImageManifest, RecordIndex, Rejects, ValidationReport
from darkroom.components.image_validator import executor
from darkroom.components.system_artifacts import HTML
from darkroom.options.validation import ValidationOptions

INDEX_KEY = executor.INDEX_KEY
REJECTS_KEY = executor.REJECTS_KEY
MANIFEST_KEY = executor.MANIFEST_KEY
ANOMALIES_KEY = executor.ANOMALIES_KEY
EXAMPLES_KEY = executor.EXAMPLES_KEY
OPTIONS_KEY = executor.OPTIONS_KEY
REPORT_KEY = executor.REPORT_KEY
HTML_KEY = executor.HTML_KEY


class ImageValidatorSpec(ComponentSpec):
    """Interface of ImageValidator."""

    PARAMETERS = {OPTIONS_KEY: ExecutionParameter(type=str)}
    INPUTS = {
        INDEX_KEY: ChannelParameter(type=RecordIndex),
        REJECTS_KEY: ChannelParameter(type=Rejects),
        MANIFEST_KEY: ChannelParameter(type=ImageManifest),
        ANOMALIES_KEY: ChannelParameter(type=standard_artifacts.ExampleAnomalies),
        EXAMPLES_KEY: ChannelParameter(type=standard_artifacts.Examples, optional=True),
    }
    OUTPUTS = {
        REPORT_KEY: ChannelParameter(type=ValidationReport),
        HTML_KEY: ChannelParameter(type=HTML),
    }


class ImageValidator(base_component.BaseComponent):
    """Judges rejects, leakage, labels, duplicates, classes and TFDV's anomalies; never fails.

    TFX deletes the outputs of a component that raises. So this component writes the report, and
    another one, ValidationGate, stops the run.

    Component `outputs` contains:
      - `report`: `ValidationReport`, with the custom property `blessed`.
      - `validation_html`: `system.HTML`, its page where Kubeflow's and Vertex's UI find it.
    """

    SPEC_CLASS = ImageValidatorSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    def __init__(
        self,
        index: channel.BaseChannel,
        rejects: channel.BaseChannel,
        manifest: channel.BaseChannel,
        anomalies: channel.BaseChannel,
        options: ValidationOptions | None = None,
        examples: channel.BaseChannel | None = None,
    ) -> None:
        """Makes the component.

        Args:
            index: `RecordIndex` of ImageToTFRecord.
            rejects: `Rejects` of ImageToTFRecord.
            manifest: `ImageManifest` of ManifestGen.
            anomalies: `ExampleAnomalies` of ExampleValidator.
            options: Policies and limits; `ValidationOptions()` when None.
            examples: `Examples` of ImageToTFRecord, for the pictures of the report; Kubeflow
                downloads all records for them. None: they are made of the source images, for which
                a store has five seconds.
        """
        pictured = {} if examples is None else {EXAMPLES_KEY: examples}
        super().__init__(
            ImageValidatorSpec(
                **{
                    INDEX_KEY: index,
                    REJECTS_KEY: rejects,
                    MANIFEST_KEY: manifest,
                    ANOMALIES_KEY: anomalies,
                    **pictured,
                    OPTIONS_KEY: (options or ValidationOptions()).to_json(),
                    REPORT_KEY: channel_utils.as_channel([ValidationReport()]),
                    HTML_KEY: channel_utils.as_channel([HTML()]),
                }
            )
        )
