"""ImageToTFRecord: from a manifest to Examples; plays the part of an ExampleGen."""

from __future__ import annotations

from collections.abc import Mapping

from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.types import channel, channel_utils, standard_artifacts
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from darkroom.components.artifacts import ImageManifest, RecordIndex, Rejects
from darkroom.components.image_to_tfrecord import executor
from darkroom.options.conversion import ConversionOptions, parse_shard_counts
from darkroom.options.image import CHECKS_FULL, DEFAULT_JPEG_QUALITY, KEEP_ENCODING, ImageOptions

MANIFEST_KEY = executor.MANIFEST_KEY
MANIFEST_REJECTS_KEY = executor.MANIFEST_REJECTS_KEY
OPTIONS_KEY = executor.OPTIONS_KEY
EXAMPLES_KEY = executor.EXAMPLES_KEY
INDEX_KEY = executor.INDEX_KEY
REJECTS_KEY = executor.REJECTS_KEY


class ImageToTFRecordSpec(ComponentSpec):
    """Interface of ImageToTFRecord."""

    PARAMETERS = {OPTIONS_KEY: ExecutionParameter(type=str)}
    INPUTS = {
        MANIFEST_KEY: ChannelParameter(type=ImageManifest),
        MANIFEST_REJECTS_KEY: ChannelParameter(type=Rejects),
    }
    OUTPUTS = {
        EXAMPLES_KEY: ChannelParameter(type=standard_artifacts.Examples),
        INDEX_KEY: ChannelParameter(type=RecordIndex),
        REJECTS_KEY: ChannelParameter(type=Rejects),
    }


class ImageToTFRecord(base_beam_component.BaseBeamComponent):
    """Reads, checks and writes the images of a manifest.

    A damaged image costs its own row, which is listed in `rejects`; whether too many were refused
    is for ImageValidator to judge.

    Component `outputs` contains:
      - `examples`: `standard_artifacts.Examples`, uncompressed TFRecords unless asked otherwise.
      - `index`: `RecordIndex`, one row a record.
      - `rejects`: `Rejects` of the manifest and of the conversion.
    """

    SPEC_CLASS = ImageToTFRecordSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    def __init__(
        self,
        manifest: channel.BaseChannel,
        manifest_rejects: channel.BaseChannel,
        *,
        checks: str = CHECKS_FULL,
        resize_short_side: int | None = None,
        encoding: str = KEEP_ENCODING,
        jpeg_quality: int = DEFAULT_JPEG_QUALITY,
        compression: str = "none",
        num_shards: int | Mapping[str, int] | None = None,
    ) -> None:
        """Makes the component.

        Args:
            manifest: `ImageManifest` of ManifestGen.
            manifest_rejects: `Rejects` of ManifestGen.
            checks: `full` decodes every image before it is written, `header` looks at its start.
            resize_short_side: Short side in pixels to which larger images are reduced.
            encoding: Images are stored as their files (`keep`) or as pixels (`raw`).
            jpeg_quality: Quality, 1 to 100, of JPEGs that were reduced; below 95 with 4:2:0.
            compression: `none` or `gzip`.
            num_shards: Shards of each split, or by split; from the bytes when None.

        Raises:
            UsageError: An option is wrong.
        """
        options = ConversionOptions(
            image=ImageOptions(checks, resize_short_side, encoding, jpeg_quality),
            compression=compression,
            num_shards=parse_shard_counts(num_shards),
        )
        super().__init__(
            ImageToTFRecordSpec(
                **{
                    MANIFEST_KEY: manifest,
                    MANIFEST_REJECTS_KEY: manifest_rejects,
                    OPTIONS_KEY: options.to_json(),
                    EXAMPLES_KEY: channel_utils.as_channel([standard_artifacts.Examples()]),
                    INDEX_KEY: channel_utils.as_channel([RecordIndex()]),
                    REJECTS_KEY: channel_utils.as_channel([Rejects()]),
                }
            )
        )
