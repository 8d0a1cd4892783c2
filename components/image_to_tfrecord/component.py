"""ImageToTFRecord: from a manifest to Examples, in the place of an ExampleGen."""

from __future__ import annotations

from typing import Any

from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.types import channel, standard_artifacts
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from darkroom.components.artifacts import ImageManifest, RecordIndex, Rejects
from darkroom.components.component_spec import fill_spec
from darkroom.components.image_to_tfrecord import executor
from darkroom.options.checks import check_flag
from darkroom.options.conversion import ConversionFields, RecordOptions, UpdateOptions
from darkroom.options.fields import spell_out


class ImageToTFRecordSpec(ComponentSpec):
    """Interface of ImageToTFRecord."""

    PARAMETERS = {
        executor.OPTIONS_KEY: ExecutionParameter(type=str),
        executor.RECHECK_KEY: ExecutionParameter(type=float, optional=True),
        executor.EMBED_KEY: ExecutionParameter(type=int, optional=True),
    }
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
    many rows were rejected. Unchanged images of the dataset that ManifestGen compared the list with
    are taken from its records, and shards without a change get a second name.

    Component `outputs` contains:
      - `examples`: `standard_artifacts.Examples`, uncompressed TFRecords unless asked otherwise.
      - `index`: `RecordIndex`, one row per record; the features of images, if asked for.
      - `rejects`: `Rejects` of the manifest and of the conversion.
    """

    SPEC_CLASS = ImageToTFRecordSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    @spell_out(ConversionFields)
    def __init__(
        self,
        manifest: channel.BaseChannel,
        manifest_rejects: channel.BaseChannel,
        *,
        recheck: float = 0.0,
        embed: bool = False,
        **options: Any,
    ) -> None:
        """Makes the component.

        Args:
            manifest: `ImageManifest` of ManifestGen.
            manifest_rejects: `Rejects` of ManifestGen.
            recheck: Share of the unchanged images and of the finished shards that are read, to see
                whether they have other bytes.
            embed: Also compute features of the images, into the index; see `darkroom.embed`.
            options: The fields of `ConversionFields`.

        Raises:
            UsageError: An option is wrong.
        """
        records = RecordOptions(**options)
        UpdateOptions(recheck=recheck)
        check_flag("embed", embed)
        values = {
            executor.MANIFEST_KEY: manifest,
            executor.MANIFEST_REJECTS_KEY: manifest_rejects,
            executor.OPTIONS_KEY: records.to_json(),
            executor.RECHECK_KEY: float(recheck) or None,
            executor.EMBED_KEY: int(embed) or None,
        }
        super().__init__(fill_spec(ImageToTFRecordSpec, values))
