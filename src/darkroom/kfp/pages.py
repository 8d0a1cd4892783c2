"""Results for the UI of Kubeflow and Vertex: pages that load nothing, and Markdown."""

from __future__ import annotations

import base64
import csv
import io
from typing import Any

from darkroom import storage
from darkroom.conversion.result import ConversionResult
from darkroom.dataset import layout
from darkroom.dataset.rejects import read_first_rejects
from darkroom.kfp.places import name_uris
from darkroom.runtime.class_table import list_classes
from darkroom.runtime.markup import Html, element, make_markdown_table
from darkroom.runtime.text import format_count
from darkroom.validation.report.parts import make_page, make_table
from darkroom.validation.report.style import STYLE

_MAX_LABELS = 200
_MAX_REJECTS = 10


def encode_card(title: str, result: Any) -> str:
    """Returns a page with the notebook's view of a result, with artifacts by their URIs."""
    return make_page(title, STYLE, Html(name_uris(result._repr_html_())))


def encode_inspection(split: str, sheet: bytes | None, table: str) -> str:
    """Returns a page with a contact sheet and the features of its records.

    Args:
        split: The split.
        sheet: The PNG; None if the records have no images.
        table: The features as CSV.
    """
    header, *rows = csv.reader(io.StringIO(table))
    picture = None
    if sheet:
        source = f"data:image/png;base64,{base64.b64encode(sheet).decode()}"
        picture = element("img", src=source, alt="contact sheet", style="max-width:100%")
    return make_page(
        f"Records of {split}",
        STYLE,
        element("h1", f"A sample of {split}: {format_count(len(rows), 'record')}"),
        picture,
        make_table(header, rows),
    )


def encode_missing_gallery() -> str:
    """Returns the page of a task that was asked for no gallery: each of its outputs has a file."""
    return make_page(
        "Gallery",
        STYLE,
        element("h1", "No gallery was asked for"),
        element("p", "The option gallery makes one: findings and images, to decide about."),
    )


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
    ]
    parts = [
        f"# {format_count(result.written, 'record')} in {format_count(result.shards, 'shard')}",
        make_markdown_table(["what", "rows"], [[name, f"{count:,}"] for name, count in counts]),
        _encode_classes(result),
        _encode_read_as(result),
        _encode_rejects(result),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _encode_classes(result: ConversionResult) -> str:
    names = list_classes(result.classes, result.labels)
    rows = [
        [name, *(f"{counts.get(name, 0):,}" for counts in result.classes.values())]
        for name in names[:_MAX_LABELS]
    ]
    more = len(names) - len(rows)
    if not rows:
        return ""
    # Without a heading between them, Kubeflow's UI shows two tables as one.
    table = make_markdown_table(["label", *result.classes], rows)
    return f"## Splits and classes\n\n{table}" + (f"\n\n… and {more:,} more" if more > 0 else "")


def _encode_read_as(result: ConversionResult) -> str:
    if result.read_as is None:
        return ""
    return f"## Read as\n\n{make_markdown_table(['what', 'how'], result.read_as.to_rows())}"


def _encode_rejects(result: ConversionResult) -> str:
    if not result.num_rejected:
        return ""
    path = storage.join(result.data_dir, layout.REJECTS_FILE)
    found = read_first_rejects(path, _MAX_REJECTS)
    rows = [[f"{each.row}", each.reason, each.detail, each.uri] for each in found]
    return f"## First rejects\n\n{make_markdown_table(['row', 'reason', 'because', 'image'], rows)}"
