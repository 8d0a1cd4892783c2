"""Results for the UI of Kubeflow and Vertex: pages that load nothing, and Markdown."""

from __future__ import annotations

import csv
import io

from darkroom import storage
from darkroom.conversion.result import ConversionResult
from darkroom.dataset import layout
from darkroom.dataset.rejects import read_first_rejects
from darkroom.runtime.class_table import list_classes
from darkroom.runtime.markup import Html, element, encode_picture
from darkroom.runtime.page import Page, PagePart, make_section, make_table, make_text
from darkroom.runtime.table import Cell, Table
from darkroom.runtime.text import format_count
from darkroom.steps.places import name_uris
from darkroom.steps.step import Made, Step

_MAX_LABELS = 200
_MAX_REJECTS = 10


def encode_outputs(step: Step, made: Made) -> dict[str, bytes]:
    """Returns the content of the outputs of a step that are files, by name.

    A page with a title has the notebook's view of the result, with artifacts by their URIs.
    """
    cards = {
        each.name: Page(each.title, [PagePart(Html(name_uris(made.result._repr_html_())))])
        for each in step.outputs
        if each.title
    }
    return {**{name: page.to_html().encode() for name, page in cards.items()}, **made.files}


def encode_inspection(split: str, sheet: bytes | None, table: str) -> str:
    """Returns a page with a contact sheet and the features of its records.

    Args:
        split: The split.
        sheet: The PNG; None if the records have no images.
        table: The features as CSV.
    """
    header, *rows = csv.reader(io.StringIO(table))
    parts = [PagePart(element("h1", f"A sample of {split}: {format_count(len(rows), 'record')}"))]
    if sheet:
        parts.append(PagePart(element("img", src=encode_picture(sheet), alt="contact sheet")))
    return Page(f"Records of {split}", [*parts, make_table(Table("", header, rows))]).to_html()


def encode_missing_gallery() -> str:
    """Returns the page of a task that was asked for no gallery: each of its outputs has a file."""
    said = make_text("The option gallery makes one: findings and images, to decide about.")
    return Page("Gallery", [PagePart(element("h1", "No gallery was asked for")), said]).to_html()


def encode_summary(result: ConversionResult) -> str:
    """Returns the result of a conversion as Markdown, with all text of the user escaped."""
    decided = result.decisions["counts"] if result.decisions else {}
    counts = [
        ("Rows in", result.rows),
        ("Written", result.written),
        ("Rejected", result.num_rejected),
        ("Duplicates", result.deduplicated - result.excluded),
        *([("  with other values", result.merged)] if result.merged else []),
        ("Excluded", result.excluded),
        *((f"Decisions: {name}", count) for name, count in decided.items() if count),
        *((f"Rejected: {reason}", count) for reason, count in result.rejected.items()),
        *_count_objects(result),
    ]
    title = f"{format_count(result.written, 'record')} in {format_count(result.shards, 'shard')}"
    read_as = result.read_as.to_rows() if result.read_as else []
    # Without a heading between them, Kubeflow's UI shows two tables as one.
    parts = (
        make_table(Table("", ("what", "rows"), counts)),
        make_section("Splits and classes", make_table(_list_classes(result))),
        make_section("Read as", make_table(Table("", ("what", "how"), read_as))),
        make_section("First rejects", make_table(_list_rejects(result))),
    )
    return Page(title, parts).to_markdown()


def _count_objects(result: ConversionResult) -> list[tuple[str, int]]:
    """Returns the numbers of objects; none for targets without objects."""
    if result.objects is None:
        return []
    lost = result.rejected_objects.items()
    return [
        ("Objects in", result.objects.read),
        ("Objects written", result.objects.written),
        ("Objects cut at the edge of the image", result.objects.cut),
        ("Objects merged", result.objects.merged),
        *((f"Objects rejected: {reason}", count) for reason, count in lost),
    ]


def _list_classes(result: ConversionResult) -> Table:
    rows: list[list[Cell]] = [
        [name, *(counts.get(name, 0) for counts in result.classes.values())]
        for name in list_classes(result.classes, result.labels)
    ]
    return Table("", ("label", *result.classes), rows).shorten(_MAX_LABELS)


def _list_rejects(result: ConversionResult) -> Table:
    path = storage.join(result.data_dir, layout.REJECTS_FILE)
    found = read_first_rejects(path, _MAX_REJECTS) if result.has_rejects else []
    rows = [[f"{each.row}", each.reason, each.detail, each.uri] for each in found]
    return Table("", ("row", "reason", "because", "image"), rows)
