"""DatasetDiff: what an update changed."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import channel
from tfx.types.component_spec import ComponentSpec, ExecutionParameter
from tfx.types.standard_artifacts import Examples

from darkroom.components.artifacts import ImageManifest, RecordIndex, Rejects, ValidationReport
from darkroom.components.component_spec import fill_spec, list_channels
from darkroom.components.dataset_diff import executor
from darkroom.components.system_artifacts import HTML
from darkroom.options.diff import DiffFields, DiffOptions
from darkroom.options.fields import spell_out


class DatasetDiffSpec(ComponentSpec):
    """Interface of DatasetDiff."""

    PARAMETERS = {"options": ExecutionParameter(type=str)}
    INPUTS = {
        **list_channels(index=RecordIndex, rejects=Rejects, manifest=ImageManifest),
        **list_channels(optional=True, examples=Examples),
    }
    OUTPUTS = list_channels(report=ValidationReport, diff_html=HTML)


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
        given = json.dumps(asdict(DiffOptions(**options)))
        inputs = index, rejects, manifest, examples
        super().__init__(fill_spec(DatasetDiffSpec, *inputs, options=given))
