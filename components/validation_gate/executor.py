"""Executor of ValidationGate."""

from __future__ import annotations

from typing import Any

from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils

from darkroom import storage
from darkroom.steps.places import name_uris
from darkroom.validation.gate import check_blessed
from darkroom.validation.report.dataset_report import DIFF_TITLE, DatasetReport
from darkroom.validation.report.write import REPORT_HTML, REPORT_JSON

_OUTPUTS = {DIFF_TITLE: "output diff_html of DatasetDiff"}


class Executor(base_executor.BaseExecutor):
    """Stops the run unless the report is blessed."""

    def Do(
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Reads the verdict.

        Args:
            input_dict: `report`: a ValidationReport.
            output_dict: Empty.
            exec_properties: Empty.

        Raises:
            GateError: The report is not blessed.
        """
        uri = artifact_utils.get_single_uri(input_dict["report"])
        text = storage.read_bytes(storage.join(uri, REPORT_JSON)).decode()
        report, page = DatasetReport.from_json(text), storage.join(uri, REPORT_HTML)
        if storage.is_remote(name_uris(page)):  # the folder of a pod that is gone, or a bucket
            page = _OUTPUTS.get(report.title, "output validation_html of ImageValidator")
        check_blessed(report, page)
