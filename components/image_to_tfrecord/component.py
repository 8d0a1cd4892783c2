"""ImageToTFRecord: from a manifest to Examples, in the place of an ExampleGen."""

from __future__ import annotations

from typing import Any

from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.types import channel, channel_utils, standard_artifacts
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from darkroom.components.artifacts import ImageManifest, RecordIndex, Rejects
from darkroom.components.image_to_tfrecord import executor
from darkroom.options.conversion import ConversionFields, RecordOptions
from darkroom.options.fields import spell_out


class ImageToTFRecordSpec(ComponentSpec):
    """Interface of ImageToTFRecord."""

    PARAMETERS = {executor.OPTIONS_KEY: ExecutionParameter(type=str)}
    INPUTS = {
        executor.MANIFEST_KEY: ChannelParameter(type=ImageManifest),
        executor.MANIFEST_REJECTS_KEY: ChannelParameter(type=Rejects),
    }
    OUTPUTS = {
        executor.EXAMPLES_KEY: ChannelParameter(type=standard_artifacts.Examples),
        executor.INDEX_KEY: ChannelParameter(type=RecordIndex),
        executor.REJECTS_KEY: ChannelParameter(type=Rejects),
    }


class ImageToTFRecord(base_beam_component.BaseBeamComponent):
    """Reads, checks and writes the images of a manifest.

    A damaged image rejects its own row, which `rejects` lists. ImageValidator judges whether too
    many rows were rejected.

    Component `outputs` contains:
      - `examples`: `standard_artifacts.Examples`, uncompressed TFRecords unless asked otherwise.
      - `index`: `RecordIndex`, one row per record.
      - `rejects`: `Rejects` of the manifest and of the conversion.
    """

    SPEC_CLASS = ImageToTFRecordSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    @spell_out(ConversionFields)
    def __init__(
        self,
        manifest: channel.BaseChannel,
        manifest_rejects: channel.BaseChannel,
        **options: Any,
    ) -> None:
        """Makes the component.

        Args:
            manifest: `ImageManifest` of ManifestGen.
            manifest_rejects: `Rejects` of ManifestGen.
            options: The fields of `ConversionFields`.

        Raises:
            UsageError: An option is wrong.
        """
        records = RecordOptions(**options)
        examples = channel_utils.as_channel([standard_artifacts.Examples()])
        super().__init__(
            ImageToTFRecordSpec(
                **{
                    executor.MANIFEST_KEY: manifest,
                    executor.MANIFEST_REJECTS_KEY: manifest_rejects,
                    executor.OPTIONS_KEY: records.to_json(),
                    executor.EXAMPLES_KEY: examples,
                    executor.INDEX_KEY: channel_utils.as_channel([RecordIndex()]),
                    executor.REJECTS_KEY: channel_utils.as_channel([Rejects()]),
                }
            )
        )
