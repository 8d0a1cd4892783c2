"""The report as a page, in HTML and in Markdown, without scripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from darkroom.dataset.labels import format_unannotated
from darkroom.options.validation import FAIL
from darkroom.runtime.chart import make_histogram
from darkroom.runtime.markup import Html, element, escape_markdown, join_html, join_lines
from darkroom.runtime.page import (
    Page,
    PagePart,
    make_figures,
    make_header,
    make_note,
    make_section,
    make_table,
    make_text,
    make_tiles,
)
from darkroom.runtime.table import Cell, Drawn, Table, make_bar
from darkroom.runtime.text import NOT_ANNOTATED, format_count
from darkroom.validation.report.dataset_report import (
    DatasetReport,
    Histogram,
    format_accounting,
    format_header_only,
    format_scope,
    format_verdict,
    list_object_counts,
    round_summary,
)
from darkroom.validation.report.findings import (
    BOX,
    CHECK_TITLES,
    OBJECT,
    Finding,
    FindingRow,
    format_more,
    format_object,
    format_record,
    list_record_facts,
    list_sides,
    name_value,
)

_MAX_CLASSES = 200
_ALL = ": all are in report.json"
_HISTOGRAM_TITLES = {
    "height": "Height in pixels",
    "width": "Width in pixels",
    "luminance": "Mean luminance, 0 to 255",
}
_LONG_COLUMNS = frozenset({"uri", "detail", "long"})
_NO_PICTURE = element("span", "no picture", class_="thumb none")

# By URI of the source image.
Thumbnails = Mapping[str, Html]


def make_report_page(
    report: DatasetReport,
    thumbnails: Thumbnails,
    missing: str = "",
    gallery: Html | str | None = None,
) -> Page:
    """Returns the page.

    Args:
        report: The report.
        thumbnails: The pictures. Images without one get a placeholder.
        missing: Which pictures are missing, and why.
        gallery: Where the gallery is; None for none.
    """
    notes = (PagePart(element("p", note, class_="note")) for note in (missing, gallery) if note)
    parts = (
        _make_header(report),
        *notes,
        make_section("Findings", *(_make_finding(each, thumbnails) for each in report.findings)),
        _make_classes(report),
        _make_rejects(report),
        _make_read_as(report),
        _make_histograms(report.histograms),
        _make_samples(report.samples, thumbnails),
        make_section("Checks", make_table(_list_checks(report))),
    )
    return Page(f"{report.title}: {report.verdict}", parts)


def make_statistics_page(report: DatasetReport) -> Page:
    """Returns a page with counts and histograms alone, for a dataset that is not judged."""
    parts = (
        PagePart(element("h1", "Content of the dataset")),
        make_tiles(_list_tiles(report)),
        _make_classes(report),
        _make_rejects(report),
        _make_histograms(report.histograms),
    )
    return Page("Statistics", parts)


def _make_header(report: DatasetReport) -> PagePart:
    verdict = format_verdict(report)
    return make_header(
        report.title.lower(),
        verdict,
        report.tone,
        _list_tiles(report),
        format_scope(report),
        format_header_only(report),
        markdown=f"**{verdict}** {format_accounting(report)}",
    )


def _list_tiles(report: DatasetReport) -> list[tuple[str, str]]:
    dropped = "deduplicated or excluded" if report.deduplicated else "deduplicated"
    numbers = {
        "rows in the source": report.rows,
        "written": report.written,
        "rejected": report.num_rejected,
        dropped: report.deduplicated,
    }
    if report.objects is not None:
        numbers |= {
            f"objects {name}": number for name, number in list_object_counts(report.objects)
        }
    return [(f"{number:,}", name) for name, number in numbers.items()]


def _make_finding(finding: Finding, thumbnails: Thumbnails) -> PagePart:
    title = finding.title
    pill = element("span", finding.policy, class_=f"pill {finding.policy}")
    head = element("h3", pill, title, element("code", finding.check))
    rows = make_table(
        _list_rows(finding.first_rows, thumbnails)._replace(more=format_more(finding))
    )
    hint = join_html(element("b", "What to do: "), join_lines(finding.hint))
    body = (
        element("p", finding.message),
        element("p", hint) if finding.hint else None,
        rows.html if rows else None,
    )
    lines = f"What to do: {finding.hint}".splitlines() if finding.hint else []
    texts = [f"### {finding.policy.upper()}: {title}"]
    texts += map(escape_markdown, [finding.message, *lines])
    return PagePart(
        element("article", head, *body, class_=f"finding {finding.policy}"),
        "\n\n".join([*texts, *([rows.markdown] if rows else [])]),
    )


def _list_rows(rows: Sequence[FindingRow], thumbnails: Thumbnails) -> Table:
    """Returns rows of a finding: records or pairs of them with their pictures, or other values."""
    if rows and "other_row" in rows[0]:
        header = ["", "one record", "", "other record"]
        return Table("", header, [[*_list_pair(row, thumbnails)] for row in rows])
    # The longest text is last: a phone shows the others.
    found = dict.fromkeys(name for row in rows for name in row if name != BOX)
    names = sorted(found, key="uri".__eq__)
    body: list[list[Cell]] = [[_make_cell(name, row.get(name)) for name in names] for row in rows]
    header = [*map(name_value, names)]
    if any(row.get("uri") in thumbnails for row in rows):
        header.insert(0, "")
        body = [[_make_picture(row, thumbnails), *c] for row, c in zip(rows, body, strict=True)]
    return Table("", header, body)


def _list_pair(row: FindingRow, thumbnails: Thumbnails) -> Iterator[Cell]:
    """Yields four cells: the picture and the facts of each of two records.

    What the check says of both of them is with the second one.
    """
    more = ", ".join(f"{name}: {value}" for name, value in list_record_facts(row).items())
    for side, said in zip(list_sides(row), ("", more), strict=True):
        tags = (side[name] for name in ("split", "label"))
        html = element(
            "div",
            element("span", f"row {side['row']:,}", class_="row"),
            *(element("span", str(tag), class_="tag") for tag in tags if tag is not None),
            element("span", side["uri"], class_="uri"),
            class_="side",
        )
        yield _make_picture(side, thumbnails)
        yield Drawn(
            ": ".join(filter(None, (format_record(side), said))),
            join_html(html, element("span", said, class_="more") if said else None),
        )


def _make_picture(row: FindingRow, thumbnails: Thumbnails) -> Drawn:
    uri = str(row.get("uri"))
    return Drawn("", thumbnails.get(uri, _NO_PICTURE))


def _make_cell(name: str, value: Any) -> Cell:
    text = "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
    text = format_object(value) if value and name == OBJECT else text
    return Drawn(text, element("div", text, class_="long")) if name in _LONG_COLUMNS else text


def _make_classes(report: DatasetReport) -> PagePart | None:
    labels = report.list_classes()
    largest = {name: max([1, *report.classes[name].values()]) for name in report.splits}
    totals = (f"{count:,}" for count in report.splits.values())
    rows: list[list[Cell]] = [["all", *(Drawn(each, element("b", each)) for each in totals)]]
    for label in labels:
        counts = {name: report.classes[name].get(label, 0) for name in report.splits}
        bars = (make_bar(count, count / largest[name]) for name, count in counts.items())
        rows.append([label or NOT_ANNOTATED, *bars])
    table = Table("", ["class" if labels else "", *report.splits], rows)
    unknown = format_unannotated(report.unannotated)
    return make_section(
        "Splits and classes" if labels else "Splits",
        make_table(table.shorten(_MAX_CLASSES + 1, _ALL), "bars"),
        make_table(_list_rows(round_summary(report), {}).shorten(_MAX_CLASSES + 1, _ALL)),
        make_note(unknown) if unknown else None,
    )


def _make_rejects(report: DatasetReport) -> PagePart | None:
    if not report.rejected and not report.lost:
        return None
    # The finding has shown these rows already.
    is_listed = any(finding.check == "rejects" for finding in report.findings)
    share = report.num_rejected / max(report.rows, 1)
    return make_section(
        "Rejected rows and objects" if report.lost else "Rejected rows",
        make_text(f"{format_count(report.num_rejected, 'row')}, {share:.2%} of the source."),
        _list_reasons("rows", report.rejected),
        _list_reasons("objects of other rows", report.lost),
        None if is_listed else make_table(_list_rows(report.rejects, {})),
    )


def _list_reasons(what: str, counts: Mapping[str, int]) -> PagePart | None:
    most = max(counts.values(), default=1)
    rows: list[list[Cell]] = [
        [reason, make_bar(n, n / most, "bad")] for reason, n in counts.items()
    ]
    return make_table(Table("", ["reason", what], rows), "bars")


def _make_read_as(report: DatasetReport) -> PagePart | None:
    rows = report.read_as.to_rows() if report.read_as else []
    return make_section("How the source was read", make_table(Table("", ["", "read as"], rows)))


def _make_histograms(histograms: Mapping[str, Histogram]) -> PagePart | None:
    figures = [
        make_histogram(_HISTOGRAM_TITLES.get(name, name), each.counts, each.low, each.high)
        for name, each in histograms.items()
    ]
    return make_section("Size and brightness", make_figures(figures) if figures else None)


def _make_samples(samples: Sequence[FindingRow], thumbnails: Thumbnails) -> PagePart | None:
    figures = [
        element(
            "figure",
            _make_picture(sample, thumbnails).html,
            element("figcaption", str(sample["label"] or NOT_ANNOTATED)),
        )
        for sample in samples
        if sample.get("uri") in thumbnails
    ]
    shown = make_figures(figures, "samples") if figures else None
    return make_section("One image of each class", shown)


def _list_checks(report: DatasetReport) -> Table:
    rows: list[list[Cell]] = []
    # Findings that stop a run come first. Of two findings of a check the first is shown here.
    found = {finding.check: finding for finding in reversed(report.findings)}
    for check, policy in report.policies.items():
        result, tone = "passed", " good"
        if check in report.unchecked:
            result, tone = "not checked", ""
        elif check in found:
            result = f"found {found[check].count:,}"
            tone = " bad" if found[check].policy == FAIL else " fair"
        drawn = Drawn(result, element("span", result, class_=f"result{tone}"))
        name = Drawn(check, element("code", check))
        rows.append([name, CHECK_TITLES.get(check, ""), policy, drawn])
    return Table("", ["check", "what it finds", "policy", "result"], rows)
