"""The report on a dataset: its counts, the findings of the checks, and its text and JSON forms."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field

from darkroom.dataset.labels import format_unannotated
from darkroom.dataset.objects import ObjectCounts
from darkroom.dataset.read_as import ReadAs, format_doubts
from darkroom.errors import DataError
from darkroom.options.validation import FAIL, OFF, WARN
from darkroom.runtime.class_table import describe_classes
from darkroom.runtime.json_values import build_value
from darkroom.runtime.result import ResultRow as ResultRow
from darkroom.runtime.table import Table
from darkroom.runtime.text import format_count, make_visible
from darkroom.targets.checks import list_result_checks
from darkroom.validation.report.findings import Finding, FindingRow, format_finding_row, format_more

__all__ = ["DatasetCounts", "DatasetReport", "Histogram"]

REPORT_FORMAT_VERSION = 1
# Rows that a terminal or a notebook shows.
_MAX_SUMMARY = 20
# What the report on changes is about.
DIFF_TITLE = "Changes"
_EQUAL = ("leakage", "label_conflicts", "duplicates")
NEAR_CHECKS = ("near_leakage", "near_conflicts", "near_duplicates")


@dataclass(frozen=True)
class Histogram:
    """How often the values of a column of the index occur, in bins of equal width.

    Attributes:
        low: Lower edge of the first bin.
        high: Upper edge of the last bin, and part of it.
        counts: Records in each bin.
    """

    low: float
    high: float
    counts: tuple[int, ...]


@dataclass(frozen=True)
class DatasetCounts:
    """How many rows, records and rejects a dataset has.

    Attributes:
        rows: Rows of the source.
        written: Records written.
        deduplicated: Rows dropped because they repeat another row.
        rejected: Rejected rows by reason, most frequent first.
        labels: The label map, in order.
        splits: Records by split.
        classes: Records by split, then by label; "" means no label.
        numbers: The names of the numbers, where images are labelled with numbers.
        summary: What the kind of target says of the records beside, as rows of a table.
        unannotated: Records by split that are not annotated, where others may be.
        objects: Numbers of the objects, as the commit has them; None where there are none.
        lost: Objects that were rejected alone, by reason, most frequent first.
    """

    rows: int
    written: int
    deduplicated: int
    rejected: Mapping[str, int]
    labels: tuple[str, ...]
    splits: Mapping[str, int]
    classes: Mapping[str, Mapping[str, int]]
    numbers: tuple[str, ...] = field(default=(), kw_only=True)
    summary: tuple[FindingRow, ...] = field(default=(), kw_only=True)
    unannotated: Mapping[str, int] = field(default_factory=dict, kw_only=True)
    objects: ObjectCounts | None = field(default=None, kw_only=True)
    lost: Mapping[str, int] = field(default_factory=dict, kw_only=True)

    @property
    def num_rejected(self) -> int:
        """Rejected rows, whatever the reason."""
        return sum(self.rejected.values())


@dataclass(frozen=True)
class DatasetReport(DatasetCounts):
    """The verdict of validation about a dataset, and its reasons.

    Attributes:
        policies: The policy of each check.
        findings: The findings; those that stop a run come first.
        rejects: The first ten rejected rows: row, uri, split, label, reason, detail; then the first
            ten rows with an object that was rejected alone.
        num_header_only: Records with an image that was not decoded before it was written.
        num_unlike: Records with an image that has no perceptual hash.
        histograms: By column of the index: height and width (pixels), luminance (0-255).
        samples: One record of each class, at most forty: row, uri, split, label.
        excluded: How many of the deduplicated rows a list excludes; 0 where that is not known, as
            of a dataset without its manifest.
        ignored: How many images and pairs are not shown, because people decided so.
        title: What the report is about.
        has_features: Whether near copies were looked for by features, too.
        num_silent: Annotated images that a detector did not look at, where its results are given.
        num_kept: Of how many images these are from the cache; 0 where the dataset has its own.
        read_as: How the source was read; None where nobody knows.
    """

    policies: Mapping[str, str]
    findings: tuple[Finding, ...] = ()
    rejects: tuple[FindingRow, ...] = ()
    num_header_only: int = 0
    num_unlike: int = 0
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    samples: tuple[FindingRow, ...] = ()
    excluded: int = 0
    ignored: int = 0
    title: str = "Validation"
    has_features: bool = False
    num_silent: int = 0
    num_kept: int = 0
    read_as: ReadAs | None = None

    @property
    def blessed(self) -> bool:
        """Whether no finding stops the run."""
        return not any(finding.policy == FAIL for finding in self.findings)

    @property
    def verdict(self) -> str:
        """The verdict in a word: "stopped", "passed with warnings" or "passed"."""
        if not self.blessed:
            return "stopped"
        has_warnings = any(finding.policy == WARN for finding in self.findings)
        return "passed with warnings" if has_warnings else "passed"

    @property
    def tone(self) -> str:
        """The color of the verdict: good, fair or bad."""
        return {"stopped": "bad", "passed": "good"}.get(self.verdict, "fair")

    @property
    def unchecked(self) -> frozenset[str]:
        """The checks that were not made: because of their policies, or for lack of features."""
        off = frozenset(check for check, policy in self.policies.items() if policy == OFF)
        return off if self.has_features else off | {"suspect_labels"}

    def count_findings(self, checks: Iterable[str]) -> dict[str, int]:
        """Returns the count of each of these findings; 0 for what was not found."""
        found = {finding.check: finding.count for finding in self.findings}
        return {check: found.get(check, 0) for check in checks}

    def list_classes(self) -> list[str]:
        """Returns all labels, the label map first; "" is among them if records have no label."""
        seen = (label for counts in self.classes.values() for label in counts)
        return list(dict.fromkeys((*self.labels, *seen)))

    def to_json(self) -> str:
        """Returns the report as JSON text with a final newline, equal for equal reports."""
        header = {"format_version": REPORT_FORMAT_VERSION, "blessed": self.blessed}
        # ASCII only: file names may hold lone surrogates, which UTF-8 cannot encode.
        values = asdict(self)
        if self.objects is None:
            del values["objects"], values["lost"]
        return json.dumps({**header, **values}, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> DatasetReport:
        """Returns the report that `to_json` wrote.

        Raises:
            DataError: The text is not a validation report of this version.
        """
        try:
            fields = json.loads(text)
            version = fields.pop("format_version")
            if version != REPORT_FORMAT_VERSION:
                raise DataError(
                    f"The report has format version {version!r}, expected {REPORT_FORMAT_VERSION}.",
                    "Validate again with this version of darkroom.",
                )
            del fields["blessed"]
            return build_value(fields, cls)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            message = f"This is not a validation report: {error!r}."
            raise DataError(message, "Pass the report.json that ImageValidator wrote.") from error


def format_verdict(report: DatasetReport) -> str:
    """Returns the verdict in one sentence."""
    stopping = sum(finding.policy == FAIL for finding in report.findings)
    warnings = sum(finding.policy == WARN for finding in report.findings)
    also = f" with {format_count(warnings, 'warning')}" if warnings else ""
    if stopping:
        return f"Stopped by {format_count(stopping, 'finding')}{',' if also else ''}{also}."
    return f"Passed{also}."


def list_object_counts(objects: ObjectCounts) -> list[tuple[str, int]]:
    """Returns what became of objects, with the number of each; what must be 0 is left out."""
    shown = ("written", "rejected", "deduplicated", "merged")
    numbers = [(name, getattr(objects, name)) for name in shown]
    return [(name, number) for name, number in numbers if number or name in shown[:2]]


def format_accounting(report: DatasetReport) -> str:
    """Returns where the rows of the source went, in one sentence."""
    dropped = f"{report.deduplicated - report.excluded:,} deduplicated"
    if report.excluded:
        dropped += f", {report.excluded:,} excluded"
    elif report.deduplicated:
        dropped += " or excluded"  # without a manifest, nobody knows which
    rows = (
        f"{format_count(report.rows, 'row')} in the source: {report.written:,} written, "
        f"{report.num_rejected:,} rejected, {dropped}."
    )
    if report.objects is None:
        return rows
    numbers = ", ".join(f"{number:,} {name}" for name, number in list_object_counts(report.objects))
    return f"{rows} {format_count(report.objects.read, 'object')}: {numbers}."


def format_scope(report: DatasetReport) -> str:
    """Returns what checks of images looked for, and what is not shown; empty for nothing."""
    what = "image or pair" if report.ignored == 1 else "images or pairs"
    hidden = f"Not shown: {report.ignored:,} {what}, as decided." if report.ignored else ""
    return " ".join(filter(None, (_format_looks(report), _format_doubts(report), hidden)))


def _format_doubts(report: DatasetReport) -> str:
    """Returns where a detector looked for nothing; empty where that says nothing."""
    if report.num_silent:
        images = format_count(report.num_silent, "annotated image")
        return f"Not compared with results, as the detector did not look at them: {images}."
    if all(report.policies.get(name) != OFF for name in list_result_checks()):
        return ""
    return (
        "Not looked for without results of a detector: missing, shifted and false boxes, and wrong "
        "classes."
    )


def _format_looks(report: DatasetReport) -> str:
    """Returns which copies of images were looked for; empty if no check looks for any."""
    equal, near = (
        any(report.policies.get(name, OFF) != OFF for name in names)
        for names in (_EQUAL, NEAR_CHECKS)
    )
    if not near:
        return "Looked for: equal pixels only; near copies are not found." if equal else ""
    what = "equal pixels and small changes" if equal else "small changes"
    # A pipeline has the option alone.
    need = "crops and turned copies need features: option embed, or darkroom embed"
    scope = f"Looked for: {what}; {need}."
    if report.has_features:
        images = format_count(report.num_kept, "image")
        kept = f" that the cache has of {images}" if report.num_kept else ""
        scope = f"Looked for: {what}, also crops and turned copies (by features{kept})."
    if report.num_unlike:
        images = format_count(report.num_unlike, "image")
        scope += (
            f" Without perceptual hash: {images}, plain, tiny or damaged, or of an old dataset."
        )
    return scope


def format_header_only(report: DatasetReport) -> str:
    """Returns a sentence about records that were checked by header only; empty without such."""
    if not report.num_header_only:
        return ""
    records = format_count(report.num_header_only, "record", "were")
    return f"{records} checked by header only and may have damaged images."


def round_summary(counts: DatasetCounts) -> list[FindingRow]:
    """Returns the rows of the summary with numbers as people read them."""
    return [
        {name: f"{each:.6g}" if isinstance(each, float) else each for name, each in row.items()}
        for row in counts.summary
    ]


def describe_contents(counts: DatasetCounts) -> list[ResultRow]:
    """Returns what records are labelled with."""
    rows: list[ResultRow] = [describe_classes(counts.classes, counts.labels, counts.numbers)]
    if summary := round_summary(counts):
        cells = [["" if cell is None else f"{cell}" for cell in row.values()] for row in summary]
        table = Table("", ["", *list(summary[0])[1:]], cells)
        rows.append(table.shorten(_MAX_SUMMARY, ": all are in report.json"))
    unknown = format_unannotated(counts.unannotated)
    return [*rows, unknown] if unknown else rows


def format_table(report: DatasetReport) -> str:
    """Returns the report as plain text for a terminal, with the first ten rows of each finding."""
    lines = [format_verdict(report), format_accounting(report), format_scope(report)]
    lines += format_doubts(report.read_as) if report.read_as else []
    lines = [line for line in lines if line]
    width = max((len(finding.check) for finding in report.findings), default=0)
    for finding in report.findings:
        head = f"{finding.policy.upper()}  {finding.check:<{width}}  {finding.count:>7,}  "
        lines += ["", head + make_visible(finding.message, max_characters=2000)]
        lines += [f"      {format_finding_row(row)}" for row in finding.first_rows]
        if more := format_more(finding):
            lines.append(f"      and {more}")
        if finding.hint:
            lines += [f"      {line}" for line in f"What to do: {finding.hint}".splitlines()]
    return "\n".join(lines)
