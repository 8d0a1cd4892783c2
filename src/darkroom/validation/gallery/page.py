"""The page of a gallery: one file with all data in it, which loads nothing and runs one script."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from darkroom.dataset.commit import Dataset
from darkroom.dataset.splits import SPLITS
from darkroom.runtime.markup import Html, element, join_html
from darkroom.runtime.page import make_frame
from darkroom.runtime.style import COLORS, THEMES
from darkroom.targets.kind import find_kind
from darkroom.validation.gallery.rows import GalleryRows, Numbers
from darkroom.validation.gallery.tiles import Tile
from darkroom.validation.report.dataset_report import DatasetReport, format_scope, format_verdict
from darkroom.validation.report.findings import Finding, format_finding_row, list_record_facts

SCRIPT_FOLDER = Path(__file__).parent / "script"
# Each file uses only those above it.
SCRIPTS = (
    "data.js",
    "dom.js",
    "filters.js",
    "decisions.js",
    "effect.js",
    "describe.js",
    "tiles.js",
    "pairs.js",
    "sidebar.js",
    "histogram.js",
    "map.js",
    "bar.js",
    "main.js",
)
_IMPORT = re.compile(r"^import .*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)


def encode_page(
    report: DatasetReport,
    dataset: Dataset,
    rows: GalleryRows,
    arrays: Mapping[str, Numbers],
    findings: Sequence[Mapping[str, Any]],
    tiles: Sequence[Tile],
    *,
    place: Mapping[str, str],
    is_served: bool = False,
) -> str:
    """Returns the page.

    Args:
        report: The verdict about the dataset.
        dataset: Its commit.
        rows: All its rows.
        arrays: What is known of all rows, by name: [N] or [N, ...].
        findings: Its findings, as `encode_findings` returns them.
        tiles: The images to show.
        place: Where a later run finds the dataset, in the fields of what the page saves.
        is_served: Whether pictures come from where the page comes from.
    """
    labels = list(dict.fromkeys((*report.labels, *(name for each in rows.sets for name in each))))
    kind = find_kind(dataset.target.kind)
    number = {label: place for place, label in enumerate(labels)}
    facts = {
        "fingerprint": dataset.fingerprint,
        "place": place,
        "relabels": kind.relabels,
        "filters": [each._asdict() for each in kind.filters],
        "count": len(rows.row),
        "title": report.title,
        "verdict": format_verdict(report),
        "tone": report.tone,
        "scope": format_scope(report),
        "splits": SPLITS,
        "colors": COLORS,
        "labels": labels,
        "sets": [[number[name] for name in each] for each in rows.sets],
        "findings": findings,
    }
    blocks = {
        "facts": facts,
        "tiles": [tile._asdict() for tile in tiles],
        **{f"rows-{name}": _encode_array(values) for name, values in arrays.items()},
    }
    # Data and never markup: a browser ends the block at the first "<" that looks like an end.
    data = (
        element("script", Html(_encode_json(value)), type="application/json", id=name)
        for name, value in blocks.items()
    )
    style, script = THEMES + (SCRIPT_FOLDER / "style.css").read_text("utf-8"), join_scripts()
    images = "data: 'self'" if is_served else "data:"
    policy = (
        f"default-src 'none'; img-src {images}; script-src '{_hash(script)}'; "
        f"style-src '{_hash(style)}'; base-uri 'none'; form-action 'none'"
    )
    frame = Html((SCRIPT_FOLDER / "page.html").read_text("utf-8"))
    body = join_html(frame, *data, element("script", Html(script)))
    return make_frame("darkroom gallery", body, style, policy)


def join_scripts() -> str:
    """Returns the modules of the page as one script."""
    texts = [(SCRIPT_FOLDER / name).read_text("utf-8") for name in SCRIPTS]
    bodies = [_EXPORT.sub("", _IMPORT.sub("", text)) for text in texts]
    return '(() => {\n"use strict";\n' + "\n".join(bodies) + "})();\n"


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _encode_json(value: object) -> str:
    # ASCII only: names of files may have lone surrogates, which UTF-8 cannot encode.
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _encode_array(values: Numbers) -> dict[str, str]:
    little = values.astype(values.dtype.newbyteorder("<"))
    return {"type": values.dtype.name, "data": base64.b64encode(little.tobytes()).decode()}


def encode_findings(findings: Sequence[Finding], rows: GalleryRows) -> list[dict[str, Any]]:
    """Returns the findings as values of JSON.

    `items` has those of their rows that are records: the places of one or two records, and what
    else the check says of them. `lines` has the others as text.
    """
    return [
        {
            "check": each.check,
            "title": each.title,
            "policy": each.policy,
            "count": each.count,
            "message": each.message,
            "hint": each.hint,
            **_encode_rows(each, rows),
        }
        for each in findings
    ]


def _encode_rows(finding: Finding, rows: GalleryRows) -> dict[str, Any]:
    """Returns `items` and `lines` of a finding.

    A row of a finding names its record by `row`, and that of a pair the second one by `other_row`.
    Of a pair, the larger image comes first, and else the one that is held out; unless the finding
    would move one of them.
    """
    items, lines = [], []
    split_of = rows.group % len(SPLITS)  # the last one is test
    numbers = [(row.get("row", -1), row.get("other_row", -1)) for row in finding.rows]
    found = rows.find_places(number for pair in numbers for number in pair).reshape(-1, 2)
    for row, pair in zip(finding.rows, found.tolist(), strict=True):
        # Rejected and lost rows are not records, whatever their number.
        if pair[0] < 0 or "reason" in row or finding.check == "accounting":
            lines.append(format_finding_row(row))
            continue
        places = [place for place in pair if place >= 0]
        if "move_to" not in row:
            places.sort(key=lambda place: (-int(rows.side[place]), -int(split_of[place])))
        items.append({"places": places, "facts": list_record_facts(row)})
    return {"items": items, "lines": lines}
