"""Shows the content of a dataset: a contact sheet of a sample, and its features as CSV."""

from __future__ import annotations

import csv
import io
import os
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from heapq import nsmallest
from typing import Any

import pyarrow.compute as pc
from PIL import Image, ImageDraw

from darkroom import storage
from darkroom.dataset import example
from darkroom.dataset.commit import Dataset
from darkroom.dataset.index import find_index_files, read_index_batches
from darkroom.dataset.layout import INDEX_FOLDER
from darkroom.dataset.named import find_named_data
from darkroom.dataset.opening import check_index_files, check_outside, open_dataset
from darkroom.dataset.splits import TRAIN, parse_split
from darkroom.dataset.tfrecord import read_some_records
from darkroom.errors import DataError, UsageError
from darkroom.images.decoders import ImagePreparer
from darkroom.images.pixels import encode_stored
from darkroom.images.shapes import draw_shapes
from darkroom.images.thumbnails import draw_thumbnail
from darkroom.options.image import ImageOptions
from darkroom.runtime import progress
from darkroom.runtime.markup import Html, element, encode_picture
from darkroom.runtime.result import Outcome, Result
from darkroom.runtime.text import format_count, make_visible
from darkroom.storage import ledger
from darkroom.storage.parquet import BATCH_ROWS
from darkroom.targets.kind import TargetKind, find_kind

SHEET_FILE = "contact-sheet.png"
CSV_FILE = "records.csv"
_COLUMNS = 8
_TILE_PIXELS = 128
_LINE_PIXELS = 13
_MARGIN_PIXELS = 8
_MAX_CAPTION = 60
_LINE_CHARACTERS = 20
# Of a contact sheet that a notebook keeps in itself.
_MAX_SHOWN_BYTES = 8 << 20
# A spreadsheet would run a cell that starts with one of these.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")

_Features = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Inspection(Result):
    """The files that `inspect` wrote.

    Attributes:
        sheet: Path of the contact sheet; None if the records have no images.
        csv: Path of the table of features, without the image bytes.
        records: Number of records in both.
    """

    sheet: str | None
    csv: str
    records: int

    def describe(self) -> Outcome:
        """Returns the paths; its card shows the contact sheet."""
        paths = [path for path in (self.sheet, self.csv) if path]
        return Outcome(f"The first {format_count(self.records, 'record')}", paths)

    def _repr_html_(self) -> str:
        """Returns it as a notebook shows it, with the contact sheet; it is read for that."""
        picture = _make_picture(self.sheet) if self.sheet else None
        return self.describe()._replace(more=[picture]).to_card()


def _make_picture(path: str) -> Html | None:
    """Returns a PNG as part of a page; None if it is not there any more, or too large."""
    try:
        source = encode_picture(storage.read_bytes(path, _MAX_SHOWN_BYTES))
    except OSError:
        return None
    return element("img", src=source, alt="contact sheet")


@storage.report_failures
@progress.shown
def inspect(
    directory: str | os.PathLike[str],
    split: str = TRAIN,
    n: int = 32,
    output_dir: str | os.PathLike[str] = "inspection",
) -> Inspection:
    """Writes some records of a split as a contact sheet and as a table.

    They are those with the smallest keys, a random sample of all spans.

    Args:
        directory: A dataset.
        split: `train`, `eval` or `test`, or another name that a source may have for it, as `val`.
        n: Number of records.
        output_dir: Folder for `contact-sheet.png` and `records.csv`; made if it does not exist.

    Returns:
        The files.

    Raises:
        DataError: The folder is not a dataset, the names or sizes of its shards differ from its
            commit, or its index or a record is damaged.
        OutputError: `output_dir` has files of these names that darkroom did not write, is in the
            dataset, or is a file.
        UsageError: The dataset does not have that split, or `n` is not a positive whole number.
        OSError: A file cannot be read or written.
    """
    source, target = find_named_data(directory), storage.absolute(output_dir)
    check_outside(source, target, "The contact sheet")
    ledger.check_folder(target)
    dataset = open_dataset(source)
    check_index_files(source, dataset)
    name = parse_split(split) if isinstance(split, str) else None
    if name not in dataset.splits:
        raise UsageError(
            f"{source} has no split {split!r}.", f"Its splits are {', '.join(dataset.splits)}."
        )
    if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= sys.maxsize:
        raise UsageError(f"The number of records must be a positive whole number, got {n!r}.")
    found = [*_read_sample(source, dataset, name, n)]
    contents = {CSV_FILE: format_csv(found, list(dataset.features)).encode()}
    if example.IMAGE_ENCODED in dataset.features:
        kind = find_kind(dataset.target.kind)
        contents[SHEET_FILE] = draw_sheet(found, kind, dataset.labels)
    csv_path, *sheets = ledger.write_files(target, contents)
    return Inspection(sheets[0] if sheets else None, csv_path, len(found))


def _read_sample(source: str, dataset: Dataset, split: str, n: int) -> Iterator[_Features]:
    """Yields the records of a split with the smallest keys, in the order of its shards."""
    chosen = nsmallest(n, _list_places(storage.join(source, INDEX_FOLDER), split))
    shards, places = dataset.splits[split].shards, dict[int, list[int]]()
    for _, shard, position in chosen:
        if not (0 <= shard < len(shards) and 0 <= position < shards[shard].records):
            raise DataError(
                f"The index of {source} is wrong: {split} has no record {position} in shard "
                f"{shard}.",
                f"List all faults with: darkroom verify {source}.",
            )
        places.setdefault(shard, []).append(position)
    for shard in sorted(places):
        path = storage.join(source, shards[shard].file)
        for _, record in read_some_records(path, places[shard]):
            yield example.decode_example(record)


def _list_places(index: str, split: str) -> Iterator[tuple[str, int, int]]:
    """Yields key, shard and position of the records of a split."""
    names = ("key", "shard", "position")
    for path in find_index_files(index):
        for batch in read_index_batches(path, ("split", *names), BATCH_ROWS):
            own = batch.filter(pc.equal(batch["split"], split))
            yield from zip(*(own[name].to_pylist() for name in names), strict=True)


def format_csv(records: Sequence[_Features], features: Sequence[str]) -> str:
    """Returns the features of records as CSV, one row for each record, without the image bytes."""
    names = [name for name in features if name != example.IMAGE_ENCODED]
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(names)
    for record in records:
        cells = []
        for name in names:
            values = record.get(name, ())
            is_text = any(isinstance(value, bytes) for value in values)
            cell = (";" if is_text else " ").join(map(_as_text, values))
            cells.append(f"'{cell}" if is_text and cell.startswith(_FORMULA_STARTS) else cell)
        writer.writerow(cells)
    return text.getvalue()


def _as_text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def draw_sheet(records: Sequence[_Features], kind: TargetKind, names: Sequence[str] = ()) -> bytes:
    """Returns a PNG with the images of records in rows, and below each what it is labelled with.

    Args:
        records: The records.
        kind: What they are labelled with.
        names: The label map, in which a class has the number of its color.
    """
    targets = [kind.decode(record) for record in records]
    columns = max(1, min(_COLUMNS, len(records)))
    rows = -(-len(records) // columns) or 1
    captions = [
        textwrap.wrap(make_visible(kind.show(target), _MAX_CAPTION), _LINE_CHARACTERS)
        for target in targets
    ]
    caption_pixels = 3 + _LINE_PIXELS * max([1, *map(len, captions)])
    step_x, step_y = _TILE_PIXELS + _MARGIN_PIXELS, _TILE_PIXELS + caption_pixels + _MARGIN_PIXELS
    size = (columns * step_x + _MARGIN_PIXELS, rows * step_y + _MARGIN_PIXELS)
    sheet = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(sheet)
    with closing(ImagePreparer(ImageOptions())) as preparer:
        tiles = [_draw_tile(record, preparer) for record in records]
    for place, (tile, target, lines) in enumerate(zip(tiles, targets, captions, strict=True)):
        draw_shapes(tile, kind.list_shapes(target, names))
        x = place % columns * step_x + _MARGIN_PIXELS
        y = place // columns * step_y + _MARGIN_PIXELS
        left, top = (_TILE_PIXELS - tile.width) // 2, (_TILE_PIXELS - tile.height) // 2
        sheet.paste(tile, (x + left, y + top))
        for number, line in enumerate(lines):
            indent = max(0, round((_TILE_PIXELS - draw.textlength(line)) / 2))
            below = y + _TILE_PIXELS + 2 + _LINE_PIXELS * number
            draw.text((x + indent, below), line, fill="black")
    buffer = io.BytesIO()
    sheet.save(buffer, "PNG")
    return buffer.getvalue()


def _draw_tile(record: _Features, preparer: ImagePreparer) -> Image.Image:
    try:
        return draw_thumbnail(encode_stored(record), preparer, _TILE_PIXELS)
    except (ValueError, LookupError) as error:
        raise DataError(
            f"The image of the record {example.name_image(record)} cannot be decoded: {error}.",
            "Convert the source again with full checks of images.",
        ) from error
