"""ImageValidator: judges a dataset and writes the report."""

from __future__ import annotations

from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import channel
from tfx.types.component_spec import ComponentSpec, ExecutionParameter
from tfx.types.standard_artifacts import ExampleAnomalies, Examples

from darkroom.components.artifacts import ImageManifest, RecordIndex, Rejects, ValidationReport
from darkroom.components.component_spec import fill_spec, list_channels
from darkroom.components.image_validator import executor
from darkroom.components.system_artifacts import HTML
from darkroom.errors import UsageError
from darkroom.options.validation import ValidationOptions


class ImageValidatorSpec(ComponentSpec):
    """Interface of ImageValidator."""

    PARAMETERS = {"options": ExecutionParameter(type=str)}
    INPUTS = {
        **list_channels(
            index=RecordIndex, rejects=Rejects, manifest=ImageManifest, anomalies=ExampleAnomalies
        ),
        **list_channels(optional=True, examples=Examples),
    }
    OUTPUTS = {
        **list_channels(report=ValidationReport, validation_html=HTML),
        **list_channels(optional=True, gallery_html=HTML),
    }


class ImageValidator(base_component.BaseComponent):
    """Judges rejects, leakage, labels, duplicates, classes and TFDV's anomalies; never fails.

    TFX deletes the outputs of a component that raises. So this component writes the report, and
    another one, ValidationGate, stops the run.

    Component `outputs` contains:
      - `report`: `ValidationReport`, with the custom property `blessed`.
      - `validation_html`: `system.HTML`, its page where Kubeflow's and Vertex's UI find it.
      - `gallery_html`: `system.HTML`, findings and images to decide about; with the option
        `gallery`.
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

        Raises:
            UsageError: The options ask for a gallery, and there are no examples.
        """
        has_gallery = options is not None and options.gallery
        if has_gallery and examples is None:
            raise UsageError(
                "The gallery has images of the records, and ImageValidator has none.",
                "Give it examples, or take the option gallery away.",
            )
        without = () if has_gallery else ("gallery_html",)
        given = (options or ValidationOptions()).to_json()
        inputs = index, rejects, manifest, anomalies, examples
        super().__init__(fill_spec(ImageValidatorSpec, *inputs, without=without, options=given))
