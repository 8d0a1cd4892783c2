"""The gallery of a dataset: what is shown of it, and how much fits into the page."""

from __future__ import annotations

from darkroom.dataset.commit import read_dataset
from darkroom.runtime import progress
from darkroom.targets.kind import find_kind
from darkroom.validation.gallery.page import encode_findings, encode_page
from darkroom.validation.gallery.rows import read_rows
from darkroom.validation.gallery.tiles import choose_tiles, make_tiles
from darkroom.validation.report.dataset_report import DatasetReport
from darkroom.validation.report.pictures import Records

# A page that mail and chat still take.
MAX_BYTES = 25_000_000
_TEXT_BYTES = 1_500_000


def encode_gallery(report: DatasetReport, records: Records) -> str:
    """Returns the gallery of a dataset, a page of at most 25 MB for a million images.

    Args:
        report: The verdict about it, with the findings to show.
        records: Where its records are.

    Raises:
        DataError: The index or a record is damaged.
        OSError: A file cannot be read.
    """
    dataset = read_dataset(records.examples)
    rows = read_rows(records.index_dir)
    arrays = {"group": rows.group, "side": rows.side, "brightness": rows.brightness}
    findings = encode_findings(report.findings, rows)
    named = [[place for item in each["items"] for place in item["places"]] for each in findings]
    room = MAX_BYTES - _TEXT_BYTES - sum(array.nbytes for array in arrays.values()) * 4 // 3
    with progress.step("Pictures"):
        kind = find_kind(dataset.target.kind)
        tiles = make_tiles(records, dataset, kind, choose_tiles(rows, named), room)
    return encode_page(report, dataset.fingerprint, rows, arrays, findings, tiles)
