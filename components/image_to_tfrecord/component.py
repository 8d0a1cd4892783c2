"""ImageToTFRecord: from a manifest to Examples, in the place of an ExampleGen."""

from __future__ import annotations

from collections.abc import Mapping

from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.types import channel, channel_utils, standard_artifacts
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from darkroom.components.artifacts import ImageManifest, RecordIndex, Rejects
from darkroom.components.image_to_tfrecord import executor
from darkroom.options.conversion import DEFAULT_STORE_PATIENCE_SECONDS, RecordOptions
from darkroom.options.image import (
    AUTO_COPIES,
    CHECK_FULL,
    DEFAULT_JPEG_QUALITY,
    KEEP_ENCODING,
)


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

    def __init__(
        self,
        manifest: channel.BaseChannel,
        manifest_rejects: channel.BaseChannel,
        *,
        image_check: str = CHECK_FULL,
        resize_short_side: int | None = None,
        encoding: str = KEEP_ENCODING,
        jpeg_quality: int = DEFAULT_JPEG_QUALITY,
        find_decoded_copies: str = AUTO_COPIES,
        compression: str = "none",
        num_shards: int | Mapping[str, int] | None = None,
        store_patience_seconds: float = DEFAULT_STORE_PATIENCE_SECONDS,
    ) -> None:
        """Makes the component.

        Args:
            manifest: `ImageManifest` of ManifestGen.
            manifest_rejects: `Rejects` of ManifestGen.
            image_check: Decode every image completely before it is written, or read its header
                only. `full` or `header`.
            resize_short_side: Reduce larger images to this length of their short side, in pixels.
            encoding: Store images as files (keep) or as decoded pixels (raw).
            jpeg_quality: Quality of JPEGs that were reduced. Below 95 with 4:2:0.
            find_decoded_copies: Decode JPEGs a second time, so that PNGs that were made of them are
                found. `always` or `never`; `auto` does so if the source names other files.
            compression: Compression of the record files. `none` or `gzip`.
            num_shards: Number of shards per split. A number for each split, or numbers by split;
                None chooses from the size of the data.
            store_patience_seconds: How long reads and writes are tried again while a store does not
                answer.

        Raises:
            UsageError: An option is wrong.
        """
        options = RecordOptions(
            image_check=image_check,
            resize_short_side=resize_short_side,
            encoding=encoding,
            jpeg_quality=jpeg_quality,
            find_decoded_copies=find_decoded_copies,
            compression=compression,
            num_shards=num_shards,
            store_patience_seconds=store_patience_seconds,
        )
        examples = channel_utils.as_channel([standard_artifacts.Examples()])
        super().__init__(
            ImageToTFRecordSpec(
                **{
                    executor.MANIFEST_KEY: manifest,
                    executor.MANIFEST_REJECTS_KEY: manifest_rejects,
                    executor.OPTIONS_KEY: options.to_json(),
                    executor.EXAMPLES_KEY: examples,
                    executor.INDEX_KEY: channel_utils.as_channel([RecordIndex()]),
                    executor.REJECTS_KEY: channel_utils.as_channel([Rejects()]),
                }
            )
        )
