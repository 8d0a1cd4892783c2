"""Executor of ImageStatisticsGen."""

from __future__ import annotations

from typing import Any

from tfx.dsl.components.base import base_beam_executor
from tfx.types import artifact_utils

from darkroom import storage
from darkroom.conversion.beam.run import run_beam_pipeline
from darkroom.conversion.output.attempts import new_token
from darkroom.dataset.index import find_index_files
from darkroom.runtime.plain_beam import apply_transform
from darkroom.validation.statistics import WriteStatistics, list_splits_with_records

# The name that SchemaGen and ExampleValidator look for.
STATISTICS_FILE = "FeatureStats.pb"


class Executor(base_beam_executor.BaseBeamExecutor):
    """Computes TFDV's statistics with Beam."""

    def Do(
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Writes the statistics of every split that has records.

        Args:
            input_dict: `index`: a RecordIndex.
            output_dict: `statistics`: ExampleStatistics.
            exec_properties: Empty.
        """
        statistics = artifact_utils.get_single_instance(output_dict["statistics"])
        files = find_index_files(artifact_utils.get_single_uri(input_dict["index"]))
        splits = list_splits_with_records(files)
        statistics.split_names = artifact_utils.encode_split_names(splits)
        pipeline = self._make_beam_pipeline()
        for split in splits:
            folder = artifact_utils.get_split_uri([statistics], split)
            storage.make_folder(folder)
            write = WriteStatistics(files, split, storage.join(folder, STATISTICS_FILE))
            apply_transform(pipeline, f"WriteStatistics[{split}]", write)
        run_beam_pipeline(pipeline, f"darkroom-{new_token()}")
