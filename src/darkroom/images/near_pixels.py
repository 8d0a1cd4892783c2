"""Compares pairs of images of a dataset by their pixels, which it reads from the records."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from PIL import Image

from darkroom import storage
from darkroom.dataset import example
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.index import find_index_files, read_index_batches
from darkroom.dataset.tfrecord import read_record_at
from darkroom.errors import DarkroomError
from darkroom.images.alignment import SIDE, Sketch, compare, make_sketch
from darkroom.images.pixels import encode_stored
from darkroom.runtime import progress
from darkroom.storage.parquet import BATCH_ROWS

_COLUMNS = ("row", "split", "shard", "position", "offset", "length")
_MAX_THREADS = 8
# Pairs at once, and sketches that are kept for the next ones, of 50 kB each.
_BLOCK, _MAX_KEPT = 2_048, 8_192

Array = np.ndarray[Any, Any]


class _Place(NamedTuple):
    """Where a record is.

    Attributes:
        path: Its file.
        position: Its number in the file.
        offset: Where it begins, in bytes.
        length: Its length in bytes.
    """

    path: str
    position: int
    offset: int
    length: int


def compare_records(examples: str, index_dir: str, one: Array, other: Array) -> Array:
    """Returns how alike the images of pairs of records are, as `compare` does; NaN if unknown.

    Args:
        examples: The folder of the dataset.
        index_dir: The folder of its index.
        one: The column `row` of the index of the one record, int64 [pairs].
        other: That of the other one, int64 [pairs].

    Returns:
        float32 [pairs]. It is NaN also where a record cannot be read; other commands say why.
    """
    found = np.full(len(one), np.nan, np.float32)
    places: dict[int, _Place] = {}
    with suppress(OSError, DarkroomError, LookupError):
        if len(one):
            places = _find_places(examples, index_dir, np.union1d(one, other))
    order = np.lexsort((other, one))
    kept: dict[tuple[int, bool], Sketch | None] = {}
    with ThreadPoolExecutor(min(_MAX_THREADS, os.cpu_count() or 1)) as pool:
        for start in range(0, len(order) if places else 0, _BLOCK):
            block = order[start : start + _BLOCK]
            pairs = [*zip(one[block].tolist(), other[block].tolist(), strict=True)]
            # The one image of a pair is compared mirrored, too.
            looks = {(row, False) for pair in pairs for row in pair}
            looks |= {(row, True) for row, _ in pairs}
            if len(kept) > _MAX_KEPT:
                kept = {look: kept[look] for look in looks & kept.keys()}
            new = sorted(looks - kept.keys())
            sketches = pool.map(partial(_draw, places), new)
            kept.update(zip(new, sketches, strict=True))
            found[block] = [*pool.map(partial(_compare, kept), pairs)]
            progress.advance(start + len(block), len(order), "pairs")
    return found


def _find_places(examples: str, index_dir: str, rows: Array) -> dict[int, _Place]:
    dataset, places, wanted = read_dataset(examples), {}, pa.array(rows)
    for path in find_index_files(index_dir):
        for table in read_index_batches(path, _COLUMNS, BATCH_ROWS):
            # Records of compressed files have no offset.
            chosen = table.filter(pc.is_in(table["row"], value_set=wanted)).drop_null()
            for each in chosen.to_pylist():
                file = dataset.splits[each["split"]].shards[each["shard"]].file
                place = (each[name] for name in _COLUMNS[3:])
                places[each["row"]] = _Place(storage.join(examples, file), *place)
    return places


def _draw(places: Mapping[int, _Place], look: tuple[int, bool]) -> Sketch | None:
    """Returns the sketch of a record's image, mirrored or not; None if it cannot be read."""
    row, mirrored = look
    with suppress(OSError, DarkroomError, LookupError, ValueError, SyntaxError):
        place = places[row]
        with storage.open_read(place.path) as file:
            file.seek(place.offset)
            data = file.read(place.length)
        record = example.decode_example(read_record_at(place.path, data, place.position))
        with Image.open(io.BytesIO(encode_stored(record)), formats=["JPEG", "PNG"]) as image:
            # A large JPEG is decoded at a half, a quarter or an eighth of its size.
            image.draft("L", (SIDE, SIDE))
            return make_sketch(np.asarray(image.convert("L")), mirrored=mirrored)
    return None


def _compare(sketches: Mapping[tuple[int, bool], Sketch | None], pair: tuple[int, int]) -> float:
    one, other = pair
    looks = [sketches[look] for look in ((one, False), (one, True), (other, False))]
    plain, mirrored, second = looks
    if plain is None or mirrored is None or second is None:
        return np.nan
    return float(np.fmax(compare(plain, second), compare(mirrored, second)))
