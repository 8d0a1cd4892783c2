"""ManifestGen: from a list of images to an ordered manifest."""

from __future__ import annotations

from typing import Any

from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import channel_utils
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from darkroom.components.artifacts import ImageManifest, Rejects
from darkroom.components.manifest_gen import driver, executor
from darkroom.components.state_driver import TAKEN_BY_EACH_RUN
from darkroom.options.fields import spell_out
from darkroom.options.manifest import ManifestOptions
from darkroom.options.source import SourceFields


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

    @spell_out(SourceFields)
    def __init__(
        self, source: str, *, source_fingerprint: str | None = None, **options: Any
    ) -> None:
        """Makes the component.

        Args:
            source: Path of a CSV, JSONL or Parquet file, a pattern of such files, or a folder of
                images.
            source_fingerprint: State of the source, which caches compare. With None each run takes
                it: it reads the list and asks for the size and version of each image. A text is
                used as it is: with "" the cache does not notice a changed file at the same path.
            options: The fields of `SourceFields`, each in any form that it takes in Python. Each
                run reads the file `label_map` and looks up `allowed_roots`.

        Raises:
            UsageError: An option is wrong.
        """
        manifest = ManifestOptions.parse(**options)
        if source_fingerprint is None:
            source_fingerprint = TAKEN_BY_EACH_RUN
        values = {
            executor.SOURCE_KEY: source,
            executor.OPTIONS_KEY: manifest.to_json(),
            executor.FINGERPRINT_KEY: source_fingerprint,
            executor.MANIFEST_KEY: channel_utils.as_channel([ImageManifest()]),
            executor.REJECTS_KEY: channel_utils.as_channel([Rejects()]),
        }
        super().__init__(ManifestGenSpec(**values))
