"""Stops a run whose dataset did not pass its checks."""

from __future__ import annotations

from darkroom import storage
from darkroom.errors import UsageError, convert_error
from darkroom.steps import webhook
from darkroom.steps.places import name_uris
from darkroom.steps.step import Artifact, Given, Made, Paths, Step

_PAGE_HINT = "\nThe report: output {}_page of the task that made it."


def run(paths: Paths, options: Given) -> Made:
    """Reads the verdict of a report, and tells the webhook of one that stops the run."""
    from darkroom.runtime import progress
    from darkroom.validation.gate import GateError
    from darkroom.validation.report.dataset_report import DIFF_TITLE, DatasetReport, format_table
    from darkroom.validation.report.write import REPORT_JSON

    path = storage.join(paths["report"], REPORT_JSON)
    if not storage.exists(path):
        raise UsageError(
            f"The input report has no {REPORT_JSON}.",
            "Give the output validation_report of validate_dataset, or diff_report of "
            "diff_datasets.",
        )
    report = DatasetReport.from_json(storage.read_bytes(path).decode())
    if report.blessed:
        return Made(report)
    name = "diff" if report.title == DIFF_TITLE else "validation"
    stop = GateError(format_table(report), _PAGE_HINT.format(name))
    if webhook.find_url(options):
        try:
            webhook.tell(options, "STOPPED", name_uris(stop.message))
        except Exception as error:  # noqa: BLE001  nothing may take the place of the findings
            progress.note(f"Warning: {convert_error(error).message}")
    return Made(report, error=stop)


STEP = Step(
    "validation_gate",
    "Stops a run whose dataset did not pass its checks, and tells a webhook why if it has one. It "
    "has no outputs, so the report is kept.",
    run,
    webhook.WEBHOOK_PARAMETERS,
    inputs=(
        Artifact(
            "report",
            "Artifact",
            "The report of validate_dataset or diff_datasets with fail=False.",
        ),
    ),
)
