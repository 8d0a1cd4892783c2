"""The result of a run on this machine, as text for people and as JSON for programs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import asdict, dataclass
from typing import Any

from darkroom.dataset.index import read_index
from darkroom.dataset.read_as import list_read_as
from darkroom.errors import DataError
from darkroom.options.validation import FAIL, VALIDATION_POLICIES, WARN
from darkroom.runtime.result import format_rows
from darkroom.runtime.text import format_count, make_visible
from darkroom.training.state.history import Exported, format_exported
from darkroom.validation.report.dataset_report import DatasetReport, format_scope, format_verdict
from darkroom.validation.report.findings import Finding, format_finding_row

_SHOWN_ROWS = 2
# Type names of artifacts, which this module knows without TFX.
REPORT_ARTIFACT, INDEX_ARTIFACT, PAGE_ARTIFACT = (
    "darkroom.ValidationReport",
    "darkroom.RecordIndex",
    "darkroom.ModelPage",
)
EXAMPLES_ARTIFACT, MODEL_ARTIFACT, PUSHED_ARTIFACT = "Examples", "Model", "PushedModel"


@dataclass(frozen=True)
class RunSummary:
    """The result of a run.

    Attributes:
        root: Folder of the run.
        report: The verdict on the data; None when the run ended before it.
        report_path: Path of the report for people.
        epochs: The epoch of the model's weights, from 1, and the number of epochs; None when the
            run ended before the training, or the training did not write it.
        score: Accuracy, or what decides for another kind of target, on the eval split; None when
            the run ended before it.
        min_accuracy: Score below which a model is not pushed; None when it is not known.
        pushed: Folder of the pushed model; None when no model was pushed.
        examples: Folder of the dataset.
        changed: Number of images that were encoded again, by kind of change.
        reused: Nodes with outputs from an earlier run.
        log_path: File with the output of TFX and TensorFlow.
        seconds: Wall time of the run.
        model: Folder of the trained model; None when the run ended before it.
        page: Path of the page of the model, `model.html`; None if none was written.
        failures: Why the model did not pass its evaluation, as sentences.
        makes: Types of the artifacts that the pipeline makes when nothing stops it.
        is_command: Whether a command of darkroom ran it, which has flags for its options.
        gallery: Path of the gallery; None if none was written.
        was_there: Whether an earlier run pushed the model to that folder.
        score_name: The name of the score.
    """

    root: str
    report: DatasetReport | None
    report_path: str | None
    epochs: Exported | None
    score: float | None
    min_accuracy: float | None
    pushed: str | None
    examples: str | None
    changed: Mapping[str, int]
    reused: tuple[str, ...]
    log_path: str
    seconds: float
    model: str | None = None
    page: str | None = None
    gallery: str | None = None
    failures: tuple[str, ...] = ()
    makes: Set[str] = frozenset(
        (REPORT_ARTIFACT, MODEL_ARTIFACT, EXAMPLES_ARTIFACT, PUSHED_ARTIFACT)
    )
    is_command: bool = True
    was_there: bool = False
    score_name: str = "accuracy"

    @property
    def exit_code(self) -> int:
        """0 when a model was pushed, 1 when data or model did not pass."""
        return 0 if self.pushed else 1

    @property
    def mild_findings(self) -> list[Finding]:
        """Findings that are set to warn, but stop a run by default."""
        findings = self.report.findings if self.report else ()
        return [
            f for f in findings if f.policy == WARN and VALIDATION_POLICIES.get(f.check) == FAIL
        ]

    @property
    def other_failures(self) -> list[str]:
        """Why the model did not pass, besides the bound that is shown with its score."""
        is_shown = self.min_accuracy is not None
        # How `components.model_report.evaluation` says that it is too low.
        low = f"the {self.score_name} is "
        return [f for f in self.failures if not (is_shown and f.startswith(low))]

    def find_error(self) -> DataError | None:
        """Returns why the command fails; None when a model was pushed."""
        if not self.exit_code:
            return None
        hint = f"Report: {self.report_path}" if self.report_path else f"Log: {self.log_path}"
        if self.report and not self.report.blessed:
            return DataError(f"The data did not pass. {format_verdict(self.report)}", hint)
        if others := self.other_failures:
            return DataError(f"The model did not pass: {'; '.join(others)}.", hint)
        reached = f": its {self.score_name} is {self.score:.4f}" if self.score is not None else ""
        return DataError(f"The model did not pass{reached}{_format_needed(self)}.", hint)

    def to_dict(self) -> dict[str, Any]:
        """Returns the summary as values that JSON knows; with `error` when the command fails."""
        report, error = self.report, self.find_error()
        return {
            "read_as": asdict(report.read_as) if report and report.read_as else None,
            "rows": report.rows if report else None,
            "written": report.written if report else None,
            "rejected": dict(report.rejected) if report else None,
            "deduplicated": report.deduplicated if report else None,
            "blessed": report.blessed if report else None,
            "findings": [asdict(finding) for finding in report.findings] if report else [],
            "best_epoch": self.epochs.best if self.epochs else None,
            "exported_epoch": self.epochs.epoch if self.epochs else None,
            "epochs": self.epochs.epochs if self.epochs else None,
            "score": self.score,
            "accuracy": self.score if self.score_name == "accuracy" else None,
            "failures": list(self.failures),
            "pushed": self.pushed,
            "page": self.page,
            "report": self.report_path,
            "gallery": self.gallery,
            "examples": self.examples,
            "changed": dict(self.changed),
            "reused": list(self.reused),
            "log": self.log_path,
            "root": self.root,
            "seconds": round(self.seconds, 1),
            **({"error": error.to_dict()} if error else {}),
        }


def count_changes(folder: str | None) -> dict[str, int]:
    """Counts the images that were encoded again, by kind of change, in the folder of an index."""
    if folder is None:
        return {}
    changes = read_index(folder, ["changes"])["changes"].to_pylist()
    return dict(Counter(code for each in changes if each for code in each.split(",")))


def format_summary(summary: RunSummary, *, with_findings: bool = True) -> str:
    """Returns the summary as text for a terminal.

    Args:
        summary: The summary.
        with_findings: Whether it lists the findings; else it has the verdict alone.
    """
    lines = [""]
    if report := summary.report:
        gate = f"Gate       {format_verdict(report)} {format_scope(report)}".rstrip()
        lines += [*_format_counts(summary, report), "", gate]
        if with_findings:
            lines += [*_format_findings(report), *_format_mild_findings(summary)]
        lines.append("")
    lines += _format_model(summary)
    if REPORT_ARTIFACT in summary.makes:
        lines.append(f"Report     {summary.report_path or 'none: the run ended before it'}")
    if summary.gallery:
        lines.append(f"Gallery    {summary.gallery}")
    if EXAMPLES_ARTIFACT in summary.makes:
        lines.append(f"Records    {summary.examples or 'none'}")
    lines.append(f"Log        {summary.log_path}")
    again = f", {format_count(len(summary.reused), 'step')} reused" if summary.reused else ""
    lines.append(f"Time       {summary.seconds:.1f} s{again}")
    return "\n".join(lines)


def _format_counts(summary: RunSummary, report: DatasetReport) -> list[str]:
    """Returns how the source was read, and how many of its rows became records or did not."""
    splits = ", ".join(f"{split} {count:,}" for split, count in report.splits.items())
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in report.rejected.items())
    lines = [
        *(format_rows(list_read_as(report.read_as)) if report.read_as else []),
        f"Rows in    {report.rows:,}",
        f"Written    {report.written:,}  ({splits})",
        f"Rejected   {report.num_rejected:,}" + (f"  ({reasons})" if reasons else ""),
        # Rows that a list excludes count as deduplicated.
        f"Duplicates {report.deduplicated - report.excluded:,}",
    ]
    if report.excluded:
        lines.append(f"Excluded   {report.excluded:,}")
    if summary.changed:
        changes = ", ".join(f"{code} {count:,}" for code, count in summary.changed.items())
        lines.append(f"Fixed      {sum(summary.changed.values()):,}  ({changes})")
    return lines


def _format_mild_findings(summary: RunSummary) -> list[str]:
    mild = [finding.check for finding in summary.mild_findings]
    if not mild:
        return []
    lines = [f"  {' and '.join(mild)} would have stopped this run, but they are set to warn."]
    if summary.is_command:
        flags = " ".join(f"--policy {check}=fail" for check in mild)
        lines.append(f"  They stop a run by default; to stop this one, add {flags}")
    return lines


def _format_findings(report: DatasetReport) -> list[str]:
    lines = []
    for finding in report.findings:
        lines.append(
            f"  {finding.policy.upper():<5}{finding.check}: {make_visible(finding.message)}"
        )
        shown = finding.rows[:_SHOWN_ROWS]
        for row in shown:
            # Each side of a pair gets its own line: together they are wider than a terminal.
            lines += [
                f"       {side}" for side in re.split(" {2}[=~] {2}", format_finding_row(row))
            ]
        if finding.count > len(shown) > 0:
            lines.append(f"       and {finding.count - len(shown):,} more")
        if finding.policy == FAIL and finding.hint:
            lines += [f"       {make_visible(line)}" for line in finding.hint.splitlines()]
    return lines


def _format_model(summary: RunSummary) -> list[str]:
    """Returns the epoch, the score, the page and the place of the model, or why it has none.

    A user's pipeline that makes no model has none of these lines.
    """
    if MODEL_ARTIFACT not in summary.makes:
        return []
    if summary.model is None:
        return ["Model      none: the run was stopped before training"]
    lines = [f"Epoch      {format_exported(summary.epochs)}"] if summary.epochs else []
    if summary.score is not None:
        name = f"{summary.score_name[:1].upper()}{summary.score_name[1:]}"
        said = f"{summary.score:.4f} on the eval split{_format_needed(summary)}"
        # As wide as the other names of a summary.
        is_long = len(name) > 10
        lines.append(f"{'Score':<10} {said}, {name}" if is_long else f"{name:<10} {said}")
    if summary.page:
        lines.append(f"Page       {summary.page}")
    if PUSHED_ARTIFACT not in summary.makes:
        return [*lines, f"Model      {summary.model}"]
    if summary.pushed:
        before = "  (it was there already)" if summary.was_there else ""
        return [*lines, f"Pushed to  {summary.pushed}{before}"]
    why = [f"  {each}" for each in summary.other_failures]
    return [*lines, "Pushed to  nowhere: the model did not pass its evaluation", *why]


def _format_needed(summary: RunSummary) -> str:
    if summary.min_accuracy is None:
        return ""
    needed = summary.min_accuracy
    return f" (needed {needed:.2f})" if needed else " (no minimum is set)"
