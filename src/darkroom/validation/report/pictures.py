"""The pictures of a report: from the records where they are on a disk, else from the source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice, zip_longest
from typing import Any, NamedTuple

from darkroom import storage
from darkroom.dataset.commit import read_dataset
from darkroom.errors import DarkroomError
from darkroom.images.records import find_records, read_record_images
from darkroom.images.shapes import make_picture
from darkroom.images.source_images import SourceImages
from darkroom.images.strip import MAX_SHOWN, show_records
from darkroom.images.thumbnails import make_thumbnails
from darkroom.runtime.markup import Html
from darkroom.runtime.text import format_count
from darkroom.targets.description import Shape
from darkroom.targets.kind import find_kind
from darkroom.validation.report.dataset_report import DatasetReport
from darkroom.validation.report.findings import BOX, Finding

MAX_THUMBNAILS = 160
# What a box of a finding is; else a result of a detector.
_BOXES = {"outside_boxes": "lost", "false_boxes": "no result"}
# Other commands report the problems of a dataset.
_UNUSABLE = OSError, DarkroomError, LookupError


class RecordFolders(NamedTuple):
    """Where the records of a report are.

    Attributes:
        examples: The folder of `dataset.json`.
        index_dir: The folder of the index.
    """

    examples: str
    index_dir: str


class Pictures(NamedTuple):
    """The pictures of a report.

    Attributes:
        thumbnails: The element of a page, with its shapes, by URI of the source image.
        missing: How many are missing, and why, as a sentence; empty if none is.
    """

    thumbnails: Mapping[str, Html]
    missing: str = ""


def make_report_pictures(
    report: DatasetReport, records: RecordFolders | None, sources: SourceImages
) -> Pictures:
    """Makes thumbnails of the first 160 images that a report names.

    Args:
        report: The report.
        records: Where its records are; None where that is not known.
        sources: Reads the images that are not read from records.
    """
    named = [*_list_pictured(report)]
    rows = dict(named[:MAX_THUMBNAILS])
    thumbnails, drawn = dict[str, str](), {}
    if records and not any(map(storage.is_remote, records)):
        uris = {row: uri for uri, row in rows.items()}
        found = [*_find_named(records, uris, ("label", "height", "width"))]
        images = ((uris[row], data) for row, data in _read_images(found))
        thumbnails = dict(make_thumbnails(images))
        drawn = _list_shapes(records, found, list_lost_shapes(report.findings))
    others = [uri for uri in rows if uri not in thumbnails]
    thumbnails |= make_thumbnails((uri, sources.read(uri)) for uri in others)
    count = len(rows) - len(thumbnails)
    why = sources.ended or "their images cannot be read"
    pictures = {
        uri: make_picture(source, uri, *drawn.get(uri, ())) for uri, source in thumbnails.items()
    }
    said = format_count(count, "picture", "are", len(rows))
    missing = [f"{said} missing: {why}."] if count else []
    if len(named) > len(rows):
        missing.append(f"Of {len(named)} images here, {len(rows)} have a picture.")
    return Pictures(pictures, " ".join(missing))


def show_pictures(report: DatasetReport, records: RecordFolders) -> Html | None:
    """Returns pictures of the first eight images that a report names, as `show_records` does."""
    rows = [row for _, row in islice(_list_pictured(report), MAX_SHOWN)]
    return show_records(*records, rows)


def _list_pictured(report: DatasetReport) -> Iterator[tuple[str, int]]:
    """Yields URI and row of the records of findings and of the samples, in turns, each once."""
    seen = set()
    # Rejected and lost rows may name files that are not images.
    found = [each.first_rows for each in report.findings if each.check != "accounting"]
    for row in filter(None, chain.from_iterable(zip_longest(*found, report.samples))):
        if "reason" in row:
            continue
        for side in ("", "other_"):
            uri = row.get(f"{side}uri")
            if uri and uri not in seen:
                seen.add(uri)
                yield uri, row[f"{side}row"]


def list_lost_shapes(findings: Iterable[Finding]) -> dict[int, list[Shape]]:
    """Returns boxes that findings are about, as those that no record has, by rows."""
    lost: dict[int, list[Shape]] = {}
    for finding, row in ((each, row) for each in findings for row in each.rows):
        box = row.get(BOX) or [None]
        if None not in box:
            left, top, right, bottom = (min(max(side, 0.0), 1.0) for side in box)
            text = f"{row.get('suggested', row['label'])} ({_BOXES.get(finding.check, 'result')})"
            shape = Shape(text, left, top, right, bottom, None)
            lost.setdefault(row["row"], []).append(shape)
    return lost


def _list_shapes(
    records: RecordFolders,
    found: Sequence[Mapping[str, Any]],
    lost: Mapping[int, Sequence[Shape]],
) -> dict[str, tuple[Sequence[Shape], tuple[int, int]]]:
    """Returns the shapes of records, and their sizes in pixels (width, height), by URI."""
    if not found:
        return {}
    dataset = read_dataset(records.examples)
    kind = find_kind(dataset.target.kind)
    return {
        row["uri"]: (
            [*kind.list_shapes(row["label"], dataset.labels), *lost.get(row["row"], ())],
            (row["width"], row["height"]),
        )
        for row in found
    }


def read_found_images(
    records: RecordFolders, uris: Mapping[int, str]
) -> Iterator[tuple[int, bytes]]:
    """Yields the rows and the images of records, file by file, as long as they can be read."""
    yield from _read_images(_find_named(records, uris))


def _find_named(
    records: RecordFolders, uris: Mapping[int, str], columns: Sequence[str] = ()
) -> Iterator[dict[str, Any]]:
    """Yields the rows of the index that have these numbers and URIs, as `find_records` does."""
    with suppress(*_UNUSABLE):
        for row in find_records(*records, [*uris], ["uri", *columns]):
            # Other rows are those of another dataset, with which this is compared.
            if row["uri"] == uris[row["row"]]:
                yield row


def _read_images(found: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, bytes]]:
    with suppress(*_UNUSABLE):
        yield from read_record_images(found)
