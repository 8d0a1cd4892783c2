"""Executor of DatasetDiff."""

from __future__ import annotations

import json
from typing import Any

from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils

from darkroom import storage
from darkroom.components.image_validator.executor import (
    INDEX_KEY,
    MANIFEST_KEY,
    OPTIONS_KEY,
    REJECTS_KEY,
    REPORT_KEY,
    find_record_folders,
    write_verdict,
)
from darkroom.dataset.layout import REJECTS_FILE
from darkroom.dataset.manifest import read_manifest
from darkroom.options.diff import DiffOptions
from darkroom.validation.diff import IMAGE_CHANGES, compare_datasets, find_files
from darkroom.validation.judge import JudgedFiles

HTML_KEY = "diff_html"


class Executor(base_executor.BaseExecutor):
    """Compares a dataset with the one that it updates."""

    def Do(
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Writes the report and marks it as blessed or not.

        Args:
            input_dict: `index`: a RecordIndex; `rejects`: Rejects; `manifest`: an ImageManifest;
                if given, `examples`: Examples.
            output_dict: `report`: a ValidationReport; `diff_html`: HTML.
            exec_properties: `options`: `DiffOptions` as JSON.

        Raises:
            StorageError: Another dataset has replaced the one that was updated.
        """
        folder = artifact_utils.get_single_uri(input_dict[MANIFEST_KEY])
        rejects = artifact_utils.get_single_uri(input_dict[REJECTS_KEY])
        after = JudgedFiles(
            artifact_utils.get_single_uri(input_dict[INDEX_KEY]),
            storage.join(rejects, REJECTS_FILE),
            folder,
        )
        base = read_manifest(folder).find_base()
        options = DiffOptions(**json.loads(exec_properties[OPTIONS_KEY]))
        verdict = compare_datasets(find_files(base) if base else None, after, options)
        write_verdict(
            verdict, find_record_folders(input_dict, after.index_dir), output_dict, HTML_KEY
        )
        report = artifact_utils.get_single_instance(output_dict[REPORT_KEY])
        for name, count in verdict.count_findings(IMAGE_CHANGES).items():
            report.set_int_custom_property(name, count)
