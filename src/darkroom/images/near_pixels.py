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
from PIL import Image

from darkroom import storage
from darkroom.dataset import example
from darkroom.dataset.tfrecord import read_record_at
from darkroom.errors import DarkroomError
from darkroom.images.alignment import SIDE, Sketch, compare, make_sketch
from darkroom.images.pixels import encode_stored
from darkroom.images.records import find_records
from darkroom.runtime import progress

_MAX_THREADS = 8
# Pairs at once, and images whose sketches are kept for the next ones, of 100 kB each.
_BLOCK, _MAX_KEPT = 2_048, 4_096

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


class _Looks(NamedTuple):
    """The sketches of an image.

    Attributes:
        plain: That of the image.
        mirrored: That of its mirror image.
    """

    plain: Sketch
    mirrored: Sketch


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
            records = find_records(examples, index_dir, np.union1d(one, other).tolist())
            # Records of compressed files have no offset.
            places = {
                row["row"]: _Place(*(row[name] for name in _Place._fields))
                for row in records
                if row["offset"] is not None
            }
    order = np.lexsort((other, one))
    kept: dict[int, _Looks | None] = {}
    with ThreadPoolExecutor(min(_MAX_THREADS, os.cpu_count() or 1)) as pool:
        for start in range(0, len(order) if places else 0, _BLOCK):
            block = order[start : start + _BLOCK]
            pairs = [*zip(one[block].tolist(), other[block].tolist(), strict=True)]
            rows = {row for pair in pairs for row in pair}
            if len(kept) > _MAX_KEPT:
                kept = {row: kept[row] for row in rows & kept.keys()}
            new = sorted(rows - kept.keys())
            kept.update(zip(new, pool.map(partial(_draw, places), new), strict=True))
            found[block] = [*pool.map(partial(_compare, kept), pairs)]
            progress.advance(start + len(block), len(order), "compared pairs")
    return found


def _draw(places: Mapping[int, _Place], row: int) -> _Looks | None:
    """Returns the sketches of a record's image; None if it cannot be read."""
    with suppress(OSError, DarkroomError, LookupError, ValueError, SyntaxError):
        place = places[row]
        with storage.open_read(place.path) as file:
            file.seek(place.offset)
            data = file.read(place.length)
        record = example.decode_example(read_record_at(place.path, data, place.position))
        with Image.open(io.BytesIO(encode_stored(record)), formats=["JPEG", "PNG"]) as image:
            # A large JPEG is decoded at a half, a quarter or an eighth of its size.
            image.draft("L", (SIDE, SIDE))
            gray = np.asarray(image.convert("L"))
        return _Looks(make_sketch(gray), make_sketch(gray, mirrored=True))
    return None


def _compare(kept: Mapping[int, _Looks | None], pair: tuple[int, int]) -> float:
    one, other = (kept[row] for row in pair)
    if one is None or other is None:
        return np.nan
    return float(np.fmax(compare(one.plain, other.plain), compare(one.mirrored, other.plain)))
