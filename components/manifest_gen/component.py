"""ManifestGen: from a list of images to an ordered manifest."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import channel_utils
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from darkroom import storage
from darkroom.components.artifacts import ImageManifest, Rejects
from darkroom.components.manifest_gen import driver, executor
from darkroom.dataset.schema import Schema
from darkroom.dataset.splits import SplitRatios
from darkroom.options.manifest import DEFAULT_ENCODING, ManifestOptions, parse_encoding

SOURCE_KEY = executor.SOURCE_KEY
OPTIONS_KEY = executor.OPTIONS_KEY
FINGERPRINT_KEY = executor.FINGERPRINT_KEY
MANIFEST_KEY = executor.MANIFEST_KEY
REJECTS_KEY = executor.REJECTS_KEY


class ManifestGenSpec(ComponentSpec):
    """Interface of ManifestGen."""

    PARAMETERS = {
        SOURCE_KEY: ExecutionParameter(type=str),
        OPTIONS_KEY: ExecutionParameter(type=str),
        FINGERPRINT_KEY: ExecutionParameter(type=str),
    }
    INPUTS: dict[str, ChannelParameter] = {}
    OUTPUTS = {
        MANIFEST_KEY: ChannelParameter(type=ImageManifest),
        REJECTS_KEY: ChannelParameter(type=Rejects),
    }


class ManifestGen(base_component.BaseComponent):
    """Reads a list of images, assigns splits, orders the rows, and lists what it refused.

    TFX's cache compares properties, which do not change when a file behind a path does. So each
    run takes the fingerprint of the source, its images, the list of exclusions and the label map
    before it looks into the cache. Where they cannot be seen, the node does its work, and the log
    says why.

    Component `outputs` contains:
      - `manifest`: `ImageManifest`, with the label map.
      - `rejects`: `Rejects`.
    """

    SPEC_CLASS = ManifestGenSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)
    DRIVER_CLASS = driver.Driver

    def __init__(
        self,
        source: str,
        *,
        schema: Schema | Mapping[str, Any] | None = None,
        labels: Sequence[str] | str | os.PathLike[str] | None = None,
        split_ratios: SplitRatios | None = None,
        seed: int = 0,
        encoding: str = DEFAULT_ENCODING,
        allowed_roots: Sequence[str] = (),
        exclude: str | None = None,
        source_fingerprint: str | None = None,
    ) -> None:
        """Makes the component.

        Args:
            source: Path of a CSV, JSONL or Parquet file, a pattern of such files, or a folder of
                images.
            schema: Kind of each column by name; told from their names when None.
            labels: The label map in order, or the path of a file with one label a line, which each
                run reads; the labels sorted as text when None.
            split_ratios: Shares of rows that declare no split.
            seed: Seed of order and splits.
            encoding: How a CSV or JSONL file is encoded.
            allowed_roots: Folders below which all images must lie, wherever links lead; looked
                up where the component runs.
            exclude: Path of a list of images to leave out; see `darkroom.manifest.exclusions`.
            source_fingerprint: What the cache compares instead of the source. When None each run
                takes it, which reads the list and asks for the size and version of each image.
                A text is used as it is, and nothing is looked at: with "" a changed file at the
                same path goes unnoticed.

        Raises:
            UsageError: An option is wrong.
        """
        label_map: str | None = None
        if isinstance(labels, str | os.PathLike):
            labels, label_map = None, str(labels)
        options = ManifestOptions(
            schema=None if schema is None else Schema.parse(schema),
            labels=None if labels is None else tuple(labels),
            split_ratios=split_ratios or SplitRatios(),
            seed=seed,
            encoding=parse_encoding(encoding),
            allowed_roots=tuple(map(storage.absolute, allowed_roots)),
            exclude=exclude,
            label_map=label_map,
        )
        super().__init__(
            ManifestGenSpec(
                **{
                    SOURCE_KEY: source,
                    OPTIONS_KEY: options.to_json(),
                    FINGERPRINT_KEY: (
                        executor.TAKEN_BY_EACH_RUN
                        if source_fingerprint is None
                        else source_fingerprint
                    ),
                    MANIFEST_KEY: channel_utils.as_channel([ImageManifest()]),
                    REJECTS_KEY: channel_utils.as_channel([Rejects()]),
                }
            )
        )
