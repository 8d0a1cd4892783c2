"""The report as one HTML page without scripts, that loads nothing and escapes all text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from darkroom.dataset.labels import format_unannotated
from darkroom.options.validation import FAIL
from darkroom.runtime.markup import Html, element, join_html, join_lines
from darkroom.runtime.text import format_count
from darkroom.validation.report.dataset_report import (
    DatasetReport,
    Histogram,
    format_header_only,
    format_scope,
    format_verdict,
    round_summary,
)
from darkroom.validation.report.findings import CHECK_TITLES, Row, format_more, name_value
from darkroom.validation.report.parts import make_bar, make_more, make_page, make_table
from darkroom.validation.report.style import STYLE

MAX_CLASSES = 200
_HISTOGRAM_TITLES = {
    "height": "Height in pixels",
    "width": "Width in pixels",
    "luminance": "Mean luminance, 0 to 255",
}
_LONG_COLUMNS = frozenset({"uri", "detail", "long"})
_NO_PICTURE = element("span", "no picture", class_="thumb none")


def encode_html(
    report: DatasetReport,
    thumbnails: Mapping[str, str],
    missing: str = "",
    gallery: Html | str | None = None,
) -> str:
    """Returns the page.

    Args:
        report: The report.
        thumbnails: `data:image/jpeg` URI by URI of the source image. Images without a thumbnail get
            a placeholder.
        missing: Which pictures are missing, and why.
        gallery: Where the gallery is; None for none.
    """
    sections = (
        _make_header(report),
        element("p", missing, class_="note") if missing else None,
        element("p", gallery, class_="note") if gallery else None,
        _make_findings(report, thumbnails),
        _make_classes(report),
        _make_rejects(report),
        _make_read_as(report),
        _make_histograms(report.histograms),
        _make_samples(report.samples, thumbnails),
        _make_checks(report),
    )
    return make_page(f"{report.title}: {report.verdict}", STYLE, *sections)


def encode_statistics(report: DatasetReport) -> str:
    """Returns a page with counts and histograms alone, for a dataset that is not judged."""
    sections = (
        element("h1", "Content of the dataset"),
        _make_tiles(report),
        _make_classes(report),
        _make_rejects(report),
        _make_histograms(report.histograms),
    )
    return make_page("Statistics", STYLE, *sections)


def _make_header(report: DatasetReport) -> Html:
    tone = {"passed": "good", "stopped": "bad"}.get(report.verdict, "fair")
    notes = filter(None, (format_scope(report), format_header_only(report)))
    return element(
        "header",
        element("p", f"darkroom · {report.title.lower()}", class_="kicker"),
        element("h1", format_verdict(report), class_=f"verdict {tone}"),
        _make_tiles(report),
        *(element("p", note, class_="note") for note in notes),
    )


def _make_tiles(report: DatasetReport) -> Html:
    numbers = (
        ("rows in the source", report.rows),
        ("written", report.written),
        ("rejected", report.num_rejected),
        (
            "deduplicated or excluded" if report.deduplicated else "deduplicated",
            report.deduplicated,
        ),
    )
    tiles = (
        element("div", element("b", f"{number:,}"), element("span", name), class_="tile")
        for name, number in numbers
    )
    return element("div", *tiles, class_="tiles")


def _make_findings(report: DatasetReport, thumbnails: Mapping[str, str]) -> Html | None:
    if not report.findings:
        return None
    cards = []
    for finding in report.findings:
        head = element(
            "h3",
            element("span", finding.policy, class_=f"pill {finding.policy}"),
            CHECK_TITLES.get(finding.check, finding.check),
            element("code", finding.check),
        )
        rows = finding.first_rows
        what_to_do = join_html(element("b", "What to do: "), join_lines(finding.hint))
        card = element(
            "article",
            head,
            element("p", finding.message),
            element("p", what_to_do) if finding.hint else None,
            _make_rows(rows, thumbnails) if rows else None,
            make_more(more) if (more := format_more(finding)) else None,
            class_=f"finding {finding.policy}",
        )
        cards.append(card)
    return element("section", element("h2", "Findings"), *cards)


def _make_rows(rows: Sequence[Row], thumbnails: Mapping[str, str]) -> Html:
    if "other_row" in rows[0]:
        header = ["", "one record", "", "other record"]
        body: list[list[str]] = []
        for row in rows:
            records = row.get("records") or 2
            more = element("span", f"{records:,} records in all", class_="more")
            body.append(
                [
                    _make_picture(row, "uri", thumbnails),
                    _make_side(row, ""),
                    _make_picture(row, "other_uri", thumbnails),
                    join_html(_make_side(row, "other_"), more if records > 2 else None),
                ]
            )
    else:
        names = list(dict.fromkeys(name for row in rows for name in row))
        has_pictures = any(row.get("uri") in thumbnails for row in rows)
        header = [""] if has_pictures else []
        header += map(name_value, names)
        body = [
            ([_make_picture(row, "uri", thumbnails)] if has_pictures else [])
            + [_make_cell(name, row.get(name)) for name in names]
            for row in rows
        ]
    return make_table(header, body)


def _make_side(row: Row, prefix: str) -> Html:
    tags = (row[f"{prefix}{name}"] for name in ("split", "label"))
    return element(
        "div",
        element("span", f"row {row[f'{prefix}row']:,}", class_="row"),
        *(element("span", str(tag), class_="tag") for tag in tags if tag is not None),
        element("span", row[f"{prefix}uri"], class_="uri"),
        class_="side",
    )


def _make_picture(row: Row, name: str, thumbnails: Mapping[str, str]) -> Html:
    uri = str(row.get(name))
    if uri not in thumbnails:
        return _NO_PICTURE
    return element("img", src=thumbnails[uri], alt=uri, class_="thumb")


def _make_cell(name: str, value: object) -> str:
    if value is None:
        return ""
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return element("div", text, class_="long") if name in _LONG_COLUMNS else text


def _make_classes(report: DatasetReport) -> Html:
    labels = report.list_classes()
    splits = list(report.splits)
    largest = {split: max(report.classes[split].values(), default=1) for split in splits}
    rows = [["all", *(element("b", f"{count:,}") for count in report.splits.values())]]
    for label in labels[:MAX_CLASSES]:
        counts = [report.classes[split].get(label, 0) for split in splits]
        bars = (
            make_bar(count, largest[split]) for count, split in zip(counts, splits, strict=True)
        )
        rows.append([label or "(no label)", *bars])
    more = len(labels) - MAX_CLASSES
    return element(
        "section",
        element("h2", "Splits and classes" if labels else "Splits"),
        make_table(["class" if labels else "", *splits], rows, "bars"),
        make_more(f"and {more:,} more: all are in report.json") if more > 0 else None,
        _make_rows(round_summary(report), {}) if report.summary else None,
        element("p", unknown, class_="note")
        if (unknown := format_unannotated(report.unannotated))
        else None,
    )


def _make_rejects(report: DatasetReport) -> Html | None:
    if not report.rejected:
        return None
    largest = max(report.rejected.values())
    is_listed = any(finding.check == "rejects" for finding in report.findings)
    reasons = [[reason, make_bar(n, largest, "bad")] for reason, n in report.rejected.items()]
    share = report.num_rejected / max(report.rows, 1)
    return element(
        "section",
        element("h2", "Rejected rows"),
        element("p", f"{format_count(report.num_rejected, 'row')}, {share:.2%} of the source."),
        make_table(["reason", "rows"], reasons, "bars"),
        None if is_listed else _make_rows(report.rejects, {}),
    )


def _make_read_as(report: DatasetReport) -> Html | None:
    if report.read_as is None:
        return None
    table = make_table(["", "read as"], report.read_as.to_rows())
    return element("section", element("h2", "How the source was read"), table)


def _make_histograms(histograms: Mapping[str, Histogram]) -> Html | None:
    if not histograms:
        return None
    figures = (_make_histogram(name, each) for name, each in histograms.items())
    return element(
        "section", element("h2", "Size and brightness"), element("div", *figures, class_="figures")
    )


def _make_histogram(name: str, histogram: Histogram) -> Html:
    title = element("figcaption", _HISTOGRAM_TITLES.get(name, name))
    edges = [f"{edge:,.0f}" for edge in (histogram.low, histogram.high)]
    if len(histogram.counts) == 1:
        return element("figure", title, element("p", f"always {edges[0]}", class_="always"))
    largest = max(*histogram.counts, 1)
    width = 200 / len(histogram.counts)
    bars = (
        element(
            "rect",
            x=f"{number * width + 0.5:.2f}",
            y=f"{60 - 60 * count / largest:.2f}",
            width=f"{width - 1:.2f}",
            height=f"{60 * count / largest:.2f}",
        )
        for number, count in enumerate(histogram.counts)
    )
    label = "records by bin: " + ", ".join(f"{count:,}" for count in histogram.counts)
    fit = {"viewBox": "0 0 200 60", "preserveAspectRatio": "none"}
    picture = element("svg", *bars, role="img", aria_label=label, **fit)
    axis = element("div", *(element("span", edge) for edge in edges), class_="axis")
    return element("figure", title, picture, axis)


def _make_samples(samples: Sequence[Row], thumbnails: Mapping[str, str]) -> Html | None:
    shown = [sample for sample in samples if sample.get("uri") in thumbnails]
    if not shown:
        return None
    figures = (
        element(
            "figure",
            _make_picture(sample, "uri", thumbnails),
            element("figcaption", str(sample["label"] or "(no label)")),
        )
        for sample in shown
    )
    heading = element("h2", "One image of each class")
    return element("section", heading, element("div", *figures, class_="samples"))


def _make_checks(report: DatasetReport) -> Html:
    rows = []
    # Findings that stop a run come first. Of two findings of a check the first is shown here.
    found = {finding.check: finding for finding in reversed(report.findings)}
    for check, policy in report.policies.items():
        result = element("span", "passed", class_="result good")
        if check in report.unchecked:
            result = element("span", "not checked", class_="result")
        elif check in found:
            finding = found[check]
            tone = "bad" if finding.policy == FAIL else "fair"
            result = element("span", f"found {finding.count:,}", class_=f"result {tone}")
        rows.append([element("code", check), CHECK_TITLES.get(check, ""), policy, result])
    return element(
        "section",
        element("h2", "Checks"),
        make_table(["check", "", "policy", "result"], rows),
    )
