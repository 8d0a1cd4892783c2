"""The gate: it stops the steps after the validation when the report is not blessed."""

from __future__ import annotations

from darkroom.errors import DataError
from darkroom.validation.report.dataset_report import DatasetReport, format_table

__all__ = ["GateError"]

_NO_PAGE = "\nThe whole report as a page: the same command with --report FOLDER (report_dir)."


class GateError(DataError):
    """The data did not pass; the message is a table of the findings."""


def check_blessed(report: DatasetReport, page: str | None = None) -> None:
    """Passes a report that is blessed.

    Args:
        report: The report.
        page: Path of its page for people; None when it was not written.

    Raises:
        GateError: The report is not blessed.
    """
    if not report.blessed:
        raise GateError(format_table(report), f"\nThe whole report: {page}" if page else _NO_PAGE)
