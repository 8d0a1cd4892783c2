"""The gallery of a dataset: what is shown of it, and how much fits into the page."""

from __future__ import annotations

import os
from collections.abc import Mapping

from darkroom.dataset.commit import read_dataset
from darkroom.dataset.pointer import find_output
from darkroom.features.opening import open_features
from darkroom.options.validation import INFO
from darkroom.runtime import progress
from darkroom.runtime.text import MAX_LISTED_ROWS, format_count, list_first
from darkroom.validation.gallery.page import encode_findings, encode_page
from darkroom.validation.gallery.predictions import read_predictions
from darkroom.validation.gallery.rows import (
    Numbers,
    find_alike,
    pack_map,
    place_on_map,
    read_rows,
)
from darkroom.validation.gallery.serve import GalleryServer
from darkroom.validation.gallery.tiles import (
    MAX_SERVED_TILES,
    MAX_TILES,
    choose_tiles,
    make_image_tiles,
)
from darkroom.validation.report.dataset_report import DatasetReport
from darkroom.validation.report.findings import Finding
from darkroom.validation.report.pictures import RecordFolders, list_lost_shapes

# A page that mail and chat still take.
_MAX_BYTES = 25_000_000
_TEXT_BYTES = 1_500_000


def encode_gallery(
    report: DatasetReport,
    records: RecordFolders,
    predictions: str | os.PathLike[str] | None = None,
    *,
    place: RecordFolders | None = None,
    server: GalleryServer | None = None,
) -> str:
    """Returns the gallery of a dataset, a page of at most 25 MB for a million images.

    Args:
        report: The verdict about it, with the findings to show.
        records: Where its records are.
        predictions: What a model says of its images: the file of `darkroom predict`.
        place: Where a later run finds the records; where they are if None.
        server: Serves the pictures, of many more images; they are in the page if None.

    Raises:
        DataError: The index or a record is damaged, or the predictions are of other images.
        UsageError: There are predictions, and images do not have one label.
        OSError: A file cannot be read.
    """
    dataset = read_dataset(records.examples)
    rows = read_rows(records.index_dir)
    arrays = {"group": rows.group, "side": rows.side, "brightness": rows.brightness}
    arrays |= {f"measure-{number}": each for number, each in enumerate(rows.measures)}
    # As for the report: that of a pipeline does not depend on the machine.
    if features := open_features(records.index_dir, uses_cache=report.num_kept > 0):
        found = rows.find_places(features.rows)
        arrays["map"] = pack_map(place_on_map(len(rows.row), found, features.values))
    shown = [*report.findings]
    if report.rejected and not any(each.check == "rejects" for each in shown):
        count, first = (
            report.num_rejected,
            report.rejects[: min(report.num_rejected, MAX_LISTED_ROWS)],
        )
        said = f"Without a record: {format_count(count, 'row')} ({list_first([*report.rejected])})."
        shown.append(Finding("rejected", INFO, count, said, "See rejects.jsonl.", first))
    told = predictions and read_predictions(predictions, records.index_dir, rows, dataset)
    if told:
        arrays["told"] = told.label
        shown.append(told.finding)
    findings = encode_findings(shown, rows)
    named = [[place for item in each["items"] for place in item["places"]] for each in findings]
    with progress.step("Pictures"):
        chosen = choose_tiles(rows, named, MAX_SERVED_TILES if server else MAX_TILES)
        lost = list_lost_shapes(report.findings)
        tiles = make_image_tiles(records, dataset, rows, chosen, find_room(arrays), server, lost)
    if features:
        arrays["alike"] = find_alike([tile.place for tile in tiles], found, features.values)
    if told:
        tiles = [tile._replace(score=told.find_score(tile.place)) for tile in tiles]
    found_at, is_served = _name_place(place or records), server is not None
    return encode_page(
        report, dataset, rows, arrays, findings, tiles, place=found_at, is_served=is_served
    )


def _name_place(records: RecordFolders) -> dict[str, str]:
    """Returns where a later run finds a dataset, in the fields of what the page saves."""
    is_inside = records.index_dir.startswith(f"{records.examples}/")
    # In TFX, the index is an artifact of its own.
    index = {} if is_inside else {"index": records.index_dir}
    return {"records": find_output(records.examples), **index}


def find_room(arrays: Mapping[str, Numbers]) -> int:
    """Returns how many bytes are left for pictures in a page with these arrays."""
    return _MAX_BYTES - _TEXT_BYTES - sum(array.nbytes for array in arrays.values()) * 4 // 3
