"""The images that a gallery shows: those of findings, and a sample of each class."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain, islice, zip_longest
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from darkroom.dataset import example
from darkroom.dataset.commit import Dataset
from darkroom.images.records import find_records, read_record_images
from darkroom.images.thumbnails import make_thumbnails
from darkroom.runtime import progress
from darkroom.targets.description import Shape
from darkroom.targets.kind import find_kind
from darkroom.validation.gallery.rows import GalleryRows
from darkroom.validation.gallery.serve import GalleryServer
from darkroom.validation.report.pictures import RecordFolders

MAX_TILES = 2_000
# Of a page whose pictures are served; those are made when they are looked at.
MAX_SERVED_TILES = 50_000
# Of the tiles, those of findings have at most this share.
_FINDING_SHARE = 0.6
# Of each class, as far as there is room.
CLASS_TILES = 8
# Pairs are compared in detail, so the first images, which are those of findings, are large.
LARGE_PIXELS, SMALL_PIXELS = 288, 112
MAX_LARGE = 320
_COLUMNS = ("uri", "label", "height", "width")
# Of an image; each takes some bytes in the page beside its text.
MAX_SHAPES, _SHAPE_BYTES = 200, 48


class Tile(NamedTuple):
    """An image in the gallery.

    Attributes:
        place: Number of its row in the index, from 0.
        row: Number of its row in the source.
        uri: Its URI.
        label: What it is labelled with, as text.
        size: Width and height in pixels; None where that is not known.
        picture: `data:image/jpeg` URI, or the address at a server; empty when the image could not
            be read.
        shapes: What is drawn over it.
        score: Probability of the label that a model says; None without one.
    """

    place: int
    row: int
    uri: str
    label: str
    size: tuple[int, int] | None
    picture: str
    shapes: Sequence[Shape] = ()
    score: float | None = None


def choose_tiles(
    rows: GalleryRows, findings: Sequence[Sequence[int]], most: int = MAX_TILES
) -> list[int]:
    """Returns the places of the images to show, each once, the most important first.

    Args:
        rows: All rows.
        findings: The places of the rows of each finding, worst first.
        most: How many to choose at most.
    """
    turns = chain.from_iterable(zip_longest(*findings))
    named = dict.fromkeys(place for place in turns if place is not None)
    chosen = dict.fromkeys(islice(named, int(most * _FINDING_SHARE)))
    order = np.argsort(rows.group, kind="stable")
    _, starts, counts = np.unique(rows.group[order], return_index=True, return_counts=True)
    room = most - len(chosen)
    # First the same number of every class and split, then by their shares.
    least = min(CLASS_TILES, max(1, room // max(len(counts), 1)))
    share = (room - np.minimum(counts, least).sum()) / max(len(rows.group), 1)
    quotas = np.minimum(counts, least + (counts * max(share, 0)).astype(int))
    for start, count, quota in zip(starts, counts, quotas, strict=True):
        # The order of the index is random in each span; these are of all spans.
        spread = order[start + np.arange(quota) * count // max(quota, 1)]
        chosen.update(dict.fromkeys(spread.tolist()))
    return list(chosen)[:most]


def make_image_tiles(
    records: RecordFolders,
    dataset: Dataset,
    rows: GalleryRows,
    places: Sequence[int],
    max_bytes: int,
    server: GalleryServer | None = None,
    lost: Mapping[int, Sequence[Shape]] = MappingProxyType({}),
) -> list[Tile]:
    """Makes tiles from records, the first ones large.

    Args:
        records: The folders of the records and of their index.
        dataset: Their commit.
        rows: All its rows.
        places: Their places in the index, the most important first.
        max_bytes: Limit of all pictures together. The first tile above it, and all that follow,
            have no picture. A place that the index no longer has gets no tile.
        server: Makes the pictures when they are looked at; they are in the page if None.
        lost: What else is drawn, by rows of the source.

    Raises:
        DataError: The index or a record is damaged.
        OSError: A file cannot be read.
    """
    # The index is read by numbers of rows in the source, which are not places.
    place_of = {int(rows.row[place]): place for place in places}
    listed = find_records(*records, [*place_of], _COLUMNS)
    found = {place_of[row["row"]]: row for row in listed}
    pictures: dict[int, str] = {}
    if example.IMAGE_ENCODED in dataset.features:
        large = {*places[:MAX_LARGE]}
        pictures = server.add_pictures(found) if server else _draw(found, place_of, large)
    tiles, kind = [], find_kind(dataset.target.kind)
    for place in filter(found.__contains__, places):
        row, picture = found[place], pictures.get(place, "")
        shapes = [*lost.get(row["row"], ()), *kind.list_shapes(row["label"], dataset.labels)]
        shapes = _round(shapes[:MAX_SHAPES])
        max_bytes -= len(picture) + sum(_SHAPE_BYTES + len(shape.text) for shape in shapes)
        size = (row["width"], row["height"]) if row["height"] else None
        label, shown = kind.show(row["label"]), (picture, shapes) if max_bytes > 0 else ("", ())
        tiles.append(Tile(place, row["row"], row["uri"] or "", label, size, *shown))
    return tiles


def _draw(
    found: Mapping[int, Mapping[str, Any]], place_of: Mapping[int, int], large: Collection[int]
) -> dict[int, str]:
    """Returns the pictures of records by their places."""
    pictures: dict[int, str] = {}
    images = ((place_of[number], data) for number, data in read_record_images(found.values()))
    thumbnails = make_thumbnails(images, lambda at: LARGE_PIXELS if at in large else SMALL_PIXELS)
    for place, picture in thumbnails:
        pictures[place] = picture
        progress.advance(len(pictures), len(found), "images")
    return pictures


def _round(shapes: Sequence[Shape]) -> list[Shape]:
    """Returns shapes with four digits, which is less than a pixel of a tile."""
    sides = ("left", "top", "right", "bottom")
    return [
        each._replace(**{side: round(getattr(each, side), 4) for side in sides}) for each in shapes
    ]
