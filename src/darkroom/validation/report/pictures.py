"""The pictures of a report: from the records where they are on a disk, else from the source."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from darkroom import storage
from darkroom.dataset import example
from darkroom.dataset.commit import Dataset, read_dataset
from darkroom.dataset.index import find_index_files, read_index_batches
from darkroom.dataset.tfrecord import read_some_records
from darkroom.errors import DarkroomError
from darkroom.images.pixels import encode_stored
from darkroom.storage.parquet import BATCH_ROWS
from darkroom.validation.report.dataset_report import DatasetReport
from darkroom.validation.report.sources import SourceImages
from darkroom.validation.report.thumbnails import make_thumbnails

MAX_THUMBNAILS = 40
_COLUMNS = ("row", "uri", "split", "shard", "position")


class Records(NamedTuple):
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
        thumbnails: `data:image/jpeg` URI by URI of the source image.
        missing: How many are missing, and why, as a sentence; empty if none is.
    """

    thumbnails: Mapping[str, str]
    missing: str = ""


def make_pictures(
    report: DatasetReport, records: Records | None, sources: SourceImages
) -> Pictures:
    """Makes thumbnails of the first forty images that a report names.

    Args:
        report: The report.
        records: Where its records are; None where that is not known.
        sources: Reads the images that are not read from records.
    """
    rows = dict(islice(_list_pictured(report), MAX_THUMBNAILS))
    thumbnails = {}
    if records and not any(map(storage.is_remote, records)):
        uris = {row: uri for uri, row in rows.items()}
        thumbnails = make_thumbnails((uris[row], data) for row, data in read_images(records, uris))
    others = [uri for uri in rows if uri not in thumbnails]
    thumbnails |= make_thumbnails((uri, sources.read(uri)) for uri in others)
    count = len(rows) - len(thumbnails)
    why = sources.ended or "their images cannot be read"
    return Pictures(
        thumbnails, f"{count} of {len(rows)} pictures are missing: {why}." if count else ""
    )


def _list_pictured(report: DatasetReport) -> Iterator[tuple[str, int]]:
    """Yields URI and row of the records that findings name, then of the samples, each once."""
    seen = set()
    # Rejected and lost rows may name files that are not images.
    found = [finding for finding in report.findings if finding.check != "accounting"]
    named = [row for finding in found for row in finding.first_rows if "reason" not in row]
    for row in (*named, *report.samples):
        for side in ("", "other_"):
            uri = row.get(f"{side}uri")
            if uri and uri not in seen:
                seen.add(uri)
                yield uri, row[f"{side}row"]


def read_images(records: Records, uris: Mapping[int, str]) -> Iterator[tuple[int, bytes]]:
    """Yields the rows and the images of records, file by file, as long as they can be read."""
    # Other commands report the problems of a dataset.
    with suppress(OSError, DarkroomError, LookupError):
        dataset = read_dataset(records.examples)
        for file, numbers in _find_places(dataset, records.index_dir, uris).items():
            path = storage.join(records.examples, file)
            for number, record in read_some_records(path, numbers.keys()):
                yield numbers[number], encode_stored(example.decode_example(record))


def _find_places(
    dataset: Dataset, index: str, uris: Mapping[int, str]
) -> dict[str, dict[int, int]]:
    """Returns the rows of records by file, then by number in the file."""
    found: defaultdict[str, dict[int, int]] = defaultdict(dict)
    wanted = pa.array(sorted(uris), pa.int64())
    for path in find_index_files(index):
        for table in read_index_batches(path, _COLUMNS, BATCH_ROWS):
            chosen = table.filter(pc.is_in(table["row"], value_set=wanted))
            for each in chosen.to_pylist():
                if each["uri"] != uris[each["row"]]:
                    continue  # The row is one of another dataset, with which this is compared.
                file = dataset.splits[each["split"]].shards[each["shard"]].file
                found[file][each["position"]] = each["row"]
    return found
