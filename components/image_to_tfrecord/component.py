"""ImageToTFRecord: from a manifest to Examples, in the place of an ExampleGen."""

from __future__ import annotations

from typing import Any

from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.types import channel
from tfx.types.component_spec import ComponentSpec, ExecutionParameter
from tfx.types.standard_artifacts import Examples

from darkroom.components.artifacts import ImageManifest, RecordIndex, Rejects
from darkroom.components.component_spec import fill_spec, list_channels
from darkroom.components.image_to_tfrecord import executor
from darkroom.options.checks import check_flag
from darkroom.options.conversion import ConversionFields, RecordOptions, UpdateOptions
from darkroom.options.fields import spell_out


class ImageToTFRecordSpec(ComponentSpec):
    """Interface of ImageToTFRecord."""

    PARAMETERS = {
        "options": ExecutionParameter(type=str),
        "recheck": ExecutionParameter(type=float, optional=True),
        "embed": ExecutionParameter(type=int, optional=True),
    }
    INPUTS = list_channels(manifest=ImageManifest, manifest_rejects=Rejects)
    OUTPUTS = list_channels(examples=Examples, index=RecordIndex, rejects=Rejects)


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
        given: dict[str, Any] = {
            "options": records.to_json(),
            "recheck": float(recheck) or None,
            "embed": int(embed) or None,
        }
        super().__init__(fill_spec(ImageToTFRecordSpec, manifest, manifest_rejects, **given))
