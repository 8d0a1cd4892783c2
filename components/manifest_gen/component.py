"""ManifestGen: from a list of images to an ordered manifest."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import channel
from tfx.types.component_spec import ComponentSpec, ExecutionParameter
from tfx.types.standard_artifacts import Examples

from darkroom.components.artifacts import ImageManifest, Rejects
from darkroom.components.component_spec import fill_spec, list_channels
from darkroom.components.file_state import SOURCE_STATE
from darkroom.components.manifest_gen import executor
from darkroom.components.state_driver import TAKEN_BY_EACH_RUN, SourceDriver
from darkroom.options.conversion import UpdateOptions
from darkroom.options.fields import spell_out
from darkroom.options.manifest import ManifestOptions
from darkroom.options.source import SourceFields


class ManifestGenSpec(ComponentSpec):
    """Interface of ManifestGen."""

    PARAMETERS = {
        "source": ExecutionParameter(type=str),
        "options": ExecutionParameter(type=str),
        SOURCE_STATE.key: ExecutionParameter(type=str),
        "base": ExecutionParameter(type=str, optional=True),
        "updates": ExecutionParameter(type=str, optional=True),
    }
    INPUTS = list_channels(optional=True, base_examples=Examples)
    OUTPUTS = list_channels(manifest=ImageManifest, list_rejects=Rejects)


class ManifestGen(base_component.BaseComponent):
    """Reads a list of images, assigns splits, orders the rows, and lists the rejected ones.

    TFX's cache compares properties, which do not change when the file at a path does. So each run
    takes the fingerprint of the source, its images, the list of exclusions, the label map and the
    dataset in `base` before it looks into the cache. If they cannot be read, the node runs, and the
    log says why.

    With `base_examples` or `base` it compares the list with a dataset, of which ImageToTFRecord
    then takes all images that are unchanged. In the first run there may be none.

    Component `outputs` contains:
      - `manifest`: `ImageManifest`, with the label map.
      - `list_rejects`: `Rejects`, the rows of the list that cannot become records.
    """

    SPEC_CLASS = ManifestGenSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)
    DRIVER_CLASS = SourceDriver

    @spell_out(SourceFields)
    def __init__(
        self,
        source: str,
        *,
        base_examples: channel.BaseChannel | None = None,
        base: str = "",
        append: bool = False,
        allow_removals: bool = False,
        merge_spans: bool = False,
        source_fingerprint: str | None = None,
        **options: Any,
    ) -> None:
        """Makes the component.

        Args:
            source: Path of a CSV, JSONL or Parquet file, a pattern of such files, or a folder of
                images.
            base_examples: `Examples` of ImageToTFRecord to update, as a Resolver finds them.
            base: Place of the dataset to update, for services without Resolvers. With it,
                `base_examples` does not count.
            append: Whether the list has only new and corrected images: all others of the dataset
                stay.
            allow_removals: Whether more than a tenth of the images of the dataset may be missing in
                the list.
            merge_spans: Whether all images are put into one span.
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
        has_base = bool(base) or base_examples is not None
        updates = UpdateOptions(
            update=has_base,
            append=append,
            allow_removals=allow_removals,
            merge_spans=merge_spans,
        )
        updating = json.dumps(asdict(updates), sort_keys=True)
        given: dict[str, Any] = {
            "source": source,
            "options": manifest.to_json(),
            SOURCE_STATE.key: source_fingerprint,
            "updates": updating if has_base else None,
            "base": base or None,
        }
        super().__init__(fill_spec(ManifestGenSpec, base_examples, **given))
