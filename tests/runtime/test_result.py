"""How results print themselves: cards that are safe against the text of the user, and short."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from darkroom.audit.contact_sheet import Inspection
from darkroom.audit.duplicates import Duplicates
from darkroom.conversion.result import ConversionResult
from darkroom.dataset.layout import DUPLICATES_SCHEMA
from darkroom.dataset.read_as import Doubt, ReadAs
from darkroom.input.loading import LoadedSplits
from darkroom.proof.findings import EXTRA, FileFinding
from darkroom.proof.verify import VerificationResult
from darkroom.runtime.markup import element
from darkroom.runtime.result import Fact, Outcome, format_rows
from darkroom.runtime.table import Drawn, Table, make_bar
from darkroom.validation.report.dataset_report import DatasetReport
from darkroom.validation.report.findings import Finding
from darkroom.validation.validate import ValidationResult

from ..html_page import Page

pytestmark = pytest.mark.crosses

EVIL = '<script>alert("x")</script>\u202egpj.\x1b[31m\u200b'
MANY = tuple(f"class {number:04d}" for number in range(1000))


def make_report(**values) -> DatasetReport:
    labels = values.pop("labels", ("cat",))
    counts = dict.fromkeys(labels, 3)
    return DatasetReport(
        **{
            "rows": 3,
            "written": 3,
            "deduplicated": 0,
            "rejected": {},
            "labels": labels,
            "splits": {"train": 3},
            "classes": {"train": counts},
            "policies": {},
            **values,
        }
    )


def make_results(text: str, labels: tuple[str, ...]) -> list[object]:
    """Returns a result of each kind, with `text` wherever a text of the user may be."""
    classes = {"train": dict.fromkeys((*labels, text), 1234)}
    conversion = ConversionResult(
        text, 5000, 4321, {text: 3}, 2, {"train": 4321}, 7, (*labels, text), classes, "f" * 64
    )
    finding = FileFinding(text, EXTRA, text, text)
    found = Finding("leakage", "fail", 1, text, text, ({"row": 1, "uri": text},))
    report = make_report(labels=(*labels, text), findings=(found,))
    return [
        conversion,
        ConversionResult(text, 5000, job_id=text),
        VerificationResult(text, (finding,) * 1000, "f" * 64, 4321, 7, 10_000),
        Duplicates(text, 1, 2, 3, 0, 0, has_pixels=False),
        ValidationResult(text, report, text),
        Inspection(text, text, 5),
        LoadedSplits({}, (*labels, text), {"train": 4321}),
    ]


@pytest.mark.parametrize("result", make_results(EVIL, MANY), ids=lambda each: type(each).__name__)
def test_text_of_the_user_is_never_markup_and_nothing_is_loaded(result):
    html = result._repr_html_()
    page = Page(html)
    assert not {"script", "iframe", "link", "a"} & page.tags
    assert page.sources == []
    assert not re.search(r"https?:|url\(|@import", html)
    assert not set("\u202e\x1b\u200b") & set(html)
    if "alert" in page.text:
        assert '<script>alert("x")</script><U+202E>gpj.<U+001B>[31m<U+200B>' in page.text
    assert len(html) < 12_000
    assert len(repr(result)) < 300
    assert "\n" not in repr(result)


def test_a_conversion_shows_counts_classes_and_paths():
    counts = {"cat": 3, "dog": 1}
    result = ConversionResult(
        *("out", 11, 4, {"missing": 7}, 0, {"train": 4}, 1, ("cat", "dog"), {"train": counts}),
        "f" * 64,
        read_as=ReadAs("CSV", doubts=(Doubt("one", "This.", "Do."), Doubt("two", "That.", "Do."))),
    )
    text = Page(result._repr_html_()).text
    assert text.startswith("Converted: 4 records in 1 shard Read as CSV ")
    assert "doubt one: This. doubt two: That. Rows in 11 " in text
    assert text.endswith(
        "Rows in 11 Written 4 (train 4) in 1 shard Rejected 7 (missing 7) Duplicates 0 Labels 2 "
        "Dataset out Rejects out/rejects.jsonl Missing No records in eval. train cat 3 dog 1"
    )
    assert result.to_text().splitlines()[-7:] == [
        "Duplicates 0",
        "Labels     2  train",
        "  cat             3",
        "  dog             1",
        "Dataset    out",
        "Rejects    out/rejects.jsonl",
        "Missing    No records in eval.",
    ]
    assert repr(result) == (
        "ConversionResult('out', rows=11, written=4, rejected=7, deduplicated=0, train=4, labels=2)"
    )


def test_a_verification_shows_its_verdict_and_its_findings():
    good = VerificationResult("data", (), "f" * 64, 4321, 7, 10_000)
    assert Page(good._repr_html_()).text == (
        "The dataset is sound Read 7 shards, 10,000 bytes in 0.0 s Records 4,321 "
        "Index not checked Rejects not checked Dataset data is sound"
    )
    assert 'class="good"' in good._repr_html_()
    finding = FileFinding("Split-train/x", EXTRA, "is not named by dataset.json", "Move it.")
    bad = VerificationResult("data", (finding,) * 12, "f" * 64, 4321, 7, 10_000)._repr_html_()
    assert "The dataset is DAMAGED" in bad
    assert 'class="bad"' in bad
    assert "extra Split-train/x is not named by dataset.json. Move it." in Page(bad).text
    assert "and 2 more" in bad


def test_a_validation_shows_the_first_rows_of_each_finding():
    rows = tuple({"row": n, "uri": f"<b>{n}.png", "split": "train"} for n in range(1, 6))
    findings = (
        Finding("rejects", "fail", 20, "20 of 23 rows.", "Fix them.", rows),
        Finding("small_classes", "warn", 1, "1 class.", "", ({"label": EVIL, "records": 2},)),
    )
    html = ValidationResult("data", make_report(findings=findings))._repr_html_()
    assert (
        "FAIL rejects 20 of 23 rows. Fix them. row 1 <b>1.png (train) "
        "row 2 <b>2.png (train) row 3 <b>3.png (train) and 17 more WARN small_classes"
    ) in Page(html).text
    assert "<b>1" not in html


def test_duplicates_show_the_images_of_the_first_groups(tmp_path: Path):
    names = ["a<b>1", "a2", *(f"b{n}" for n in range(5)), "c1", "c2", "d1", "d2"]
    groups = [{"group": "abcd".index(name[0]) + 1, "uri": f"/{name}.png"} for name in names]
    common = {"kind": "bytes", "split": "train", "label": None}
    rows = [common | each | {"label": "cat" if each["group"] == 1 else None} for each in groups]
    path = tmp_path / "list.parquet"
    pq.write_table(pa.Table.from_pylist(rows, DUPLICATES_SCHEMA), path)
    found = Duplicates(str(path), 4, 0, 7, 0, 0, has_pixels=True)
    assert (
        "same images of a group bytes /a<b>1.png (train, cat) /a2.png (train, cat) "
        "bytes /b0.png (train) /b1.png (train) /b2.png (train) and others "
        "bytes /c1.png (train) /c2.png (train) and 1 more"
    ) in Page(found._repr_html_()).text
    path.write_bytes(b"other")
    assert "images of a group" not in found._repr_html_()


def test_of_many_classes_the_largest_and_the_smallest_are_shown():
    counts = {label: number for number, label in enumerate(MANY)}
    result = ConversionResult("out", 9, 9, labels=MANY, classes={"train": counts, "eval": {}})
    text = Page(result._repr_html_()).text
    assert "train eval class 0999 999 0 class 0998 998 0 " in text
    assert text.endswith("class 0000 0 0 and 991 more between these")


def test_an_inspection_shows_its_contact_sheet(tmp_path: Path):
    sheet = tmp_path / "contact-sheet.png"
    Image.new("RGB", (30, 20), "red").save(sheet)
    result = Inspection(str(sheet), str(tmp_path / "records.csv"), 1)
    (source,) = Page(result._repr_html_()).sources
    kind, _, data = source.partition(",")
    assert kind == "data:image/png;base64"
    with Image.open(io.BytesIO(base64.b64decode(data))) as shown:
        assert (shown.size, shown.getpixel((3, 3))) == ((30, 20), (255, 0, 0))
    sheet.unlink()
    assert Page(result._repr_html_()).sources == []


def test_facts_have_their_values_below_each_other_and_a_card_shows_the_first_of_a_list():
    table = Table("", ("", "train"), [("cat", 1_200), ("dog", 9)], shares=[1, 0.1])
    rows = [
        "A sentence.",
        Fact("Labels", "2", table),
        [Fact("damaged", f"{number}\nWhat to do.") for number in range(12)],
        Fact("A longer name", "b"),
    ]
    lines = format_rows(rows, bars=True)
    assert lines[:6] == [
        "A sentence.",
        "Labels        2  train",
        "  cat            1,200  " + "█" * 20,
        "  dog                9  ██",
        "damaged       0",
        "              What to do.",
    ]
    assert (len(lines), lines[-1]) == (29, "A longer name b")
    text = Page(Outcome("Title", rows).to_card()).text
    assert text.startswith("Title A sentence. Labels 2 train cat 1,200 dog 9 damaged 0 What to do.")
    assert text.endswith("damaged 9 What to do. and 2 more A longer name b")


def test_a_table_has_the_same_cells_in_each_form():
    bar = make_bar(5, 0.5)
    picture = Drawn("", element("img", src="data:image/png;base64,AAAA"))
    table = Table("", ("", "label", "score", "images"), [(picture, EVIL, None, bar)] * 4)
    shown = table.shorten(3, ": see --json")
    text = Page(shown.to_html()).text
    assert text.startswith("label score images <script>")
    assert text.endswith("- 5 and 1 more: see --json")
    header, _, row, *_, more = shown.to_markdown().splitlines()
    assert header == "| label | score | images |"
    assert row.startswith("| &lt;script&gt;alert")
    assert row.endswith(" | - | 5 |")
    assert more == "… and 1 more: see --json"
