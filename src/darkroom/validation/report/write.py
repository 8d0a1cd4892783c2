"""Writes a validation report: JSON for programs, Markdown for a repository, HTML for people.

The files contain no time, host or path of this machine, so equal datasets give equal reports.
"""

from __future__ import annotations

from collections.abc import Sequence

from darkroom import storage
from darkroom.dataset.labels import format_unannotated
from darkroom.dataset.read_as import ReadAs
from darkroom.runtime import progress
from darkroom.runtime.markup import element, escape_markdown, make_markdown_table
from darkroom.storage import ledger
from darkroom.validation.gallery.encode import encode_gallery
from darkroom.validation.report.dataset_report import (
    DatasetReport,
    format_accounting,
    format_header_only,
    format_scope,
    format_verdict,
    round_summary,
)
from darkroom.validation.report.findings import CHECK_TITLES, Finding, Row, format_more, name_value
from darkroom.validation.report.html import MAX_CLASSES, encode_html
from darkroom.validation.report.pictures import Records, make_pictures
from darkroom.validation.report.sources import SourceImages

REPORT_JSON = "report.json"
REPORT_MARKDOWN = "report.md"
REPORT_HTML = "report.html"
GALLERY_FILE = "gallery.html"
REPORT_FILES = (REPORT_JSON, REPORT_MARKDOWN, REPORT_HTML)


def write_report(
    report: DatasetReport,
    folder: str,
    records: Records | None = None,
    sources: SourceImages | None = None,
    *,
    gallery: bool = False,
    elsewhere: str = "",
) -> None:
    """Writes `report.json`, `report.md` and `report.html`.

    Args:
        report: The report.
        folder: The folder; it is made if it does not exist.
        records: Where its records are: pictures are taken from them if they are on a disk.
        sources: Reads the source images, for the other pictures.
        gallery: Whether `gallery.html` is written, too, which needs the records.
        elsewhere: Where the gallery is that is not beside the report, in words: the page may be
            shown in a frame, where a link to another file leads nowhere.

    Raises:
        OutputError: The folder has files of these names that darkroom did not write.
        OSError: The folder cannot be written.
    """
    pictures = make_pictures(report, records, sources or SourceImages())
    if pictures.missing:
        progress.note(pictures.missing)
    link = element("a", "All images and findings: the gallery", href=GALLERY_FILE)
    texts = {
        REPORT_JSON: report.to_json(),
        REPORT_MARKDOWN: encode_markdown(report),
        REPORT_HTML: encode_html(report, *pictures, gallery=link if gallery else elsewhere),
    }
    if gallery and records:
        texts[GALLERY_FILE] = encode_gallery(report, records)
    ledger.write_files(folder, {name: text.encode() for name, text in texts.items()})
    if not gallery and ledger.is_listed(folder, GALLERY_FILE):
        # Of an earlier report.
        storage.delete_file(storage.join(folder, GALLERY_FILE))


def encode_markdown(report: DatasetReport) -> str:
    """Returns the report as Markdown, with all text of the user escaped."""
    rejects = []
    if report.rejected:
        rejects = [
            "## Rejected rows",
            make_markdown_table(["reason", "rows"], report.rejected.items()),
        ]
        if not any(finding.check == "rejects" for finding in report.findings):
            rejects.append(_encode_rows(report.rejects))
    parts = [
        f"# {report.title}: {report.verdict}",
        f"**{format_verdict(report)}** {format_accounting(report)}",
        format_scope(report),
        format_header_only(report),
        "## Findings" if report.findings else "",
        *(_encode_finding(finding) for finding in report.findings),
        "## Splits and classes" if report.list_classes() else "## Splits",
        _encode_classes(report),
        _encode_rows(round_summary(report)),
        escape_markdown(format_unannotated(report.unannotated)),
        *rejects,
        *(_encode_read_as(report.read_as) if report.read_as else ()),
        "## Checks",
        _encode_checks(report),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _encode_finding(finding: Finding) -> str:
    title = f"### {finding.policy.upper()}: {CHECK_TITLES.get(finding.check, finding.check)}"
    parts = [title, escape_markdown(finding.message)]
    if finding.hint:
        parts += map(escape_markdown, f"What to do: {finding.hint}".splitlines())
    rows = finding.first_rows
    parts.append(_encode_rows(rows))
    if more := format_more(finding):
        parts.append(f"… {more}.")
    return "\n\n".join(part for part in parts if part)


def _encode_rows(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return make_markdown_table(
        [*map(name_value, names)],
        ([row.get(name) for name in names] for row in rows),
    )


def _encode_classes(report: DatasetReport) -> str:
    splits = list(report.splits)
    labels = report.list_classes()
    rows = [["all", *(f"{count:,}" for count in report.splits.values())]]
    for label in labels[:MAX_CLASSES]:
        counts = (report.classes[split].get(label, 0) for split in splits)
        rows.append([label or "(no label)", *(f"{count:,}" for count in counts)])
    table = make_markdown_table(["class" if labels else "", *splits], rows)
    more = len(labels) - MAX_CLASSES
    return table if more <= 0 else f"{table}\n\n… and {more:,} more: all are in {REPORT_JSON}."


def _encode_read_as(read_as: ReadAs) -> tuple[str, str]:
    return "## How the source was read", make_markdown_table(["", "read as"], read_as.to_rows())


def _encode_checks(report: DatasetReport) -> str:
    found = {finding.check: finding for finding in reversed(report.findings)}
    rows = []
    for check, policy in report.policies.items():
        result = f"found {found[check].count:,}" if check in found else "passed"
        title = CHECK_TITLES.get(check, "")
        result = "not checked" if check in report.unchecked else result
        rows.append([check, title, policy, result])
    return make_markdown_table(["check", "what it finds", "policy", "result"], rows)
