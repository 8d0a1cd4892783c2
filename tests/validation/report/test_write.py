import json
import re
from dataclasses import replace

import numpy as np
import pytest

from darkroom.errors import OutputError
from darkroom.images.shapes import make_picture
from darkroom.images.source_images import SourceImages
from darkroom.images.thumbnails import make_thumbnails
from darkroom.runtime.markup import element, escape_html, escape_markdown
from darkroom.storage.ledger import LEDGER_FILE
from darkroom.validation.gate import GateError, check_blessed
from darkroom.validation.report.dataset_report import (
    DatasetReport,
    Histogram,
    format_accounting,
    format_table,
)
from darkroom.validation.report.findings import Finding
from darkroom.validation.report.page import make_report_page
from darkroom.validation.report.write import write_report
from darkroom.validation.validate import ValidationResult

from ...html_page import Page
from ...pictures import encode

EVIL = (
    "</td></script><script>alert(1)</script><img src=http://x/y onerror=z>"
    "'\" \u202egpj.exe\x1b|`*_[a](b)\udcff"
)


def encode_html(report, thumbnails):
    return make_report_page(report, thumbnails).to_html()


def encode_markdown(report):
    return make_report_page(report, {}).to_markdown()


def side(row, uri, split="train", label="cat"):
    return {"row": row, "uri": uri, "split": split, "label": label}


def pair(one, other):
    return {**one, **{f"other_{name}": value for name, value in other.items()}, "records": 2}


def make_report(text="plain", **changes):
    fields = {
        "rows": 1803,
        "written": 1799,
        "deduplicated": 0,
        "rejected": {"missing": 3, text: 1},
        "labels": ("cat", text),
        "splits": {"train": 1443, "eval": 356},
        "classes": {"train": {"cat": 1442, text: 1}, "eval": {"cat": 356}},
        "policies": {"leakage": "fail", "duplicates": "warn", "anomalies": "off"},
        "findings": (
            Finding(
                "leakage",
                "fail",
                12,
                f"found {text}",
                f"fix {text}",
                (pair(side(1, "/a.png", label=text), side(2, text, "eval")),),
            ),
            Finding("anomalies", "warn", 1, "odd", "", ({"feature": text, "long": text},)),
        ),
        "rejects": ({**side(7, f"/{text}"), "reason": "missing", "detail": text},),
        "histograms": {"height": Histogram(8, 10, (3, 0, 1)), "width": Histogram(8, 8, (4,))},
        "samples": (side(3, "/b.png"), side(4, "/gone.png", label=text)),
    }
    return DatasetReport(**{**fields, **changes})


def read_fake(uri):
    if uri == "/gone.png":
        raise FileNotFoundError(uri)
    return encode(np.full((8, 8), 200, np.uint8))


def test_a_report_is_three_files_with_the_same_bytes_each_time(tmp_path):
    for name in ("a", "b"):
        write_report(make_report(), str(tmp_path / name), sources=SourceImages(read_fake))
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert names == [LEDGER_FILE, "report.html", "report.json", "report.md"]
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    fields = json.loads((tmp_path / "a/report.json").read_text())
    assert (fields["format_version"], fields["blessed"], fields["rows"]) == (1, False, 1803)
    assert " ".join(fields) == (
        "format_version blessed rows written deduplicated rejected labels splits classes numbers "
        "summary unannotated policies "
        "findings rejects num_header_only num_unlike histograms samples excluded ignored title "
        "has_features num_silent num_kept read_as"
    )
    assert DatasetReport.from_json((tmp_path / "a/report.json").read_text()) == make_report()


def test_html_shows_the_most_important_first():
    text = encode_html(make_report(), {})
    page = Page(text)
    order = [
        "Stopped by 1 finding, with 1 warning.",
        "1,803",
        "Equal pixels in more than one split",
    ]
    order += ["found plain", "Splits and classes", "Rejected rows", "Checks"]
    places = [page.text.index(each) for each in order]
    assert places == sorted(places)
    assert "and 11 more" in page.text
    assert "not checked" in page.text
    assert "suspect_labels" in make_report().unchecked
    assert "suspect_labels" not in make_report(has_features=True).unchecked


def test_html_is_self_contained_and_text_of_the_user_is_never_markup():
    [(uri, source)] = make_thumbnails([("/b.png", read_fake("/b.png"))])
    page = Page(encode_html(make_report(EVIL), {uri: make_picture(source, uri)}))
    allowed = "html head meta title style body main header section article div figure figcaption "
    allowed += "h1 h2 h3 p b i span code table thead tbody tr th td img svg rect"
    assert page.tags <= set(allowed.split())
    assert page.policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    for tag, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on")]
        assert tag == "img" or "src" not in attributes
    (picture,) = page.sources
    assert picture.startswith("data:image/jpeg;base64,")
    assert "<script>alert(1)</script>" in page.text
    assert "<U+202E>gpj.exe<U+001B>" in page.text
    assert not re.search("[\u202e\x1b\udcff]", encode_html(make_report(EVIL), {}))
    (style,) = page.code["style"]
    assert "url(" not in style
    assert "@import" not in style


def test_every_form_says_what_the_same_image_means():
    report = make_report()
    report = replace(report, policies={**report.policies, "near_leakage": "warn"})
    scope = (
        "Looked for: equal pixels and small changes; crops and turned copies need features: "
        "option embed, or darkroom embed."
    )
    forms = {
        "page": Page(encode_html(report, {})).text,
        "Markdown": encode_markdown(report),
        "terminal": format_table(report),
        "card": ValidationResult("records", report)._repr_html_(),
    }
    assert {name: text.count(scope) for name, text in forms.items()} == dict.fromkeys(forms, 1)
    with pytest.raises(GateError, match=scope):
        check_blessed(report)
    assert "Equal pixels more than once in a split" in forms["page"]
    checks = forms["Markdown"].partition("## Checks")[2]
    assert "| leakage | Equal pixels in more than one split | fail |" in checks
    full = format_table(replace(report, has_features=True))
    assert "small changes, also crops and turned copies (by features)." in full
    off = replace(report, policies=dict.fromkeys(report.policies, "off"))
    assert "Looked for" not in encode_html(off, {}) + encode_markdown(off) + format_table(off)


def test_programs_get_all_ranked_rows_and_people_the_first_ten():
    pairs = tuple(pair(side(n, f"/{n}.png"), side(50 + n, f"/{n}.jpg")) for n in range(1, 13))
    report = make_report(findings=(Finding("near_leakage", "warn", 14, "found", "", pairs),))
    assert DatasetReport.from_json(report.to_json()).findings[0].rows == pairs
    assert len(ValidationResult("/x", report).to_dict()["findings"][0]["rows"]) == 12
    for text in (format_table(report), encode_markdown(report), encode_html(report, {})):
        assert "/10.jpg" in text
        assert "/11.jpg" not in text
        assert "and 4 more: the first 12 are in report.json and --json" in text


def test_values_of_rows_have_names_that_say_what_of():
    row = {**side(1, "/a.png"), "suggested": "dog", "probability": 0.012}
    report = make_report(findings=(Finding("suspect_labels", "warn", 1, "found", "", (row,)),))
    assert "<th>probability of its label</th>" in encode_html(report, {})
    assert "| probability of its label |" in encode_markdown(report)


@pytest.mark.parametrize(
    ("deduplicated", "excluded", "said"),
    [
        (0, 0, "0 deduplicated."),
        (5, 0, "5 deduplicated or excluded."),
        (5, 3, "2 deduplicated, 3 excluded."),
    ],
)
def test_excluded_rows_are_not_called_deduplicated_alone(deduplicated, excluded, said):
    report = make_report(deduplicated=deduplicated, excluded=excluded)
    assert format_accounting(report).endswith(f"4 rejected, {said}")


def test_each_hint_has_a_line_of_its_own():
    finding = Finding("rejects", "fail", 1, "Some.", "Fix <them>.\nmissing: Put them there.")
    report = DatasetReport(1, 0, 0, {"missing": 1}, (), {}, {}, {}, findings=(finding,))
    hint = "Fix &lt;them&gt;.<br>missing: Put them there."
    assert f"<p><b>What to do: </b>{hint}</p>" in encode_html(report, {})
    assert "What to do: Fix &lt;them&gt;.\n\nmissing: Put them there.\n" in encode_markdown(report)
    assert f">{hint}</td>" in ValidationResult("records", report)._repr_html_()
    assert format_table(report).splitlines()[-2:] == [
        "      What to do: Fix <them>.",
        "      missing: Put them there.",
    ]


def test_markdown_escapes():
    text = encode_markdown(make_report(EVIL))
    assert not re.search(r"<(?!U)|[\u202e\x1b\udcff]|https?://", text)
    rows = text.splitlines()
    place = rows.index("| one record | other record |")
    assert rows[place + 2].startswith("| row 1 /a.png (train, &lt;/td&gt;")
    assert len(re.findall(r"(?<!\\)\|", rows[place + 2])) == 3
    assert text.startswith(
        "# Validation: stopped\n\n**Stopped by 1 finding, with 1 warning.** 1,803 rows"
    )


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a|b", "a\\|b"),
        ("a\\|b", "a\\\\\\|b"),
        ("*b* _i_ `c`", "\\*b\\* \\_i\\_ \\`c\\`"),
        ("<b>&amp;", "&lt;b&gt;&amp;amp;"),
        ("gs://b/www.x", "gs\\://b/www\\.x"),
        ("a@b.c", "a\\@b.c"),
        ("![x](y)", "!\\[x\\](y)"),
        ("a\nb", "a&lt;U+000A&gt;b"),
        ("plain-name 1.jpg", "plain-name 1.jpg"),
    ],
)
def test_escape_markdown(text, escaped):
    assert escape_markdown(text) == escaped


def test_element_escapes_children_and_attributes():
    made = element("td", "a<b", element("b", "&"), None, title='"><script>', class_="x")
    assert made == '<td title="&quot;&gt;&lt;script&gt;" class="x">a&lt;b<b>&amp;</b></td>'
    assert escape_html(escape_html("<")) == "&lt;"


def test_passed_report_has_no_findings():
    report = make_report(findings=(), rejected={}, rejects=(), histograms={}, samples=())
    text = encode_html(report, {})
    assert '<h1 class="verdict good">Passed.</h1>' in text
    assert "Findings" not in text
    assert "Rejected rows" not in text
    assert "## Findings" not in encode_markdown(report)


def test_the_report_says_that_records_were_checked_by_header_only():
    said = "5 records were checked by header only and may have damaged images."
    report = make_report(num_header_only=5)
    assert said in encode_html(report, {})
    assert said in encode_markdown(report)


def test_only_the_first_classes_are_shown():
    labels = tuple(f"class {number}" for number in range(250))
    classes = {"train": dict.fromkeys(labels, 1), "eval": {}}
    report = make_report(labels=labels, classes=classes)
    for text in (encode_html(report, {}), encode_markdown(report)):
        assert "class 199" in text
        assert "class 200" not in text
        assert "and 50 more: all are in report.json" in text


def test_thumbnails_are_read_once_in_turns_and_at_most_160(tmp_path):
    read = []

    def read_image(uri):
        read.append(uri)
        return read_fake(uri)

    findings = [
        Finding(
            check, "warn", 10, check, rows=[side(row, f"/{check}{row}.png") for row in range(10)]
        )
        for check in ("drift", "quality")
    ]
    samples = tuple(side(row, f"/{row}.png", label=str(row)) for row in range(200))
    report = make_report(findings=tuple(findings), samples=samples)
    write_report(report, str(tmp_path), sources=SourceImages(read_image))
    assert len(read) == len(set(read)) == 160
    assert read[:4] == ["/drift0.png", "/quality0.png", "/0.png", "/drift1.png"]
    text = (tmp_path / "report.html").read_text()
    assert text.count("<img ") == 160
    assert "Of 220 images here, 160 have a picture." in text


def test_a_report_replaces_a_report_and_no_file_of_the_user(tmp_path):
    write_report(make_report(), str(tmp_path / "out"), sources=SourceImages(read_fake))
    write_report(
        replace(make_report(), deduplicated=7),
        str(tmp_path / "out"),
        sources=SourceImages(read_fake),
    )
    assert json.loads((tmp_path / "out/report.json").read_text())["deduplicated"] == 7
    (tmp_path / "report.md").write_text("My own report")
    with pytest.raises(OutputError, match=r"did not write.*: report\.md\. Move it elsewhere"):
        write_report(make_report(), str(tmp_path), sources=SourceImages(read_fake))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "report.md"]
    assert (tmp_path / "report.md").read_text() == "My own report"


def test_thumbnail_of_a_missing_or_damaged_image_is_a_placeholder(tmp_path):
    def read_image(uri):
        if uri == "/a.png":
            return b"<html>"
        raise PermissionError(uri)

    write_report(make_report(), str(tmp_path), sources=SourceImages(read_image))
    text = (tmp_path / "report.html").read_text()
    assert text.count("no picture") == 2
    assert "<img" not in text
