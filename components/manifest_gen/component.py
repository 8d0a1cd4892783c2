"""ManifestGen: from a list of images to an ordered manifest."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import channel_utils
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from darkroom.components.artifacts import ImageManifest, Rejects
from darkroom.components.manifest_gen import driver, executor
from darkroom.components.state_driver import TAKEN_BY_EACH_RUN
from darkroom.dataset.schema import Schema
from darkroom.dataset.splits import SplitRatios
from darkroom.options.manifest import ManifestOptions
from darkroom.options.source import (
    AUTO_LABEL,
    DEFAULT_SOURCE_ENCODING,
    DEFAULT_SPLIT_RATIOS,
    JOIN_SUBFOLDERS,
    REFUSE_MERGE,
)
from darkroom.targets.form import UNANNOTATED


class ManifestGenSpec(ComponentSpec):
    """Interface of ManifestGen."""

    PARAMETERS = {
        executor.SOURCE_KEY: ExecutionParameter(type=str),
        executor.OPTIONS_KEY: ExecutionParameter(type=str),
        executor.FINGERPRINT_KEY: ExecutionParameter(type=str),
    }
    INPUTS: dict[str, ChannelParameter] = {}
    OUTPUTS = {
        executor.MANIFEST_KEY: ChannelParameter(type=ImageManifest),
        executor.REJECTS_KEY: ChannelParameter(type=Rejects),
    }


class ManifestGen(base_component.BaseComponent):
    """Reads a list of images, assigns splits, orders the rows, and lists the rejected ones.

    TFX's cache compares properties, which do not change when the file at a path does. So each run
    takes the fingerprint of the source, its images, the list of exclusions and the label map
    before it looks into the cache. If they cannot be read, the node runs, and the log says why.

    Component `outputs` contains:
      - `manifest`: `ImageManifest`, with the label map.
      - `list_rejects`: `Rejects`, the rows of the list that cannot become records.
    """

    SPEC_CLASS = ManifestGenSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)
    DRIVER_CLASS = driver.Driver

    def __init__(
        self,
        source: str,
        *,
        columns: Schema | Mapping[str, Any] | str | None = None,
        label_map: Sequence[str] | str | os.PathLike[str] | None = None,
        split_ratios: SplitRatios | str = DEFAULT_SPLIT_RATIOS,
        seed: int = 0,
        source_encoding: str = DEFAULT_SOURCE_ENCODING,
        label_kind: str = AUTO_LABEL,
        merge_rows: str = REFUSE_MERGE,
        subfolders: str = JOIN_SUBFOLDERS,
        label_separator: str | None = None,
        label_columns: tuple[str, ...] = (),
        target_columns: tuple[str, ...] = (),
        empty_labels: str = UNANNOTATED,
        allowed_roots: Sequence[str | os.PathLike[str]] = (),
        exclude: str | os.PathLike[str] | None = None,
        source_fingerprint: str | None = None,
    ) -> None:
        """Makes the component.

        Args:
            source: Path of a CSV, JSONL or Parquet file, a pattern of such files, or a folder of
                images.
            columns: Kind of each column by name, as in {"path": "image", "age": "integer"}. None
                infers them from the names.
            label_map: Labels in the order of their numbers: a file with one label per line.
                Each run reads the file. Or the labels themselves; None sorts them as text.
            split_ratios: Percentages of train, eval and test for rows that do not name a split.
            seed: Seed for everything random: splits, order, weights, augmentation.
            source_encoding: Text encoding of a CSV or JSONL file.
            label_kind: Meaning of a text in the column of labels.
            merge_rows: How to treat an image whose rows differ in further columns.
            subfolders: How to treat images in folders below that of a label, as
                cat/persian/1.jpg.
            label_separator: Text between the labels in a cell, as ;: an image then has any number
                of labels.
            label_columns: Columns that have 1 where an image has the label of their name, else 0.
            target_columns: Columns with numbers to predict, instead of labels.
            empty_labels: Meaning of an empty cell where an image has any number of labels, or
                numbers.
            allowed_roots: Folders that may contain images; images elsewhere are rejected. They are
                looked up where the component runs.
            exclude: List of images to leave out: the file of `darkroom duplicates`, or keys or
                URIs.
            source_fingerprint: State of the source, which caches compare. With None each run takes
                it: it reads the list and asks for the size and version of each image. A text is
                used as it is: with "" the cache does not notice a changed file at the same path.

        Raises:
            UsageError: An option is wrong.
        """
        options = ManifestOptions.parse(
            columns=columns,
            label_map=label_map,
            split_ratios=split_ratios,
            seed=seed,
            source_encoding=source_encoding,
            label_kind=label_kind,
            merge_rows=merge_rows,
            subfolders=subfolders,
            label_separator=label_separator,
            label_columns=label_columns,
            target_columns=target_columns,
            empty_labels=empty_labels,
            allowed_roots=allowed_roots,
            exclude=exclude,
        )
        if source_fingerprint is None:
            source_fingerprint = TAKEN_BY_EACH_RUN
        values = {
            executor.SOURCE_KEY: source,
            executor.OPTIONS_KEY: options.to_json(),
            executor.FINGERPRINT_KEY: source_fingerprint,
            executor.MANIFEST_KEY: channel_utils.as_channel([ImageManifest()]),
            executor.REJECTS_KEY: channel_utils.as_channel([Rejects()]),
        }
        super().__init__(ManifestGenSpec(**values))
