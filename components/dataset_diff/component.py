"""DatasetDiff: what an update changed."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import channel, standard_artifacts
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from darkroom.components.artifacts import ImageManifest, RecordIndex, Rejects, ValidationReport
from darkroom.components.component_spec import fill_spec
from darkroom.components.dataset_diff import executor
from darkroom.components.image_validator import executor as judge
from darkroom.components.system_artifacts import HTML
from darkroom.options.diff import DiffFields, DiffOptions
from darkroom.options.fields import spell_out


class DatasetDiffSpec(ComponentSpec):
    """Interface of DatasetDiff."""

    PARAMETERS = {judge.OPTIONS_KEY: ExecutionParameter(type=str)}
    INPUTS = {
        judge.INDEX_KEY: ChannelParameter(type=RecordIndex),
        judge.REJECTS_KEY: ChannelParameter(type=Rejects),
        judge.MANIFEST_KEY: ChannelParameter(type=ImageManifest),
        judge.EXAMPLES_KEY: ChannelParameter(type=standard_artifacts.Examples, optional=True),
    }
    OUTPUTS = {
        judge.REPORT_KEY: ChannelParameter(type=ValidationReport),
        executor.HTML_KEY: ChannelParameter(type=HTML),
    }


class DatasetDiff(base_component.BaseComponent):
    """Compares a dataset with the one that it updates, by their indexes; never fails.

    That is the base that ManifestGen was given. Without one there is nothing to compare with, and
    the dataset passes. ValidationGate stops the run when a policy says so: `ValidationGate(
    diff.outputs["report"]).with_id("DiffGate")`.

    Component `outputs` contains:
      - `report`: `ValidationReport`, with the custom property `blessed` and the number of images
        that were `added`, `removed`, `moved`, `relabelled`, `redrawn` or `encoded`.
      - `diff_html`: `system.HTML`, its page where Kubeflow's and Vertex's UI find it.
    """

    SPEC_CLASS = DatasetDiffSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    @spell_out(DiffFields)
    def __init__(
        self,
        index: channel.BaseChannel,
        rejects: channel.BaseChannel,
        manifest: channel.BaseChannel,
        examples: channel.BaseChannel | None = None,
        **options: Any,
    ) -> None:
        """Makes the component.

        Args:
            index: `RecordIndex` of ImageToTFRecord.
            rejects: `Rejects` of ImageToTFRecord.
            manifest: `ImageManifest` of ManifestGen.
            examples: `Examples` of ImageToTFRecord, for the pictures of the report, as in
                ImageValidator.
            options: The fields of `DiffFields`.

        Raises:
            UsageError: An option is wrong.
        """
        values = {
            judge.INDEX_KEY: index,
            judge.REJECTS_KEY: rejects,
            judge.MANIFEST_KEY: manifest,
            judge.EXAMPLES_KEY: examples,
            judge.OPTIONS_KEY: json.dumps(asdict(DiffOptions(**options))),
        }
        super().__init__(fill_spec(DatasetDiffSpec, values))
