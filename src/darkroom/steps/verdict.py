"""What the steps that judge a dataset make of the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from darkroom import storage
from darkroom.dataset.layout import REJECTS_FILE
from darkroom.options.validation import FAIL
from darkroom.steps.step import Made, Paths
from darkroom.validation.gate import GateError
from darkroom.validation.judge import JudgedFiles
from darkroom.validation.report.dataset_report import DatasetReport, format_verdict
from darkroom.validation.report.findings import Anomaly
from darkroom.validation.report.pictures import RecordFolders
from darkroom.validation.report.write import REPORT_HTML
from darkroom.validation.validate import ValidationResult

_KEEP_HINT = (
    "\nTo keep the report as an artifact: fail=False, and validation_gate with the output "
    "{}_report."
)


def make_verdict(
    result: ValidationResult,
    paths: Paths,
    name: str,
    numbers: Mapping[str, float] | None = None,
) -> Made:
    """Returns what a step made that wrote a report.

    Args:
        result: The verdict.
        paths: The paths of the step.
        name: The first word of its outputs.
        numbers: Numbers by name.
    """
    report, page, error, files = f"{name}_report", f"{name}_page", None, {}
    try:
        result.check()
    except GateError as found:
        error = found
    if page in paths:
        files = {page: storage.read_bytes(storage.join(paths[report], REPORT_HTML))}
        error = error and GateError(error.message, _KEEP_HINT.format(name))
    facts = {
        "passed": int(result.blessed),
        "verdict": result.verdict,
        "findings": len(result.findings),
        "stopping_findings": sum(each.policy == FAIL for each in result.findings),
    }
    said = format_verdict(result.report)
    return Made(result, numbers or {}, {report: facts}, files, error=error, verdict=said)


def find_parts(paths: Paths, anomalies: Iterable[Anomaly] = ()) -> JudgedFiles:
    """Returns the files of a dataset that TFX keeps in several artifacts.

    Args:
        paths: The paths of the artifacts; `examples` may be absent.
        anomalies: The findings of TFDV's example validation.
    """
    index, examples = paths["index"], paths.get("examples")
    records = RecordFolders(examples, index) if examples else None
    rejects = storage.join(paths["rejects"], REJECTS_FILE)
    return JudgedFiles(index, rejects, paths["manifest"], tuple(anomalies), records)


def count_report_rows(report: DatasetReport) -> dict[str, float]:
    """Returns the numbers of rows and records of a dataset."""
    return {
        "rows": report.rows,
        "records": report.written,
        "rejected": report.num_rejected,
        "deduplicated": report.deduplicated,
        **{f"{split}_records": count for split, count in report.splits.items()},
    }
